"""PLOTS: pictures of fitted classifiers, in the manner of scikit-learn's displays, one to a file.

`look.py` holds the look that they share. A fitted classifier is known by its attributes alone, so that others' can be
drawn beside ours. matplotlib is an extra (``pip install 'widemargin[plots]'``), imported when something is drawn.
"""

from widemargin.plots.convergence import ConvergenceDisplay
from widemargin.plots.decision import DecisionDisplay
from widemargin.plots.demo import demo_figure, kernels_figure, outlier_figure
from widemargin.plots.hildreth import HildrethDisplay
from widemargin.plots.hulls import HullDisplay
from widemargin.plots.kkt import KKTDisplay
from widemargin.plots.look import CLASSES, share_legend
from widemargin.plots.losses import LossDisplay
from widemargin.plots.margin import MarginDisplay
from widemargin.plots.paths import PathDisplay
from widemargin.plots.separators import SeparatorsDisplay

__all__ = [
    "CLASSES",
    "ConvergenceDisplay",
    "DecisionDisplay",
    "HildrethDisplay",
    "HullDisplay",
    "KKTDisplay",
    "LossDisplay",
    "MarginDisplay",
    "PathDisplay",
    "SeparatorsDisplay",
    "demo_figure",
    "kernels_figure",
    "outlier_figure",
    "share_legend",
]

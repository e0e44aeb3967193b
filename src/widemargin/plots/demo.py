"""Pictures in one call: what C does to the margin, outliers to least squares, and a kernel to the boundary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_circles, make_moons

from widemargin.certificate import InseparableError
from widemargin.estimators import KernelSVM, LeastSquaresClassifier, LinearSVM, LogisticRegression
from widemargin.plots.decision import DecisionDisplay
from widemargin.plots.hulls import HullDisplay
from widemargin.plots.look import pyplot, share_legend
from widemargin.plots.margin import MarginDisplay
from widemargin.plots.separators import SeparatorsDisplay

Floats = NDArray[np.float64]


def clouds() -> tuple[Floats, Floats]:
    """Two clouds of 20 points that can be separated, but for one point of the second only just."""
    rng = np.random.default_rng(4)
    X = np.vstack([rng.standard_normal((20, 2)) * 0.8 - [1.6, 1.0], rng.standard_normal((20, 2)) * 0.8 + [1.6, 1.0]])
    X[-1] = [-0.2, -0.9]
    return X, np.repeat([-1.0, 1.0], 20)


def five() -> tuple[Floats, Floats]:
    """The five points of notes 001, "SVM with sklearn"."""
    return np.array([(1, 1), (1, -1), (-1, 1), (-1, -1), (-0.1, -0.1)]), np.array([1.0, 1.0, -1.0, -1.0, 1.0])


#: Points that `demo_figure` can draw.
POINTS = {"clouds": clouds, "five": five}


def demo_figure(C: float | Sequence[float] = (1e10, 0.1, 0.01), *, points: str = "clouds") -> Any:
    """The margin at one C, or at several side by side, as the notes' ``demo.py C`` draws it.

    Parameters
    ----------
    C : number > 0, or several
        A large C keeps the slacks small, a small one the margin wide. With C = ∞ and points that cannot be separated,
        the hulls and a point of both are drawn instead.
    points : {"clouds", "five"}
        Two clouds of 20 points, or the five points of the notes.

    Returns
    -------
    A matplotlib figure.

    Examples
    --------
    >>> from widemargin.plots import demo_figure
    >>> [ax.get_title().split(",")[0] for ax in demo_figure([100, 0.1]).axes]
    ['C = 100', 'C = 0.1']

    """
    if points not in POINTS:
        raise ValueError(f"points={points!r}; choose from {', '.join(map(repr, POINTS))}")
    strengths = [float(one) for one in (C if isinstance(C, Sequence | np.ndarray) else [C])]
    if not strengths:
        raise ValueError("C is empty; give at least one number > 0")
    X, y = POINTS[points]()
    return margins_figure([demo_fit(strength, X, y) for strength in strengths], X, y)


def demo_fit(C: float, X: Floats, y: Floats) -> LinearSVM | InseparableError:
    """The fit at this C, or the proof that there is none."""
    try:
        return LinearSVM(C, tol=1e-9).fit(X, y)
    except InseparableError as proof:
        return proof


def margins_figure(fits: Sequence[LinearSVM | InseparableError], X: Floats, y: Floats) -> Any:
    """A panel for each fit; in place of one that cannot be, the hulls that prove it."""
    wide, high = max(5.6, 3.7 * len(fits)), 4.9 if len(fits) == 1 else 4.3
    figure, axes = pyplot().subplots(1, len(fits), figsize=(wide, high), layout="constrained", squeeze=False)
    for ax, fit in zip(axes[0], fits, strict=True):
        if isinstance(fit, InseparableError):
            HullDisplay.from_data(X, y, proof=fit, ax=ax)
            ax.set_title("C = inf, no line separates the classes", fontsize="medium")
            continue
        MarginDisplay.from_estimator(fit, X, y, ax=ax)
        width, count = 2 / np.linalg.norm(fit.coef_), len(fit.support_)
        ax.set_title(f"C = {fit.C:g}, width {width:.3g}, {count} support vectors", fontsize="medium")
    share_legend(axes[0], figure, loc="outside lower center", ncols=min(4, 2 * len(fits)))
    return figure


def outlier_figure() -> Any:
    """Least squares and logistic regression without outliers and with some: only one of them minds (notes 004).

    Returns
    -------
    A matplotlib figure of two panels.

    """
    rng = np.random.default_rng(1)
    X = np.vstack([rng.standard_normal((30, 2)) * 0.6 + [-1, 1], rng.standard_normal((30, 2)) * 0.6 + [1, -1]])
    y = np.repeat([-1.0, 1.0], 30)
    far = rng.standard_normal((10, 2)) * 0.4 + [7.0, -5.5]  # of the second class, and deep on its side
    figure, axes = pyplot().subplots(1, 2, figsize=(8.4, 4.6), layout="constrained", sharex=True, sharey=True)
    panels = (("without outliers", X, y), ("with outliers", np.vstack([X, far]), np.append(y, np.ones(10))))
    for ax, (title, rows, labels) in zip(axes, panels, strict=True):
        fits = {
            "least squares": LeastSquaresClassifier().fit(rows, labels),
            "logistic regression": LogisticRegression(C=1).fit(rows, labels),
        }
        SeparatorsDisplay.from_estimators(fits, rows, labels, ax=ax)
        ax.set_title(title, fontsize="medium")
    share_legend(axes, figure, loc="outside lower center", ncols=4)
    return figure


def shapes() -> dict[str, tuple[KernelSVM, Floats, Floats]]:
    """Classes that no line separates, each with a kernel for it."""
    rng = np.random.default_rng(0)
    corners = np.repeat([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], 30, axis=0)
    return {
        "moons, rbf": (KernelSVM(C=10), *make_moons(120, noise=0.2, random_state=0)),
        "circles, polynomial of degree 2": (
            KernelSVM(kernel="poly", degree=2, coef0=1.0),
            *make_circles(120, noise=0.12, factor=0.45, random_state=0),
        ),
        "exclusive or, rbf": (
            KernelSVM(C=10),
            corners + 0.5 * rng.standard_normal(corners.shape),
            np.where(corners.prod(axis=1) > 0, 1, 0),
        ),
    }


def kernels_figure() -> Any:
    """Moons, circles and exclusive or: what a kernel does where no line separates the classes.

    Returns
    -------
    A matplotlib figure of three panels.

    """
    figure, axes = pyplot().subplots(1, 3, figsize=(12.6, 4.6), layout="constrained")
    for ax, (title, (svm, X, y)) in zip(axes, shapes().items(), strict=True):
        DecisionDisplay.from_estimator(svm.fit(X, y), X, y, ax=ax)
        ax.set_title(f"{title}: {len(svm.support_)} support vectors", fontsize="medium")
    share_legend(axes, figure, loc="outside lower center", ncols=4)
    return figure

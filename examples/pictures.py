"""Every picture of the lecture notes, and those that tell what a model does, as PNG and PDF for print."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin import LinearSVM, path
from widemargin.plots import (
    ConvergenceDisplay,
    HildrethDisplay,
    HullDisplay,
    KKTDisplay,
    LossDisplay,
    PathDisplay,
    demo_figure,
    kernels_figure,
    outlier_figure,
)


def main() -> None:
    """Draw the pictures and say where they are."""
    example = "example: python examples/pictures.py --output pictures"
    parser = argparse.ArgumentParser(description=__doc__, epilog=example)
    parser.add_argument("--output", type=Path, default="pictures", help="folder of the pictures (default: %(default)s)")
    arguments = parser.parse_args()
    plt.switch_backend("Agg")  # pictures go to files, on machines without a screen too
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures().items():
        for suffix in (".png", ".pdf"):
            figure.savefig(arguments.output / f"{name}{suffix}", dpi=150)
        plt.close(figure)
        print(arguments.output / f"{name}.png")


def pictures() -> dict[str, Any]:
    """A figure for each name."""
    apart, overlapping = clouds(distance=5.0), clouds(distance=1.5)
    svm = LinearSVM(C=0.1).fit(*overlapping)
    return {
        "margins": demo_figure([1e10, 0.1, 0.01]),
        "losses": LossDisplay.from_losses(["hinge", "perceptron", "logistic", "squared"]).figure_,
        "hulls-apart": HullDisplay.from_data(*apart).figure_,
        "hulls-overlapping": HullDisplay.from_data(*overlapping).figure_,
        "hildreth": HildrethDisplay.from_qp([[4, 1], [1, 2]], [-6, -4]).figure_,
        "outliers": outlier_figure(),
        "kernels": kernels_figure(),
        "kkt": KKTDisplay.from_estimator(svm, *overlapping).figure_,
        "path": PathDisplay.from_path(path(*overlapping, [0.001, 0.01, 0.1, 1, 10]), *overlapping).figure_,
        "convergence": convergence(*overlapping),
    }


def convergence(X: np.ndarray, y: np.ndarray) -> Any:
    """The algorithms of the notes on one objective, as far as a hundred passes take them."""
    fits = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the picture tells it
        for solver in ("subgradient", "pegasos", "smo", "dual_cd", "interior_point"):
            fits[solver] = LinearSVM(C=0.1, solver=solver, tol=1e-8, max_iter=100).fit(X, y)
    return ConvergenceDisplay.from_estimators(fits, over="passes").figure_


def clouds(distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of 40 points each."""
    rng, y = np.random.default_rng(0), np.repeat([-1, 1], 40)
    return rng.standard_normal((80, 2)) + np.outer(y, [distance / 2, 0.3]), y


if __name__ == "__main__":
    main()

"""One pass over the rows, ours beside scikit-learn's: SGD, Pegasos, perceptron, MIRA; and least squares as a whole.

python benchmarks/epochs.py

A pass is (time of 11 passes − time of 1)/10, so that reading the input does not count. For LinearSVM's solvers it is
the pass alone; the looks at the gap, which scikit-learn does not take, are in the column "with its gap". scikit-learn
shuffles its rows one by one, as our pegasos draws them; our other solvers shuffle blocks of 16 neighbours.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import PassiveAggressiveClassifier, RidgeClassifier, SGDClassifier
from sklearn.linear_model import Perceptron as TheirPerceptron

from widemargin import MIRA, LeastSquaresClassifier, LinearSVM, Perceptron, certify
from widemargin.data import Rows
from widemargin.solvers import LazyWeights
from widemargin.solvers.sgd import rates, shuffled_blocks

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import text_like  # the path comes first

LINE = "{:<34}{:>12}{:>15}{:>12}{:>8}"


def best(work: Callable[[], object], times: int = 9) -> float:
    """The least of several measurements of the seconds that the work takes."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def per_pass(fit: Callable[[int], object]) -> float:
    """Seconds of one more pass."""
    return (best(lambda: fit(11)) - best(lambda: fit(1))) / 10


def steps_alone(X, y, solver: str) -> Callable[[int], object]:
    """Passes of the stochastic steps, with their draws and rates, but without a look at the gap."""
    rows, n = Rows(X), X.shape[0]
    everyone, norms = np.arange(n), rows.square_norms

    def passes(count: int) -> None:
        weights, order = LazyWeights(rows.d, duals=n), np.random.default_rng(0)
        for _ in range(count):
            draws = order.integers(0, n, n) if solver == "pegasos" else shuffled_blocks(everyone, order)
            eta = rates(n, 1.0, 0.0 if solver == "pegasos" else n, weights.steps, n)
            radius = np.sqrt(n) if solver == "pegasos" else np.inf
            weights.sgd("hinge", rows, y, draws, eta, 1 - eta / n, bias=True, radius=radius, norms=norms)

    return passes


def main() -> None:
    """Prints the tables."""
    warnings.simplefilter("ignore")
    X, y = text_like(200_000, seed=0)
    print(f"{X.shape[0]:,} × {X.shape[1]:,}, {X.nnz:,} non-zeros; milliseconds per pass, best of nine, C = 1")
    print(LINE.format("", "ours", "with its gap", "theirs", "ratio"))
    sgd = per_pass(lambda k: SGDClassifier(alpha=1 / len(y), max_iter=k, tol=None).fit(X, y))
    for solver in ("sgd", "pegasos"):
        ours = per_pass(steps_alone(X, y, solver))
        proved = per_pass(lambda k, solver=solver: LinearSVM(solver=solver, max_iter=k, n_jobs=1).fit(X, y))
        print(LINE.format(f"{solver} / SGDClassifier", *_ms(ours, proved, sgd), f"{sgd / ours:.1f}"))
    pairs = (
        ("Perceptron / Perceptron", Perceptron, lambda k: TheirPerceptron(max_iter=k, tol=None)),
        (
            "MIRA(0.999) / PassiveAggressive",
            lambda max_iter: MIRA(0.999, C=1.0, max_iter=max_iter),
            lambda k: PassiveAggressiveClassifier(max_iter=k, tol=None),
        ),
    )
    for name, make, theirs in pairs:
        ours = per_pass(lambda k, make=make: make(max_iter=k).fit(X, y))
        peer = per_pass(lambda k, theirs=theirs: theirs(k).fit(X, y))
        print(LINE.format(name, f"{1e3 * ours:.1f}", "–", f"{1e3 * peer:.1f}", f"{peer / ours:.1f}"))

    print("\nleast squares, alpha = 1: the whole fit in milliseconds, best of nine; relative gaps of both")
    print(LINE.format("", "ours", "gaps", "Ridge", "ratio"))
    rng = np.random.default_rng(0)
    for name, rows in (
        ("200,000 × 54", 200_000),
        ("50,000 × 54", 50_000),
        ("20,000 × 400", 20_000),
    ):
        d = int(name.split("× ")[1])
        dense = rng.standard_normal((rows, d))
        labels = np.where(dense @ rng.standard_normal(d) + rng.standard_normal(rows) > 0, 1, -1)
        _least_squares(name, dense, labels)
    _least_squares(f"text-like, {X.shape[0]:,} × {X.shape[1]:,}", X, y)


def _least_squares(name: str, X, y) -> None:
    model = LeastSquaresClassifier(1.0).fit(X, y)
    ours = best(lambda: LeastSquaresClassifier(1.0).fit(X, y))
    theirs = best(lambda: RidgeClassifier(1.0).fit(X, y))
    ridge = RidgeClassifier(1.0).fit(X, y)
    its = certify(X, y, ridge.coef_, ridge.intercept_, C=0.5, loss="squared").relative_gap
    gap = f"{model.certificate_.relative_gap:.0e}, {its:.0e}"
    print(LINE.format(name, f"{1e3 * ours:.1f}", gap, f"{1e3 * theirs:.1f}", f"{theirs / ours:.1f}"))


def _ms(*seconds: float) -> list[str]:
    return [f"{1e3 * one:.1f}" for one in seconds]


if __name__ == "__main__":
    main()

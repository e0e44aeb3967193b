"""How the cost of our own fits grows: with the passes, the rows, C, a bias, the values of C on a path, the classes.

python benchmarks/scaling.py

Hinge, relative gap 1e-3, the fastest of nine runs at most; every line is a ratio of two times of the same run.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from epochs import best as seconds
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from widemargin import LinearSVM, certify, path
from widemargin.data import Rows
from widemargin.losses import LOSSES
from widemargin.problem import Problem
from widemargin.solvers import SOLVERS

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import text_like  # the path comes first


def roofline(X: sp.csr_array, y: np.ndarray) -> None:
    """A pass of coordinate descent over all rows, against reading the bytes of X once, by turns."""
    columns, ones = X.indices[: len(X.indices) // 2 * 2].view(np.int64), np.ones(X.shape[1])
    for threads in (1, 2):
        problem = Problem(Rows(X, threads), y.astype(float), np.ones(len(y)), LOSSES["hinge"], fit_intercept=False)
        turns = [
            (
                seconds(lambda: (X.data.sum(), columns.sum()), 3),
                seconds(lambda rows=problem.rows: rows.scores(ones), 3),
                seconds_per_pass(problem),
            )
            for _ in range(40)
        ]
        reading, scores, a_pass = map(min, zip(*turns, strict=True))
        print(
            f"  {threads} thread{'s' * (threads > 1)}: reading {1e3 * reading:.1f} ms, Xw {1e3 * scores:.1f} ms, "
            f"a pass {1e3 * a_pass:.1f} ms = {a_pass / reading:.2f} × reading",
            flush=True,
        )


def seconds_per_pass(problem: Problem) -> float:
    """Of the second, which still visits all rows."""
    descent = SOLVERS["dual_cd"].solve(problem, tol=1e-9, seed=0, start=None)
    next(descent)
    begin = time.perf_counter()
    visits = next(descent).visits
    return (time.perf_counter() - begin) * problem.rows.n / visits


def slope(sizes: list[float], times: list[float]) -> float:
    """The exponent k of times ~ sizes^k."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def classes(name: str, X: object, y: np.ndarray) -> None:
    """All classes of a set, against LinearSVC at the first of its tolerances that is as accurate."""
    ours = LinearSVM(fit_intercept=False).fit(X, y)
    took = {jobs: seconds(lambda jobs=jobs: LinearSVM(fit_intercept=False, n_jobs=jobs).fit(X, y)) for jobs in (1, 2)}
    mine = certify(X, y, ours.coef_, fit_intercept=False).relative_gap
    for tol in (1.0, 1e-1, 1e-2, 1e-3, 1e-4):
        theirs = LinearSVC(loss="hinge", fit_intercept=False, tol=tol, max_iter=20_000).fit(X, y)
        gap = certify(X, y, theirs.coef_, fit_intercept=False).relative_gap
        if gap <= max(mine, 1e-3):
            break
    svc = seconds(lambda: LinearSVC(loss="hinge", fit_intercept=False, tol=tol, max_iter=20_000).fit(X, y))
    print(
        f"  {name}: {took[1]:.3f} s on 1 thread, {took[2]:.3f} s on 2, worst gap {mine:.0e}; "
        f"LinearSVC {svc:.3f} s, {gap:.0e}: {svc / took[2]:.1f} ×",
        flush=True,
    )


def main() -> None:
    """Prints all sections."""
    warnings.simplefilter("ignore")
    X, y = text_like(800_000, 0, 47_000)
    print("Cost of a pass, text-like 200,000 × 47,000")
    roofline(X[:200_000], y[:200_000])

    print("Growth with the number of rows, text-like with 47,000 features, C = 1")
    sizes = [25_000, 50_000, 100_000, 200_000, 400_000, 800_000]
    times = [seconds(lambda n=n: LinearSVM(fit_intercept=False).fit(X[:n], y[:n])) for n in sizes]
    print("  " + ", ".join(f"{n:,}: {t:.2f} s" for n, t in zip(sizes, times, strict=True)))
    print(f"  seconds ~ rows^{slope(sizes, times):.2f}")

    X, y = X[:100_000], y[:100_000]
    print("Growth with C, 100,000 such rows")
    strengths = [0.01, 0.1, 1.0, 10.0]
    times = [seconds(lambda C=C: LinearSVM(C, fit_intercept=False).fit(X, y)) for C in strengths]
    print("  " + ", ".join(f"C = {C:g}: {t:.2f} s" for C, t in zip(strengths, times, strict=True)))

    print("With an unpenalised bias, against without")
    ratios = [seconds(lambda C=C: LinearSVM(C).fit(X, y)) / t for C, t in zip(strengths, times, strict=True)]
    print("  " + ", ".join(f"C = {C:g}: {ratio:.2f}" for C, ratio in zip(strengths, ratios, strict=True)))
    print(f"  geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")

    print("A path of 10 values of C from 0.1 to 10, against the most expensive of them alone")
    Cs = np.logspace(-1, 1, 10)
    alone = max(seconds(lambda C=C: LinearSVM(C).fit(X, y), 1) for C in Cs)
    together = seconds(lambda: path(X, y, Cs), 1)
    print(f"  {together:.2f} s against {alone:.2f} s: {together / alone:.2f} ×")

    print("All classes, one against the rest, against LinearSVC to the same worst gap")
    rng = np.random.default_rng(0)
    X, _ = text_like(20_000, 2, 20_000)
    classes("20,000 texts, 20 classes", X, np.argmax(X @ rng.standard_normal((20_000, 20)), axis=1))
    digits, label = load_digits(return_X_y=True)
    classes("digits, 10 classes", digits / 16, label)


if __name__ == "__main__":
    main()

"""Does every fit reach a relative gap of 1e-6, and is it there before LinearSVC has returned its answer?

Noisy Gaussian data, scaled or with one column × 100 or × 1e4, and scikit-learn's embedded sets, unscaled; every C, loss
and bias. LinearSVC (hinge, tol=1e-4, one thread) runs beside each hinge row, and `certify` says how far off it is.

    python benchmarks/accuracy.py           # 8 minutes or so, nearly all of it LinearSVC's
    python benchmarks/accuracy.py --small   # without the 50,000 rows
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.svm import LinearSVC

from widemargin import LinearSVM, certify

warnings.simplefilter("ignore")


def noisy(n: int, d: int, big: float) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian rows, labels by a random hyperplane with 15 % of them flipped, the first column scaled."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0, 1, -1)
    y[rng.random(n) < 0.15] *= -1
    X[:, 0] *= big
    return X, y


def sets(small: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray, tuple[float, ...]]]:
    """Name, X, y and the strengths to try."""
    for n, d in ((5_000, 40),) if small else ((5_000, 40), (50_000, 54)):
        for big in (1.0, 100.0, 1e4):
            name = f"{n:,} × {d}" + (f", one column × {big:g}" if big > 1 else "")
            yield name, *noisy(n, d, big), (0.01, 1, 100, 1e4)
    wide = (1e-4, 1e-2, 1, 100, 1e4)
    yield "breast cancer", *load_breast_cancer(return_X_y=True), wide
    yield "wine", *load_wine(return_X_y=True), wide
    digits = load_digits()
    yield "digits, odd or even", digits.data, digits.target % 2, wide


def main() -> None:
    """Prints the table and what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="leave out the 50,000 rows")
    small = parser.parse_args().small
    head = f"{'data':<32}{'C':>7}{'bias':>6}{'seconds':>9}{'rel. gap':>10}{'LinearSVC':>11}{'its gap':>9}{'ratio':>7}"
    print(f"{head}\n{'-' * len(head)}")
    missed = slower = rows = 0
    ratios = []
    for name, X, y, strengths in sets(small):
        for C in strengths:
            for bias in (True, False):
                for loss in ("hinge", "squared_hinge", "logistic"):
                    begin = time.perf_counter()
                    ours = LinearSVM(C, loss=loss, fit_intercept=bias, tol=1e-6).fit(X, y)
                    seconds = time.perf_counter() - begin
                    gap = ours.certificate_.relative_gap
                    rows, missed = rows + 1, missed + (gap > 1e-6)
                    if loss == "hinge":
                        begin = time.perf_counter()
                        theirs = LinearSVC(C=C, loss="hinge", tol=1e-4, fit_intercept=bias).fit(X, y)
                        other = time.perf_counter() - begin
                        proof = certify(X, y, theirs.coef_, theirs.intercept_, C=C, fit_intercept=bias)
                        line = f"{name:<32}{C:>7g}{'yes' if bias else 'no':>6}{seconds:>9.3f}{gap:>10.0e}"
                        print(f"{line}{other:>11.3f}{proof.relative_gap:>9.0e}{other / seconds:>7.1f}", flush=True)
                        if other > 0.1:
                            ratios.append(other / seconds)
                            slower += seconds > other
    print(f"\n{rows} fits (hinge, squared hinge, logistic): {missed} missed the relative gap of 1e-6")
    print(
        f"{len(ratios)} rows where LinearSVC takes over 0.1 s: slower than it on {slower}, "
        f"geometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.1f}"
    )


if __name__ == "__main__":
    main()

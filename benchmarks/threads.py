"""One thread against two on 200,000 sparse rows: the seconds, and whether the bits are the same.

python benchmarks/threads.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from widemargin import LinearSVM, LogisticRegression

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import text_like  # the path comes first


def main() -> None:
    """Prints the table."""
    X, y = text_like(200_000, seed=0)
    print(f"{X.shape[0]:,} × {X.shape[1]:,}, {X.nnz:,} non-zeros; best of five, tol=1e-3")
    print(f"{'':<20}{'1 thread':>10}{'2 threads':>11}{'ratio':>7}{'same bits':>11}")
    for make in (LinearSVM, LogisticRegression):
        seconds, fits = [], []
        for n_jobs in (1, 2):
            runs = []
            for _ in range(5):
                begin = time.perf_counter()
                model = make(n_jobs=n_jobs, solver="dual_cd").fit(X, y)
                runs.append(time.perf_counter() - begin)
            seconds.append(min(runs))
            fits.append(model)
        same = np.array_equal(fits[0].coef_, fits[1].coef_) and np.array_equal(fits[0].intercept_, fits[1].intercept_)
        print(f"{make.__name__:<20}{seconds[0]:>9.2f}s{seconds[1]:>10.2f}s{seconds[0] / seconds[1]:>7.2f}{same!s:>11}")


if __name__ == "__main__":
    main()

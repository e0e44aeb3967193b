"""How KernelSVM grows: seconds, support vectors and memory with `cache_size=500`, from 5,000 rows to 100,000.

python benchmarks/kernel_scaling.py --data DIR     forest cover (DIR/covtype.npz), columns / max, rbf γ = 2, C = 10
python benchmarks/kernel_scaling.py                generated rows of 20 columns

The last column is nanoseconds per pair of a row and a support vector: time that grows no faster than n·nSV keeps it
level or lets it fall. MB is the peak of memory above the rows. Data as they come, in metres and degrees, are tried too.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from kernel_search import rows_of
from peak_memory import PeakMemory

from widemargin import KernelSVM

SIZES = (5_000, 10_000, 20_000, 50_000, 100_000)


def main() -> None:
    """Fits all sizes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder with covtype.npz and covtype.y.npy")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="rows of the largest set")
    parser.add_argument("--tol", type=float, default=1e-3)
    chosen = parser.parse_args()
    X, y = rows_of(chosen.data, chosen.most)
    print(f"{'rows':>9}{'seconds':>10}{'SVs':>9}{'gap':>10}{'MB':>8}{'ns / (n·nSV)':>14}")
    for n in SIZES:
        if n > chosen.most:
            break
        A, b = np.ascontiguousarray(X[:n]), y[:n]
        model = KernelSVM(C=10, gamma=2.0, tol=chosen.tol, cache_size=500)
        with PeakMemory() as memory:
            begin = time.perf_counter()
            model.fit(A, b)
            took = time.perf_counter() - begin
        pairs, gap = n * len(model.support_), model.certificate_.relative_gap
        row = f"{n:>9,}{took:>10.2f}{len(model.support_):>9,}{gap:>10.1e}{memory.megabytes:>8.0f}"
        print(f"{row}{1e9 * took / pairs:>14.2f}", flush=True)
    n = min(10_000, chosen.most)
    scale = np.logspace(0, 4, X.shape[1])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        model = KernelSVM(C=10, tol=chosen.tol, cache_size=500).fit(X[:n] * scale, y[:n])
    took, gap = time.perf_counter() - begin, model.certificate_.relative_gap
    print(
        f"unscaled, columns × 1 … 10,000, {n:,} rows: {took:.2f} s, gap {gap:.1e}",
        *[f"({one.message})" for one in said],
    )


if __name__ == "__main__":
    main()

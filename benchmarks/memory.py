"""Peak memory of a fit above its input, for 500 MB of float32 in C order, F order and CSR with int64 indices.

python benchmarks/memory.py
"""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import scipy.sparse as sp
from peak_memory import PeakMemory

ROWS = 1_250_000


def make(kind: str) -> tuple[object, int]:
    """About 500 MB of random rows, and their exact size."""
    rng = np.random.default_rng(0)
    if kind == "csr":
        starts = np.arange(0, 33 * ROWS + 1, 33, dtype=np.int64)
        columns = (rng.integers(0, 1000, (ROWS, 33)) + 1000 * np.arange(33)).ravel()
        X = sp.csr_array((rng.random(33 * ROWS, dtype=np.float32), columns, starts), shape=(ROWS, 33_000))
        return X, X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    X = np.empty((ROWS, 100), dtype=np.float32, order=kind)
    for begin in range(0, ROWS, 10_000):
        X[begin : begin + 10_000] = rng.random((10_000, 100), dtype=np.float32)
    return X, X.nbytes


def measure(kind: str, solver: str, loss: str) -> None:
    """Prints the peak above the input and the input's size, in MB."""
    from widemargin import LinearSVM

    warnings.simplefilter("ignore")
    X, size = make(kind)
    y = np.random.default_rng(1).integers(0, 2, ROWS)
    LinearSVM(loss=loss, solver=solver, max_iter=1).fit(X[:1000], y[:1000])
    with PeakMemory() as peak:
        LinearSVM(0.01, loss=loss, solver=solver, max_iter=5).fit(X, y)
    print(peak.megabytes, size / 1e6)


def main() -> None:
    """Prints the table, each line from a process of its own."""
    print(f"{'':<15}{'loss':<10}{'solver':<16}{'input':>9}{'peak above':>12}{'allowed':>10}")
    for kind, label in (("C", "dense, C order"), ("F", "dense, F order"), ("csr", "CSR, int64")):
        hinge = ("auto", "dual_cd") if kind == "csr" else ("auto", "dual_cd", "interior_point")
        for solver, loss in (*((one, "hinge") for one in hinge), ("auto", "logistic")):
            command = [sys.executable, __file__, kind, solver, loss]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            peak, size = (float(number) for number in run.stdout.split())
            allowed = f"{0.25 * size + 100:>7.0f} MB"
            print(f"{label:<15}{loss:<10}{solver:<16}{size:>6.0f} MB{peak:>9.0f} MB{allowed}", flush=True)


if __name__ == "__main__":
    measure(*sys.argv[1:]) if len(sys.argv) > 1 else main()

"""Seconds of a 10 × 10 search over γ and C with five folds: kernel_grid beside GridSearchCV of SVC and of sklearnex.

python benchmarks/kernel_search.py --data DIR            5,000 rows of covtype (DIR/covtype.npz), columns / max
python benchmarks/kernel_search.py                       5,000 generated rows of 20 columns

GridSearchCV runs as it is (one process) and with one process per core. Every search trains the same 500 models to its
default tolerance, ours to a proved relative gap of 1e-3; best settings and the largest difference of a mean score are
printed beside. --rows makes it smaller, --trainers leaves peers out.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from widemargin import kernel_grid

CS, GAMMAS = np.logspace(-1, 3, 10), np.logspace(-1.5, 1.5, 10)


def rows_of(folder: Path | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of forest cover, or generated ones."""
    rng = np.random.default_rng(0)
    if folder is None:
        X = rng.uniform(-1, 1, (n, 20))
        return X, np.sign(np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n))
    X, y = sp.load_npz(folder / "covtype.npz"), np.load(folder / "covtype.y.npy").astype(float)
    some = rng.permutation(len(y))[:n]
    X = X[some].toarray().astype(np.float64)
    return X / np.maximum(np.abs(X).max(axis=0), 1e-12), y[some]


def search(model: Any, X: np.ndarray, y: np.ndarray, jobs: int | None) -> tuple[float, np.ndarray]:
    """Seconds of GridSearchCV, and the mean score of every γ and C."""
    found = GridSearchCV(model, {"C": CS, "gamma": GAMMAS}, cv=5, n_jobs=jobs, refit=False)
    begin = time.perf_counter()
    found.fit(X, y)
    return time.perf_counter() - begin, found.cv_results_["mean_test_score"].reshape(len(CS), len(GAMMAS)).T


def main() -> None:
    """Runs the searches that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder with covtype.npz and covtype.y.npy")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument(
        "--trainers", default="svc;svc, one process per core;sklearnex", help="peers, semicolons between"
    )
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = rows_of(chosen.data, chosen.rows)
    begin = time.perf_counter()
    ours = kernel_grid(X, y, CS, GAMMAS, cv=5, refit=False)
    took = time.perf_counter() - begin
    g, k = ours.best_index
    print(f"{len(y):,} × {X.shape[1]}, 10 × 10 × 5 models; widest relative gap {ours.relative_gaps.max():.1e}")
    print(
        f"  {'kernel_grid':<32}{took:>9.1f} s   best γ = {GAMMAS[g]:.3g}, C = {CS[k]:.3g}: {ours.best_score:.4f}",
        flush=True,
    )
    peers: dict[str, Any] = {"svc": (SVC(), None), "svc, one process per core": (SVC(), os.cpu_count())}
    try:
        from sklearnex import svm

        peers["sklearnex"] = svm.SVC(), None
    except ImportError:
        print("  sklearnex is not installed: pip install scikit-learn-intelex")
    for name, (model, jobs) in peers.items():
        if name not in chosen.trainers.split(";"):
            continue
        seconds, means = search(model, X, y, jobs)
        order = sorted(np.ndindex(means.shape), key=lambda at: (-means[at], at[1], at[0]))
        g, k = order[0]
        apart = np.abs(means - ours.mean_scores).max()
        print(
            f"  {name:<32}{seconds:>9.1f} s   best γ = {GAMMAS[g]:.3g}, C = {CS[k]:.3g}: {means[g, k]:.4f}   "
            f"{seconds / took:.1f} × ours, scores at most {apart:.4f} apart",
            flush=True,
        )


if __name__ == "__main__":
    main()

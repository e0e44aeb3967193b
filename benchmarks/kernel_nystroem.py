"""Landmarks: KernelSVM(solver="nystroem") beside scikit-learn's pipeline, its gap beside the truth, and as a start.

python benchmarks/kernel_nystroem.py --data DIR     forest cover, a9a, ijcnn1 (DIR/covtype.npz, …)
python benchmarks/kernel_nystroem.py                generated rows

1. All rows with 500 landmarks: seconds of ours and of Nystroem + LinearSVC, which runs in a process of its own and is
   ended after --patience seconds. Both have the same features' problem, C and γ.
2. 20,000 rows: the gap of the exact kernel problem that is reported, its bound and the truth from an exact fit to 1e-6.
3. Exact fits to 1e-3 that begin from the landmarks' α, beside cold ones; the landmarks' own seconds stand apart.
"""

from __future__ import annotations

import argparse
import time
import warnings
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from kernel_race import from_files, generated
from kernel_search import rows_of
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from widemargin import KernelSVM

GAMMA, C, LANDMARKS, TOL = 2.0, 1.0, 500, 1e-3


def _peer(X: np.ndarray, y: np.ndarray, out: Any) -> None:
    """The pipeline's seconds and its accuracy, to `out`."""
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    model = make_pipeline(Nystroem(gamma=GAMMA, n_components=LANDMARKS, random_state=0), LinearSVC(C=C))
    model.fit(X, y)
    out.put((time.perf_counter() - begin, model.score(X[:20_000], y[:20_000])))


def seconds(work: Any) -> tuple[float, Any]:
    """How long it takes, and what it returns."""
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def beside_pipeline(X: np.ndarray, y: np.ndarray, patience: float) -> None:
    """Part 1."""
    model = KernelSVM(C=C, gamma=GAMMA, solver="nystroem", n_components=LANDMARKS, tol=TOL)
    ours, _ = seconds(lambda: model.fit(X, y))
    features, exact = model.approximate_certificate_.relative_gap, model.certificate_.relative_gap
    print(f"{len(y):,} × {X.shape[1]}, rbf γ = {GAMMA:g}, C = {C:g}, {LANDMARKS} landmarks")
    print(
        f"  widemargin             {ours:>8.1f} s   gap of the features' problem {features:.1e}, "
        f"of the exact one at most {exact:.3g}, accuracy {model.score(X[:20_000], y[:20_000]):.4f}",
        flush=True,
    )
    context = get_context("spawn")
    out = context.Queue()
    process = context.Process(target=_peer, args=(X, y, out), daemon=True)
    process.start()
    try:
        theirs, accuracy = out.get(timeout=patience)
        print(f"  Nystroem + LinearSVC   {theirs:>8.1f} s   accuracy {accuracy:.4f}   {theirs / ours:.1f} × ours")
    except Empty:
        print(f"  Nystroem + LinearSVC  >{patience:>8.1f} s   ended there: more than {patience / ours:.1f} × ours")
        process.terminate()
    process.join()


def beside_truth(X: np.ndarray, y: np.ndarray) -> None:
    """Part 2."""
    exact = KernelSVM(C=C, gamma=GAMMA, tol=1e-6).fit(X, y).certificate_
    print(f"\n{len(y):,} rows: (primal − dual)/primal of the exact problem, as reported and as it is")
    for m in (100, 500, 2000):
        proof = KernelSVM(C=C, gamma=GAMMA, solver="nystroem", n_components=m, tol=TOL).fit(X, y).certificate_
        truth = (proof.primal - exact.primal) / proof.primal
        print(
            f"  {m:>5} landmarks   reported {proof.gap / proof.primal:.4f}   true suboptimality {truth:.4f}", flush=True
        )
        assert proof.dual <= exact.primal * (1 + 1e-12)


def as_start(sets: dict[str, tuple[Any, np.ndarray, float, float]]) -> None:
    """Part 3."""
    print(f"\nexact fits to {TOL:g}, cold and from {LANDMARKS} landmarks' α; seconds, best of 3")
    for name, (X, y, cost, gamma) in sets.items():
        cold = min(
            seconds(lambda X=X, y=y, a=cost, b=gamma: KernelSVM(C=a, gamma=b, tol=TOL).fit(X, y))[0] for _ in range(3)
        )
        warm, start = np.inf, np.inf
        for _ in range(3):
            model = KernelSVM(C=cost, gamma=gamma, solver="nystroem", n_components=LANDMARKS, tol=TOL, warm_start=True)
            took, _ = seconds(lambda X=X, y=y, model=model: model.fit(X, y))
            start = min(start, took)
            model.set_params(solver="auto")
            took, _ = seconds(lambda X=X, y=y, model=model: model.fit(X, y))
            warm = min(warm, took)
        print(
            f"  {name:<24}cold {cold:>7.2f}   warm {warm:>7.2f} ({warm / cold:.2f} ×)   landmarks {start:>7.2f}",
            flush=True,
        )


def main() -> None:
    """Runs the three parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder with covtype.npz, a9a.bz2 and ijcnn1.trn.bz2")
    parser.add_argument("--rows", type=int, default=581_012)
    parser.add_argument("--patience", type=float, default=120.0, help="seconds that the pipeline may take")
    parser.add_argument("--parts", default="123")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if "1" in chosen.parts:
        beside_pipeline(*rows_of(chosen.data, chosen.rows), chosen.patience)
    if "2" in chosen.parts:
        beside_truth(*rows_of(chosen.data, 20_000))
    if "3" in chosen.parts:
        tasks = from_files(chosen.data) if chosen.data else generated()
        names = ("a9a", "ijcnn1", "covtype 35,000") if chosen.data else list(tasks)
        as_start(
            {
                n: (tasks[n].X, tasks[n].y, tasks[n].C, tasks[n].kernel.gamma)
                for n in names
                if tasks[n].kernel.name == "rbf"
            }
        )


if __name__ == "__main__":
    main()

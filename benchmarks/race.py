"""Seconds to a given accuracy, ours beside every peer that is installed, on the same objective, in one run.

python benchmarks/race.py                       generated sets; --data DIR adds svmlight (.bz2) and .npz files
python benchmarks/race.py --data DIR --only a9a,imdb --loss hinge --C 1

Each trainer climbs a ladder of its own tolerances. A rung's accuracy is (P(w) − D)/D, where D is the best dual bound
known, so that nobody's own best is the yardstick; the seconds to 1e-3 are those of the quickest rung that gets there.
No bias, so that all solve one problem. Input is handed over in the form that the trainer likes, and only its training
is timed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from widemargin import LinearSVM
from widemargin.data import Rows
from widemargin.losses import LOSSES
from widemargin.problem import Problem

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import text_like  # the path comes first

GOALS = (1e-2, 1e-3, 1e-4, 1e-6)
#: A rung that takes longer than this many seconds is a trainer's last.
PATIENCE = 20.0
TOLERANCES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
PASSES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class Trainer(NamedTuple):
    """A name, the losses it takes, and its ladder: (how to fit, how to get w) for one problem after another."""

    name: str
    losses: tuple[str, ...]
    ladder: Callable[[Any, np.ndarray, float, str], Iterator[Callable[[], np.ndarray]]]


def _ours(n_jobs: int) -> Callable[..., Iterator[Callable[[], np.ndarray]]]:
    def ladder(X, y, C, loss):
        for tol in (1e-2, 1e-3, 1e-4, 1e-6):
            model = LinearSVM(C, loss=loss, fit_intercept=False, tol=tol, n_jobs=n_jobs)
            yield lambda model=model: model.fit(X, y).coef_[0]

    return ladder


def _linear_svc(X, y, C, loss):
    for tol in TOLERANCES:
        model = LinearSVC(C=C, loss=loss, dual=True, fit_intercept=False, tol=tol, max_iter=3000, random_state=0)
        yield lambda model=model: model.fit(X, y).coef_[0]


def _sgd(X, y, C, loss):
    name = {"logistic": "log_loss"}.get(loss, loss)
    for passes in PASSES:
        model = SGDClassifier(
            name, alpha=1 / (C * len(y)), fit_intercept=False, max_iter=passes, tol=None, random_state=0
        )
        yield lambda model=model: model.fit(X, y).coef_[0]


def _logistic(solver: str) -> Callable[..., Iterator[Callable[[], np.ndarray]]]:
    def ladder(X, y, C, loss):
        if solver == "newton-cholesky" and X.shape[1] > 5000:
            return
        for tol in TOLERANCES:
            model = LogisticRegression(C=C, solver=solver, fit_intercept=False, tol=tol, max_iter=2000)
            yield lambda model=model: model.fit(X, y).coef_[0]

    return ladder


def _liblinear(X, y, C, loss):
    try:
        from liblinear.liblinearutil import parameter, problem, train
    except ImportError:
        return
    kinds = {"hinge": (3,), "squared_hinge": (1, 2), "logistic": (7, 0)}[loss]
    data = problem(y, sp.csr_matrix(X, dtype=np.float64))
    for tol in TOLERANCES:
        for kind in kinds:
            options = parameter(f"-s {kind} -c {C} -e {tol} -B -1 -q")

            def fit(options=options):
                model = train(data, options)
                return np.ctypeslib.as_array(model.w, (X.shape[1],)) * model.label[0]

            yield fit


def _snapml(X, y, C, loss):
    try:
        import snapml
    except ImportError:
        return
    options = {"fit_intercept": False, "regularizer": 1 / C, "n_jobs": 2, "max_iter": 3000, "random_state": 0}
    for tol in TOLERANCES:
        if loss == "hinge":
            model = snapml.SupportVectorMachine(loss=loss, tol=tol, **options)
        else:
            model = snapml.LogisticRegression(dual=True, tol=tol, **options)
        yield lambda model=model: np.asarray(model.fit(X, y).coef_, dtype=float).ravel()


TRAINERS = [
    Trainer("widemargin", ("hinge", "squared_hinge", "logistic"), _ours(2)),
    Trainer("widemargin, 1 thread", ("hinge", "squared_hinge", "logistic"), _ours(1)),
    Trainer("LinearSVC", ("hinge", "squared_hinge"), _linear_svc),
    Trainer("SGDClassifier", ("hinge", "squared_hinge", "logistic"), _sgd),
    *(
        Trainer(f"LogisticRegression {solver}", ("logistic",), _logistic(solver))
        for solver in ("lbfgs", "newton-cholesky", "liblinear", "saga")
    ),
    Trainer("liblinear-official", ("hinge", "squared_hinge", "logistic"), _liblinear),
    Trainer("snapml, 2 threads", ("hinge", "logistic"), _snapml),
]


def generated(small: bool) -> dict[str, tuple[Any, np.ndarray]]:
    """The sets that need no file."""
    rng = np.random.default_rng(0)
    shrink = 20 if small else 1

    def tall(n: int, big: float) -> tuple[np.ndarray, np.ndarray]:
        X = rng.standard_normal((n, 54))
        y = np.where(X @ rng.standard_normal(54) + 2 * rng.standard_normal(n) > 0, 1.0, -1.0)
        X[:, 0] *= big
        return X, y

    def sparse(n: int, seed: int, d: int) -> tuple[sp.csr_matrix, np.ndarray]:
        X, y = text_like(n, seed, d)
        return sp.csr_matrix(X), y

    return {
        "text-like": sparse(200_000 // shrink, 0, 47_000),
        "wide": sparse(2000, 1, 100_000),
        "tall": tall(500_000 // shrink, 1.0),
        "tall unscaled": tall(500_000 // shrink, 100.0),
    }


def from_files(folder: Path, only: set[str]) -> dict[str, tuple[Any, np.ndarray]]:
    """Two classes of every file: the positive one, or the first of several, against the rest."""
    sets = {}
    for path in sorted(folder.iterdir()):
        name = path.name.split(".")[0]
        if path.name.endswith((".t.bz2", ".tst.bz2", "-test.npz")) or (only and name not in only):
            continue
        if path.suffix == ".bz2":
            X, y = load_svmlight_file(str(path))
        elif path.suffix == ".npz":
            X, y = sp.load_npz(path), np.load(path.with_suffix(".y.npy"), allow_pickle=False)
        else:
            continue
        classes = np.unique(y)
        chosen = classes[-1] if len(classes) == 2 else classes[0]
        X = sp.csr_matrix(X, dtype=np.float64)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        sets[name] = X, np.where(y == chosen, 1.0, -1.0)
    return sets


def climb(trainer: Trainer, X: Any, y: np.ndarray, C: float, loss: str, bound: Callable[[np.ndarray], float]) -> dict:
    """Seconds to each goal that the trainer reached, and every rung: (seconds, accuracy)."""
    rungs, seconds = [], dict.fromkeys(GOALS, np.inf)
    for fit in trainer.ladder(X, y, C, loss):
        begin = time.perf_counter()
        w = fit()
        took = time.perf_counter() - begin
        if took < 0.3:  # short ones once more: the first run warms the caches for all that follow
            begin = time.perf_counter()
            w = fit()
            took = min(took, time.perf_counter() - begin)
        accuracy = bound(np.ascontiguousarray(w, dtype=float))
        rungs.append((took, accuracy))
        for goal in GOALS:
            if accuracy <= goal:
                seconds[goal] = min(seconds[goal], took)
        if took > PATIENCE or accuracy <= GOALS[-1]:
            break
    return {"seconds": seconds, "rungs": rungs}


def race(name: str, X: Any, y: np.ndarray, C: float, loss: str) -> dict:
    """All trainers on one problem; prints its lines."""
    problem = Problem(Rows(X, 2), y, np.full(len(y), C), LOSSES[loss], fit_intercept=False)
    best = LinearSVM(C, loss=loss, fit_intercept=False, tol=1e-8).fit(X, y).certificate_.dual

    def accuracy(w: np.ndarray) -> float:
        return (problem.primal(w, problem.margins(w, 0.0)) - best) / best

    results = {t.name: climb(t, X, y, C, loss, accuracy) for t in TRAINERS if loss in t.losses}
    print(f"\n{name}  {X.shape[0]:,} × {X.shape[1]:,}  {loss}  C = {C:g}")
    for trainer, result in results.items():
        times = "".join(f"{result['seconds'][goal]:>10.3f}" for goal in GOALS)
        print(f"  {trainer:<36}{times}", flush=True)
    return {"data": name, "C": C, "loss": loss, "results": results}


def summary(races: list[dict]) -> None:
    """Ours as a ratio to the best peer, per row, and the geometric means."""
    print("\nbest peer's seconds / ours, to" + "".join(f"{goal:>10.0e}" for goal in GOALS))
    ratios: dict[tuple[str, float], list[float]] = {}
    for one in races:
        cells = []
        for goal in GOALS:
            ours = one["results"]["widemargin"]["seconds"][goal]
            peers = {k: r["seconds"][goal] for k, r in one["results"].items() if not k.startswith("widemargin")}
            best = min(peers.values())
            cells.append(best / ours if np.isfinite(best) else np.inf)
            for peer, seconds in peers.items():
                if np.isfinite(seconds):
                    ratios.setdefault((peer, goal), []).append(seconds / ours)
        label = f"{one['data']} {one['loss']} C={one['C']:g}"
        print(f"  {label:<36}" + "".join(f"{cell:>10.2f}" for cell in cells))
    print("\ngeometric means over the rows that the peer reached (their number)")
    for peer in dict.fromkeys(name for name, _ in ratios):
        cells = []
        for goal in GOALS:
            them = ratios.get((peer, goal), [])
            cells.append(f"{np.exp(np.mean(np.log(them))):.2f} ({len(them)})" if them else "–")
        print(f"  {peer:<36}" + "".join(f"{cell:>12}" for cell in cells))


def main() -> None:
    """Runs the races that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder of svmlight .bz2 and .npz files")
    parser.add_argument("--only", default="", help="names of sets, with commas between")
    parser.add_argument("--loss", default="hinge,squared_hinge,logistic")
    parser.add_argument("--C", default="0.1,1,10")
    parser.add_argument("--small", action="store_true", help="generated sets of a twentieth of the rows")
    parser.add_argument("--json", type=Path, help="where to write all rungs")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    only = set(filter(None, chosen.only.split(",")))
    sets = {k: v for k, v in generated(chosen.small).items() if not only or k in only}
    if chosen.data:
        sets |= from_files(chosen.data, only)
    print("seconds to" + "".join(f"{goal:>10.0e}" for goal in GOALS).rjust(68))
    races = [
        race(name, X, y, float(C), loss)
        for loss in chosen.loss.split(",")
        for name, (X, y) in sets.items()
        for C in chosen.C.split(",")
    ]
    summary(races)
    if chosen.json:
        chosen.json.write_text(json.dumps(races, default=str))


if __name__ == "__main__":
    main()

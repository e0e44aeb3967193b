"""Seconds to a given accuracy, ours beside every peer that is installed, on the same objective, in one run.

python benchmarks/race.py                       generated sets; --data DIR adds svmlight (.bz2) and .npz files
python benchmarks/race.py --data DIR --only 'a9a;imdb' --loss hinge --C 1

Each trainer climbs a ladder of its own tolerances. A rung's accuracy is (P(w) − D)/D, where D is the best dual bound
known, so that nobody's own best is the yardstick; the seconds to 1e-3 are those of the quickest rung that gets there,
∞ where none does within a patience of 10 s (or --patience). Several classes are trained one against the rest, and the
worst counts. No bias, so that all solve one problem; what one costs us is told beside. Input is handed over in the form
that the trainer likes, and only its training is timed. Short runs that count are run again when all others have had
their turn, several times over: a machine that has other work for a second is slow for whoever's turn it is. MB is the
largest peak of memory above the input over the rungs, where the system tells (Linux).

Writes race.json, all rungs, and race.png, for each trainer the share of rows it solved within a factor of the fastest.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from peak_memory import PeakMemory
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
#: The rung at which a trainer has used up this many seconds is its last, unless said otherwise.
PATIENCE = 10.0
#: What a pass of a peer costs at least, per non-zero: bounds the passes it may be asked for.
NANOSECONDS = 2.0
#: Runs of fewer seconds are run again, and in so many more turns; others have these turns if they take less than so
#: many times the seconds of the best trainer.
SHORT, TURNS, CLOSE = 0.3, 4, 2.0
TOLERANCES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
PASSES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def stored(X: Any) -> int:
    """Numbers in X."""
    return X.nnz if sp.issparse(X) else X.size


def passes(X: Any) -> int:
    """As many as fit into the patience, for trainers that would not stop otherwise."""
    return int(np.clip(1e9 * PATIENCE / NANOSECONDS / stored(X), 50, 3000))


class Trainer(NamedTuple):
    """A name, the losses it takes, and its ladder: (how to fit, how to get w) for one problem after another."""

    name: str
    losses: tuple[str, ...]
    ladder: Callable[[Any, np.ndarray, float, str], Iterator[Callable[[], np.ndarray]]]


def _ours(n_jobs: int) -> Callable[..., Iterator[Callable[[], np.ndarray]]]:
    def ladder(X, y, C, loss):
        for tol in (1e-2, 1e-3, 1e-4, 1e-6):
            model = LinearSVM(C, loss=loss, fit_intercept=False, tol=tol, n_jobs=n_jobs)
            yield lambda model=model: model.fit(X, y).coef_

    return ladder


def _linear_svc(*, dual: bool) -> Callable[..., Iterator[Callable[[], np.ndarray]]]:
    def ladder(X, y, C, loss):
        options = {"dual": dual, "fit_intercept": False, "max_iter": passes(X), "random_state": 0}
        for tol in TOLERANCES:
            model = LinearSVC(C=C, loss=loss, tol=tol, **options)
            yield lambda model=model: model.fit(X, y).coef_

    return ladder


def _sgd(X, y, C, loss):
    name = {"logistic": "log_loss"}.get(loss, loss)
    for count in PASSES:
        if count <= passes(X):
            model = SGDClassifier(
                name, alpha=1 / (C * len(y)), fit_intercept=False, max_iter=count, tol=None, random_state=0
            )
            yield lambda model=model: model.fit(X, y).coef_


def _logistic(solver: str) -> Callable[..., Iterator[Callable[[], np.ndarray]]]:
    def ladder(X, y, C, loss):
        if (solver == "newton-cholesky" and X.shape[1] > 5000) or len(np.unique(y)) > 2:  # it would be multinomial
            return
        for tol in TOLERANCES:
            model = LogisticRegression(C=C, solver=solver, fit_intercept=False, tol=tol, max_iter=passes(X))
            yield lambda model=model: model.fit(X, y).coef_

    return ladder


def _liblinear(*, dual: bool) -> Callable[..., Iterator[Callable[[], np.ndarray]]]:
    def ladder(X, y, C, loss):
        try:
            from liblinear.liblinearutil import parameter, problem, train
        except ImportError:
            return
        if dual and 1000 * NANOSECONDS * stored(X) > 4e9 * PATIENCE:  # its 1,000 passes cannot be cut; LinearSVC's can
            return
        kind = {"hinge": 3, "squared_hinge": 1 if dual else 2, "logistic": 7 if dual else 0}[loss]
        data = problem(y, sp.csr_matrix(X, dtype=np.float64))
        for tol in TOLERANCES:
            options = parameter(f"-s {kind} -c {C} -e {tol} -B -1 -q")

            def fit(options=options):
                model = train(data, options)
                if model.nr_class == 2:
                    return np.ctypeslib.as_array(model.w, (1, X.shape[1])) * model.label[0]
                order = np.argsort([model.label[k] for k in range(model.nr_class)])
                return np.ctypeslib.as_array(model.w, (X.shape[1], model.nr_class)).T[order]

            yield fit

    return ladder


def _snapml(X, y, C, loss):
    try:
        import snapml
    except ImportError:
        return
    options = {"fit_intercept": False, "regularizer": 1 / C, "n_jobs": 2, "max_iter": passes(X), "random_state": 0}
    if len(np.unique(y)) > 2:  # its memory of several classes is not one against the rest
        return
    for tol in TOLERANCES:
        if loss == "hinge":
            model = snapml.SupportVectorMachine(loss=loss, tol=tol, **options)
        else:
            model = snapml.LogisticRegression(dual=True, tol=tol, **options)
        yield lambda model=model: np.asarray(model.fit(X, y).coef_, dtype=float).reshape(1, -1)


TRAINERS = [
    Trainer("widemargin", ("hinge", "squared_hinge", "logistic"), _ours(2)),
    Trainer("widemargin, 1 thread", ("hinge", "squared_hinge", "logistic"), _ours(1)),
    Trainer("LinearSVC", ("hinge", "squared_hinge"), _linear_svc(dual=True)),
    Trainer("LinearSVC, primal", ("squared_hinge",), _linear_svc(dual=False)),
    Trainer("SGDClassifier", ("hinge", "squared_hinge", "logistic"), _sgd),
    *(
        Trainer(f"LogisticRegression {solver}", ("logistic",), _logistic(solver))
        for solver in ("lbfgs", "newton-cg", "newton-cholesky", "liblinear", "saga")
    ),
    Trainer("liblinear-official", ("hinge", "squared_hinge", "logistic"), _liblinear(dual=True)),
    Trainer("liblinear-official, primal", ("squared_hinge", "logistic"), _liblinear(dual=False)),
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

    def sparse(n: int, seed: int, d: int, words: int = 70) -> tuple[sp.csr_matrix, np.ndarray]:
        X, y = text_like(n, seed, d, words)
        return sp.csr_matrix(X), y

    def many_classes(n: int, classes: int) -> tuple[sp.csr_matrix, np.ndarray]:
        """Text whose class is the best of as many random directions, one row in ten mislabelled."""
        X, _ = sparse(n, 2, 20_000)
        y = np.argmax(X @ rng.standard_normal((20_000, classes)), axis=1)
        return X, np.where(rng.random(n) < 0.1, rng.integers(0, classes, n), y).astype(float)

    return {
        "text-like": sparse(200_000 // shrink, 0, 47_000),
        "wide": sparse(2000, 1, 100_000, 2000),
        "tall": tall(500_000 // shrink, 1.0),
        "tall unscaled": tall(500_000 // shrink, 100.0),
        "many classes": many_classes(20_000 // shrink, 20),
    }


def from_files(folder: Path, only: set[str]) -> dict[str, tuple[Any, np.ndarray]]:
    """Every file that is not for testing; of several classes also the first against the rest, under the plain name."""
    sets = {}
    for path in sorted(folder.iterdir()):
        name = path.name.split(".")[0]
        wanted = not only or {name, f"{name}, all classes"} & only
        if not wanted or path.name.endswith((".t.bz2", ".tst.bz2", "-test.npz")):
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
        if len(classes) > 2:
            sets[f"{name}, all classes"] = X, np.searchsorted(classes, y).astype(float)
    return sets


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of them."""
    begin = time.perf_counter()
    found = fit()
    return time.perf_counter() - begin, found


def quickest(fit: Callable[[], Any], *runs: tuple[float, Any]) -> tuple[float, Any]:
    """The quickest of these and more runs, the shorter the more: what else the machine does hits those hardest."""
    more: list[tuple[float, Any]] = []
    while len(more) < 2 or (len(more) < 9 and sum(took for took, _ in more) < 0.1):
        more.append(timed(fit))
    return min([*runs, *more], key=itemgetter(0))


class Rung(NamedTuple):
    """One of a trainer's tolerances: a quick run, and how good that was."""

    fit: Callable[[], Any]
    seconds: float
    accuracy: float


@dataclass
class Climb:
    """A trainer on one problem: its rungs, and its peak of memory."""

    rungs: list[Rung]
    megabytes: float

    def quickest_to(self, goal: float) -> Rung | None:
        """The quickest rung that is so accurate."""
        there = [rung for rung in self.rungs if rung.accuracy <= goal]
        return min(there, key=attrgetter("seconds"), default=None)

    def run_again(self, accuracy: Callable[[np.ndarray], float], best: dict[float, float]) -> None:
        """Gives another turn to the runs that count, if they are short or close to the `best` of all trainers."""
        counting = {id(rung): (rung, goal) for goal in GOALS if (rung := self.quickest_to(goal)) is not None}
        for rung, goal in counting.values():
            if rung.seconds < SHORT or rung.seconds < CLOSE * best[goal]:
                took, w = quickest(rung.fit) if rung.seconds < SHORT else timed(rung.fit)
                if took < rung.seconds:  # and perhaps less accurate: the other one counts as well
                    self.rungs.append(Rung(rung.fit, took, accuracy(np.ascontiguousarray(w, dtype=float))))

    def record(self) -> dict:
        """Seconds to each goal, ∞ where it was not reached, the peak of memory, and every rung: (seconds, accuracy)."""
        best = {goal: self.quickest_to(goal) for goal in GOALS}
        return {
            "seconds": {goal: math.inf if rung is None else rung.seconds for goal, rung in best.items()},
            "megabytes": self.megabytes,
            "rungs": [(rung.seconds, rung.accuracy) for rung in self.rungs],
        }


def climb(
    trainer: Trainer, X: Any, y: np.ndarray, C: float, loss: str, accuracy: Callable[[np.ndarray], float]
) -> Climb:
    """Up the trainer's ladder, until it is as accurate as can be or has used up its patience."""
    up, used = Climb([], 0.0), 0.0
    for fit in trainer.ladder(X, y, C, loss):
        with PeakMemory() as memory:
            took, w = timed(fit)
        used += took
        if took < SHORT:
            took, w = quickest(fit, (took, w))
        up.rungs.append(Rung(fit, took, accuracy(np.ascontiguousarray(w, dtype=float))))
        up.megabytes = max(up.megabytes, memory.megabytes)
        if used > PATIENCE or up.rungs[-1].accuracy <= GOALS[-1]:
            break
    return up


def race(name: str, X: Any, y: np.ndarray, C: float, loss: str) -> dict:
    """All trainers on one problem; prints its lines."""
    classes = np.unique(y)
    rows, targets = Rows(X, 2), classes if len(classes) > 2 else classes[1:]
    problems = [
        Problem(rows, np.where(y == one, 1.0, -1.0), np.full(len(y), C), LOSSES[loss], fit_intercept=False)
        for one in targets
    ]
    proof = LinearSVM(C, loss=loss, fit_intercept=False, tol=1e-8).fit(X, y).certificate_
    bounds = [proof.dual] if len(problems) == 1 else [one.dual for one in proof]

    def accuracy(weights: np.ndarray) -> float:
        each = zip(problems, weights, bounds, strict=True)
        return max((one.primal(w, one.margins(w, 0.0)) - best) / best for one, w, best in each)

    climbs = {t.name: climb(t, X, y, C, loss, accuracy) for t in TRAINERS if loss in t.losses}
    for _ in range(TURNS):
        best = {
            goal: min((rung.seconds for one in climbs.values() if (rung := one.quickest_to(goal))), default=0.0)
            for goal in GOALS
        }
        for one in climbs.values():
            one.run_again(accuracy, best)
    results = {trainer: one.record() for trainer, one in climbs.items()}
    print(f"\n{name}  {X.shape[0]:,} × {X.shape[1]:,}  {loss}  C = {C:g}")
    for trainer, result in results.items():
        times = "".join(f"{result['seconds'][goal]:>10.3f}" for goal in GOALS)
        print(f"  {trainer:<36}{times}{result['megabytes']:>8.0f}", flush=True)
    models = [LinearSVM(C, loss=loss, fit_intercept=bias, tol=1e-3, n_jobs=2) for bias in (False, True)]
    turns = [[quickest(lambda model=model: model.fit(X, y))[0] for model in models] for _ in range(TURNS)]
    without, bias = map(min, zip(*turns, strict=True))
    return {"data": name, "C": C, "loss": loss, "results": results, "bias": bias / without}


def longest(result: dict) -> float:
    """Seconds of the longest run."""
    return max((took for took, _ in result["rungs"]), default=math.inf)


def at_least(result: dict, goal: float) -> float:
    """Seconds to the goal or, where the trainer did not get there, those of its longest run: it would take more."""
    return min(result["seconds"][goal], longest(result))


def summary(races: list[dict]) -> None:
    """Ours as a ratio to the best peer, per row, and the geometric means."""
    head = "".join(f"{goal:>14.0e}" for goal in GOALS)
    print(f"\nbest peer's seconds / ours, to          {head}   ours with a bias / without, to 1e-3")
    ratios: dict[tuple[str, float], list[float]] = {}
    reached: dict[tuple[str, float], int] = {}
    for one in races:
        ours, peers = one["results"]["widemargin"]["seconds"], dict(one["results"])
        both = [result for name, result in peers.items() if name.startswith(("LinearSVC", "liblinear"))]
        if "LinearSVC" in peers:
            peers["the better of LinearSVC and LIBLINEAR"] = {
                "seconds": {goal: min(result["seconds"][goal] for result in both) for goal in GOALS},
                "rungs": min(both, key=longest)["rungs"],
            }
        peers = {
            name: result for name, result in peers.items() if not name.startswith("widemargin,") and result["rungs"]
        }
        del peers["widemargin"]
        bests = [min(result["seconds"][goal] for result in peers.values()) / ours[goal] for goal in GOALS]
        row = "".join(f"{best:>14.2f}" for best in [*bests, one.get("bias", math.nan)])
        print(f"  {one['data'] + ' ' + one['loss']:<30} C={one['C']:<6g}{row}")
        for goal in GOALS:
            for peer, result in peers.items():
                ratios.setdefault((peer, goal), []).append(at_least(result, goal) / ours[goal])
                reached[peer, goal] = reached.get((peer, goal), 0) + math.isfinite(result["seconds"][goal])
    print("\ngeometric means (rows that the peer reached; for the others, its longest run, which was too short)")
    for peer in dict.fromkeys(name for name, _ in ratios):
        cells = []
        for goal in GOALS:
            them = ratios[peer, goal]
            cells.append(f"{np.exp(np.mean(np.log(them))):.2f} ({reached[peer, goal]}/{len(them)})")
        print(f"  {peer:<37}" + "".join(f"{cell:>14}" for cell in cells))
    bias = np.exp(np.nanmean(np.log([one.get("bias", math.nan) for one in races])))  # older files know none
    print(f"  {'ours with a bias / without':<37}{'':>14}{bias:>8.2f}")


def restored(one: dict) -> dict:
    """A race as it was before it was written: goals are numbers."""
    for result in one["results"].values():
        result["seconds"] = {float(goal): seconds for goal, seconds in result["seconds"].items()}
    return one


def draw(races: list[dict], goal: float, path: Path) -> None:
    """For each trainer, the share of races it won, or lost by less than a factor."""
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    factors = np.logspace(0, 2.5, 200)
    for name in dict.fromkeys(name for one in races for name in one["results"]):
        entered = [one["results"] for one in races if name in one["results"]]
        behind = []
        for results in entered:
            best = min(result["seconds"][goal] for result in results.values())
            mine = results[name]["seconds"][goal]
            behind.append(mine / best if math.isfinite(mine) else math.inf)
        ours = name.startswith("widemargin")
        shares = [np.mean(np.array(behind) <= factor) for factor in factors]
        ax.step(factors, shares, where="post", label=name, lw=2.5 if ours else 1.2, ls="-" if ours else "--")
    ax.set(xscale="log", xlabel="times the fastest trainer's seconds", ylim=(0, 1.02))
    ax.set_ylabel(f"share of problems solved to {goal:.0e}")
    ax.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Runs the races that were asked for."""
    global PATIENCE  # which the ladders go by
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder of svmlight .bz2 and .npz files")
    parser.add_argument("--only", default="", help="names of sets, with semicolons between")
    parser.add_argument("--loss", default="hinge,squared_hinge,logistic")
    parser.add_argument("--C", default="0.1,1,10")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a trainer may give up")
    parser.add_argument("--again", type=Path, nargs="+", help="race.json files to sum up instead of a new race")
    parser.add_argument("--small", action="store_true", help="generated sets of a twentieth of the rows")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where race.json and race.png go")
    chosen = parser.parse_args()
    if chosen.again:
        summary([restored(one) for path in chosen.again for one in json.loads(path.read_text())])
        return
    PATIENCE = chosen.patience
    chosen.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    only = set(filter(None, chosen.only.split(";")))
    sets = {k: v for k, v in generated(chosen.small).items() if not only or k in only}
    if chosen.data:
        sets |= {k: v for k, v in from_files(chosen.data, only).items() if not only or k in only}
    print("seconds to" + "".join(f"{goal:>10.0e}" for goal in GOALS).rjust(68) + "MB".rjust(8))
    races = [
        race(name, X, y, float(C), loss)
        for loss in chosen.loss.split(",")
        for name, (X, y) in sets.items()
        for C in chosen.C.split(",")
    ]
    summary(races)
    (chosen.out / "race.json").write_text(json.dumps(races, indent=1))
    draw(races, 1e-3, chosen.out / "race.png")


if __name__ == "__main__":
    main()

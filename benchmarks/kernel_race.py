"""Seconds to a given relative gap, KernelSVM beside every peer that is installed, on the same problem, in one run.

python benchmarks/kernel_race.py                     generated sets; --data DIR adds a9a, w8a, ijcnn1 and covtype
python benchmarks/kernel_race.py --data DIR --only 'a9a;covtype 10,000'

Each trainer climbs a ladder of its own tolerances. Every answer, ours too, is judged by the same certificate: the gap
of its α, made feasible, in float64; of several pairs of classes the worst. The seconds to 1e-3 are those of the
quickest rung that gets there, ∞ where none does within a patience of 60 s (--patience). Only training is timed, on
dense or sparse rows as the set has them, all cores for those who can use them. Short runs have several turns. Every
trainer has a process of its own, which is ended where a single run takes four times the patience and a minute.

Beside it stands a floor: the kernel rows of our solution's support vectors computed once, in float32, by NumPy's matrix
products in blocks of 512, dense if more than a tenth of the numbers are not 0, else by scipy's sparse products.

Writes kernel_race.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.svm import SVC

from widemargin import KernelSVM
from widemargin.data import Rows
from widemargin.kernel_certificate import certify
from widemargin.kernels import Kernel, PointsGram
from widemargin.one_vs_one import Pairs

GOALS = (1e-2, 1e-3, 1e-6)
PATIENCE = 60.0
#: Runs of fewer seconds are run again, so many times in all.
SHORT, TURNS = 3.0, 5


class Task(NamedTuple):
    """Rows, labels, and what is asked of them."""

    X: Any
    y: np.ndarray
    C: float
    kernel: Kernel

    @property
    def parameters(self) -> dict[str, Any]:
        """As KernelSVM and SVC take them."""
        return {
            "C": self.C,
            "kernel": self.kernel.name,
            "gamma": self.kernel.gamma,
            "degree": self.kernel.degree,
            "coef0": self.kernel.coef0,
        }


#: (support, dual_coef, n_support) of a fit, in SVC's layout.
Answer = tuple[np.ndarray, np.ndarray, np.ndarray]
Ladder = Callable[[Task], Iterator[Callable[[], Answer]]]


def _answer(clf: Any) -> Answer:
    coef = clf.dual_coef_
    return clf.support_, coef.toarray() if sp.issparse(coef) else np.asarray(coef), np.asarray(clf.n_support_)


def _ours(n_jobs: int) -> Ladder:
    def ladder(task: Task) -> Iterator[Callable[[], Answer]]:
        for tol in (1e-2, 1e-3, 1e-6):
            clf = KernelSVM(**task.parameters, tol=tol, n_jobs=n_jobs)
            yield lambda clf=clf: _answer(clf.fit(task.X, task.y))

    return ladder


def _svc(task: Task) -> Iterator[Callable[[], Answer]]:
    for tol in (0.5, 1e-1, 1e-2, 1e-3, 1e-5, 1e-7):
        clf = SVC(**task.parameters, tol=tol, cache_size=2000)
        yield lambda clf=clf: _answer(clf.fit(task.X, task.y))


def _sklearnex(task: Task) -> Iterator[Callable[[], Answer]]:
    try:
        from sklearnex import svm
    except ImportError:
        return
    for tol in (0.5, 1e-1, 1e-2, 1e-3, 1e-5, 1e-7):
        clf = svm.SVC(**task.parameters, tol=tol, cache_size=2000)
        yield lambda clf=clf: _answer(clf.fit(task.X, task.y))


def _libsvm(task: Task) -> Iterator[Callable[[], Answer]]:
    try:
        from libsvm.svmutil import svm_parameter, svm_problem, svm_train
    except ImportError:
        return
    kind = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}[task.kernel.name]
    problem = svm_problem(task.y, sp.csr_matrix(task.X, dtype=np.float64), isKernel=False)
    k = task.kernel
    for tol in (0.5, 1e-1, 1e-2, 1e-3, 1e-5, 1e-7):
        options = f"-s 0 -t {kind} -c {task.C} -g {k.gamma} -d {k.degree} -r {k.coef0} -e {tol} -m 2000 -q"

        def fit(options: str = options) -> Answer:
            model = svm_train(problem, svm_parameter(options))
            classes = model.get_labels()
            counts = np.array([model.nSV[i] for i in range(len(classes))])
            support = np.array(model.get_sv_indices()) - 1
            coef = np.array([np.ctypeslib.as_array(model.sv_coef[r], (len(support),)) for r in range(len(classes) - 1)])
            order = np.argsort(classes)
            if not np.array_equal(order, np.arange(len(classes))):
                coef, support, counts = _sorted_by_class(coef, support, counts, order)
            return support, coef if len(classes) > 2 else -coef, counts

        yield fit


def _sorted_by_class(coef: np.ndarray, support: np.ndarray, counts: np.ndarray, order: np.ndarray) -> Any:
    """LIBSVM has classes in the order of the rows; here they ascend, and a pair's first is the positive one."""
    place = np.repeat(np.arange(len(counts)), counts)
    rank = np.argsort(order)
    table = np.zeros_like(coef)
    for s, i in enumerate(place):
        for j in range(len(counts)):
            if j != i:
                value = coef[j - 1 if i < j else j, s]
                new_i, new_j = rank[i], rank[j]
                flipped = (i < j) != (new_i < new_j)
                table[new_j - 1 if new_i < new_j else new_j, s] = -value if flipped else value
    stay = np.argsort(rank[place], kind="stable")
    return table[:, stay], support[stay], counts[order]


TRAINERS: dict[str, Ladder] = {
    "widemargin": _ours(2),
    "widemargin, 1 thread": _ours(1),
    "SVC": _svc,
    "libsvm-official": _libsvm,
    "sklearnex": _sklearnex,
}


class Judge:
    """The certificate of anybody's α, one vs one."""

    def __init__(self, task: Task) -> None:
        self.task, self.classes = task, np.unique(task.y)
        self.pairs = Pairs.of(task.y, self.classes)
        X = task.X[self.pairs.order]
        self.gram = PointsGram(task.kernel, Rows(X, 2))
        self.problems = self.pairs.problems(self.gram, np.full(len(task.y), task.C))

    def gap(self, answer: Answer) -> float:
        """The worst relative gap of all pairs."""
        support, coef, _ = answer
        table = np.zeros((len(self.classes) - 1, len(self.task.y)))
        table[:, support] = coef
        worst = 0.0
        for (i, j), problem in zip(combinations(range(len(self.classes)), 2), self.problems, strict=True):
            index = self.pairs.order[problem.index]
            values = np.where(self.pairs.place[index] == i, table[j - 1, index], table[i, index])
            if not np.isfinite(values).all():
                return math.inf
            worst = max(worst, certify(problem, np.clip(values * problem.y, 0.0, problem.c)).certificate.relative_gap)
        return worst


def floor(task: Task, support: np.ndarray) -> float:
    """Seconds for the support vectors' kernel rows in float32."""
    X, kernel = task.X, task.kernel
    dense = not sp.issparse(X) or X.nnz > 0.1 * X.shape[0] * X.shape[1]
    A = (X.toarray() if sp.issparse(X) else X).astype(np.float32) if dense else sp.csr_matrix(X, dtype=np.float32)
    square = np.asarray((A.multiply(A) if sp.issparse(A) else A * A).sum(axis=1), dtype=np.float32).ravel()
    begin = time.perf_counter()
    for first in range(0, len(support), 512):
        some = support[first : first + 512]
        K = A[some] @ A.T
        K = K.toarray() if sp.issparse(K) else K
        if kernel.name == "rbf":
            K *= -2
            K += square
            K += square[some, None]
            K *= -np.float32(kernel.gamma)
            np.exp(K, out=K)
        else:
            K *= np.float32(kernel.gamma)
            K += np.float32(kernel.coef0)
            np.power(K, np.float32(kernel.degree), out=K)
    return time.perf_counter() - begin


def generated() -> dict[str, Task]:
    """The sets that need no file."""
    rng = np.random.default_rng(0)
    digits = load_digits()
    sets = {"digits": Task(digits.data / 16, digits.target.astype(float), 10.0, Kernel("rbf", 0.05))}
    X = rng.standard_normal((20_000, 50))
    y = np.where(np.sin(X[:, 0] * 2) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(20_000) > 0, 1.0, -1.0)
    y[rng.random(20_000) < 0.05] *= -1
    sets["noisy 20,000 × 50"] = Task(X, y, 1.0, Kernel("rbf", 0.02))
    sets["noisy 20,000 × 50 poly"] = Task(X, y, 1.0, Kernel("poly", 0.02, 3, 1.0))
    images = _images(20_000, rng)
    sets["images 20,000 × 784"] = Task(*images, 10.0, Kernel("rbf", 0.02))
    sets["images 20,000 × 784 poly"] = Task(*images, 10.0, Kernel("poly", 0.02, 3, 1.0))
    sets["text 20,000 × 20,000"] = Task(*_texts(20_000, 20_000, rng), 1.0, Kernel("rbf", 1.0))
    return sets


def _images(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Blurred strokes on 28 × 28 pixels: two classes of curves that bend either way, moved and turned a little."""
    t = np.linspace(-1, 1, 24)
    bend = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    amount = bend * rng.uniform(0.0, 0.8, n)
    angle, length = rng.normal(0, 0.3, n), rng.uniform(7, 9, n)
    grid = np.arange(28.0)
    X = np.empty((n, 784), dtype=np.float32)
    for i in range(n):
        u, v = length[i] * t, length[i] * amount[i] * (t**2 - 0.3) * 2
        a = 13.5 + rng.normal(0, 1) + np.cos(angle[i]) * u - np.sin(angle[i]) * v
        b = 13.5 + rng.normal(0, 1) + np.sin(angle[i]) * u + np.cos(angle[i]) * v
        image = np.exp(-((grid[:, None] - a) ** 2) / 1.5) @ np.exp(-((grid[:, None] - b) ** 2) / 1.5).T
        X[i] = np.where(image > 1e-3, np.minimum(image, 1), 0).ravel()
    return X, bend


def _texts(n: int, d: int, rng: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    """Unit rows of some 60 words, common ones more often, whose class is a noisy vote of the words."""
    words = np.minimum((d * rng.random((n, 60)) ** 3).astype(np.int32), d - 1)
    rows = np.repeat(np.arange(n), 60)
    X = sp.csr_matrix((np.ones(words.size, dtype=np.float32), (rows, words.ravel())), shape=(n, d))
    X.data = (1 + np.log(X.data)) * np.log(d / (1 + X.indices.astype(np.float32))).clip(0.1)
    X = sp.diags_array((1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())).astype(np.float32)) @ X
    vote = X @ rng.standard_normal(d).astype(np.float32)
    X, y = sp.csr_matrix(X), np.where(vote + 0.3 * rng.standard_normal(n) * vote.std() > 0, 1.0, -1.0)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def from_files(folder: Path) -> dict[str, Task]:
    """Adult, web pages, ijcnn1 and forest cover."""
    sets = {}
    for name, C, gamma in (("a9a", 1.0, 0.05), ("w8a", 1.0, 0.05), ("ijcnn1.trn", 16.0, 4.0)):
        path = folder / f"{name}.bz2"
        if path.exists():
            X, y = load_svmlight_file(str(path))
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
            sets[name.split(".")[0]] = Task(X, y, C, Kernel("rbf", gamma))
            if name == "a9a":
                sets["a9a poly"] = Task(X, y, C, Kernel("poly", 0.05, 3, 1.0))
    path = folder / "covtype.npz"
    if path.exists():
        X, y = sp.load_npz(path).toarray(), np.load(folder / "covtype.y.npy").astype(float)
        chosen = np.random.default_rng(0).permutation(len(y))
        for n in (10_000, 35_000):
            some = X[chosen[:n]]
            some = some / np.maximum(np.abs(some).max(axis=0), 1e-12)
            sets[f"covtype {n:,}"] = Task(some.astype(np.float64), y[chosen[:n]], 10.0, Kernel("rbf", 2.0))
    return sets


def climb(trainer: str, task: Task, patience: float, out: Any) -> None:
    """Sends, after every rung, seconds to each goal by the quickest rung that reached it, and the support vectors."""
    warnings.simplefilter("ignore")
    judge, best, support, used = Judge(task), {}, {}, 0.0
    for fit in TRAINERS[trainer](task):
        begin = time.perf_counter()
        answer = fit()
        took = time.perf_counter() - begin
        used += took
        gap = judge.gap(answer)
        for goal in GOALS:
            if gap <= goal and took < best.get(goal, (math.inf, fit))[0]:
                best[goal], support[goal] = (took, fit), answer[0]
        out.send(({goal: best.get(goal, (math.inf,))[0] for goal in GOALS}, support))
        if used > patience or gap <= GOALS[-1]:
            break
    known: dict[int, float] = {}
    for took, fit in best.values():
        if id(fit) not in known:
            known[id(fit)] = took
            for _ in range(TURNS - 1 if took < SHORT else 0):
                begin = time.perf_counter()
                fit()
                known[id(fit)] = min(known[id(fit)], time.perf_counter() - begin)
    out.send(({goal: known[id(best[goal][1])] if goal in best else math.inf for goal in GOALS}, support))
    out.send(None)


def watched(trainer: str, task: Task) -> tuple[dict[float, float], dict[float, np.ndarray]]:
    """The climb in a process of its own, which is ended where a rung takes many times the patience."""
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=climb, args=(trainer, task, PATIENCE, there), daemon=True)
    process.start()
    there.close()
    found: tuple[dict[float, float], dict[float, np.ndarray]] = dict.fromkeys(GOALS, math.inf), {}
    try:
        while here.poll(4 * PATIENCE + 60):
            now = here.recv()
            if now is None:
                break
            found = now
        else:
            process.kill()
    except EOFError:
        print(f"  {trainer} ended with an error")
    process.join()
    return found


def race(name: str, task: Task, wanted: set[str]) -> dict[str, Any]:
    """All trainers on one problem; prints its lines."""
    n, d = task.X.shape
    print(f"\n{name}  {n:,} × {d:,}  {task.kernel}, C = {task.C:g}")
    results, least = {}, math.nan
    for trainer in TRAINERS:
        if wanted and trainer not in wanted:
            continue
        seconds, supports = watched(trainer, task)
        results[trainer] = seconds
        note = ""
        if trainer == "widemargin" and 1e-3 in supports:
            support = supports[1e-3]
            least = min(floor(task, support) for _ in range(3))
            note = f"   {len(support):,} support vectors, floor {least:.3f}"
        print(f"  {trainer:<24}" + "".join(f"{seconds[goal]:>10.3f}" for goal in GOALS) + note, flush=True)
    return {"data": name, "results": results, "floor": least}


def summary(races: list[dict[str, Any]]) -> None:
    """Ours as a ratio to each peer, per row and goal, and the geometric means."""
    peers = [name for name in TRAINERS if not name.startswith("widemargin")]
    print("\npeer's seconds / ours, to " + "  ".join(f"{goal:g}" for goal in GOALS) + "; ours to 1e-3 / floor")
    ratios: dict[tuple[str, float], list[float]] = {}
    for one in races:
        ours, cells = one["results"]["widemargin"], []
        for peer in peers:
            if peer not in one["results"]:
                continue
            each = []
            for goal in GOALS:
                ratio = one["results"][peer][goal] / ours[goal]
                each.append(f"{ratio:.1f}")
                if math.isfinite(ratio):
                    ratios.setdefault((peer, goal), []).append(ratio)
            cells.append(f"{peer} " + " ".join(each))
        print(
            f"  {one['data']:<26}" + "   ".join(f"{cell:<32}" for cell in cells) + f"{ours[1e-3] / one['floor']:>6.2f}"
        )
    print("\ngeometric means over the rows that the peer reached")
    for peer in peers:
        cells = [
            f"{goal:g}: {np.exp(np.mean(np.log(them))):.2f} ({len(them)}/{len(races)})"
            for goal in GOALS
            if (them := ratios.get((peer, goal)))
        ]
        print(f"  {peer:<24}" + "   ".join(cells))


def main() -> None:
    """Runs the races that were asked for."""
    global PATIENCE
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a folder with a9a.bz2, w8a.bz2, ijcnn1.trn.bz2 and covtype.npz")
    parser.add_argument("--only", default="", help="names of sets, with semicolons between")
    parser.add_argument("--trainers", default="", help="names of trainers, with semicolons between")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a trainer may give up")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where kernel_race.json goes")
    chosen = parser.parse_args()
    PATIENCE = chosen.patience
    warnings.simplefilter("ignore")
    sets = generated() | (from_files(chosen.data) if chosen.data else {})
    only = set(filter(None, chosen.only.split(";")))
    trainers = set(filter(None, chosen.trainers.split(";")))
    print("seconds to" + "".join(f"{goal:>10g}" for goal in GOALS).rjust(46))
    races = [race(name, task, trainers) for name, task in sets.items() if not only or name in only]
    if not trainers:
        summary(races)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "kernel_race.json").write_text(json.dumps(races, indent=1))


if __name__ == "__main__":
    main()

"""Kernel machines for many γ and C, held against rows that they were not trained on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from inspect import signature
from itertools import combinations
from numbers import Real
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, _num_samples

from widemargin import _core
from widemargin.certificate import Certificate, Certificates
from widemargin.data import Rows
from widemargin.data.labels import text_of
from widemargin.data.machine import free_memory
from widemargin.estimators.kernel_svm import SHARE, WORKING, IndefiniteKernelWarning, KernelSVM
from widemargin.kernel_paths import Limits, Reached, Together, follow
from widemargin.kernel_problem import KernelProblem
from widemargin.kernel_training import NegativeCurvature
from widemargin.kernels import Kernel, PointsGram
from widemargin.kernels.gram import Source
from widemargin.model_kernel import one_vs_rest_scores
from widemargin.one_against_rest import count_threads
from widemargin.one_vs_one import Pairs
from widemargin.progress import ProgressLine
from widemargin.training import OneBlasThread

Floats = NDArray[np.float64]
#: Of every C the score and the proof of each fold.
Judged = list[tuple[list[float], tuple[Certificate | Certificates, ...]]]


@dataclass(frozen=True)
class KernelGrid:
    """Scores and proofs of every γ and C, and the best model, trained on all rows; printing it shows the scores."""

    gammas: tuple[float, ...]
    Cs: tuple[float, ...]
    #: Of every γ, C and fold.
    scores: Floats
    #: certificates[g][k][fold] is the proof at gammas[g] and Cs[k].
    certificates: tuple[tuple[tuple[Certificate | Certificates, ...], ...], ...]
    #: Fitted to all rows with the best γ and C; None unless `refit`.
    best_estimator: KernelSVM | None

    @property
    def mean_scores(self) -> Floats:
        """Of every γ and C, over the folds."""
        return np.asarray(self.scores.mean(axis=2))

    @property
    def relative_gaps(self) -> Floats:
        """Of every γ, C and fold, the worst over its pairs of classes."""
        return np.array([[[one.relative_gap for one in folds] for folds in row] for row in self.certificates])

    @property
    def best_index(self) -> tuple[int, int]:
        """The places of the best γ and C; of equal scores that of the smallest C counts, then that of the first γ.

        Scores that are no number come last.
        """
        means = np.nan_to_num(np.round(self.mean_scores, 12), nan=-np.inf)
        order = sorted(np.ndindex(means.shape), key=lambda at: (-means[at], self.Cs[at[1]], at[0]))
        return order[0][0], order[0][1]

    @property
    def best_score(self) -> float:
        """The best mean score."""
        return float(self.mean_scores[self.best_index])

    @property
    def best_params(self) -> dict[str, float]:
        """The γ and C that it belongs to."""
        g, k = self.best_index
        return {"C": self.Cs[k], "gamma": self.gammas[g]}

    def __str__(self) -> str:
        heads = ["gamma \\ C", *(f"{C:g}" for C in self.Cs)]
        lines = [heads]
        for gamma, row in zip(self.gammas, self.mean_scores, strict=True):
            lines.append([f"{gamma:.4g}", *(f"{score:.4f}" for score in row)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
        )


def kernel_grid(
    X: Any,
    y: ArrayLike,
    Cs: float | Iterable[float] = (0.1, 1.0, 10.0, 100.0),
    gammas: float | str | Iterable[float | str] | None = None,
    cv: Any = 5,
    *,
    estimator: KernelSVM | None = None,
    scoring: str | Callable[..., float] = "accuracy",
    refit: bool = True,
    sample_weight: ArrayLike | None = None,
) -> KernelGrid:
    """Cross-validated scores of every γ and C, each model with its proof, and the best one trained on all rows.

    Many times faster than as many fits: the sums over the columns, which all γ share, are computed once if they fit
    into memory, every C begins where the one before it ended, folds and pairs of classes run side by side on one
    kernel matrix, several γ at a time if there is room, and one walk over it proves and scores all of them.

    Parameters
    ----------
    X, y, sample_weight : arrays
        As in ``KernelSVM.fit``.
    Cs : numbers > 0
        In any order; results come in the same.
    gammas : numbers > 0, "scale" or "auto"; default=None
        Those of the kernel; "scale" is that of all rows of X. None is the estimator's own.
    cv : int, splitter or iterable, default=5
        As in ``sklearn.model_selection.GridSearchCV``: of an int, as many stratified folds.
    estimator : KernelSVM, default=KernelSVM()
        Kernel, degree, coef0, class_weight, tol, n_jobs and all else; it is not changed. Where two kernel matrices and
        more do not fit into its `cache_size`, by default a quarter of the free memory, kernel values are computed when
        they are needed: scores may then differ in their last digits.
    scoring : str, scorer or function of (y_true, y_pred), default="accuracy"
        Any of scikit-learn's scorers or its name, but those that need probabilities; of a function of (estimator, X, y)
        the estimator can only predict, and X is none.
    refit : bool, default=True
        Whether to train the best model on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import kernel_grid
    >>> X, y = load_iris(return_X_y=True)
    >>> found = kernel_grid(X, y, Cs=[1, 10], gammas=[0.01, 0.1, 1])
    >>> found.best_params, round(found.best_score, 3), bool(found.relative_gaps.max() <= 1e-3)
    ({'C': 1.0, 'gamma': 0.1}, 0.98, True)

    """
    model = KernelSVM() if estimator is None else estimator
    if not isinstance(model, KernelSVM):
        raise TypeError(f"estimator is a {type(model).__name__}; kernel_grid takes a KernelSVM")
    strengths = _numbers(Cs, "Cs")
    model = KernelSVM(**{**model.get_params(), "C": 1.0})
    if callable(model.kernel) or model.kernel == "precomputed":
        raise ValueError(f"kernel={model.kernel!r} has no γ; kernel_grid takes kernels by their names")
    if model.solver == "nystroem":
        raise ValueError("kernel_grid trains exact machines; search solver='nystroem' with GridSearchCV")
    given: Any = model.gamma if gammas is None else gammas
    names = [given] if isinstance(given, str | Real) else list(given)
    if not names:
        raise ValueError("gammas is empty; give at least one number > 0, 'scale' or 'auto'")
    found = [model.set_params(gamma=gamma)._problems(X, y, sample_weight) for gamma in names]
    kernels = [problems[0].gram.kernel for *_, problems in found]
    if gammas is not None and "gamma" not in kernels[0].parameters:
        raise ValueError(f"kernel={model.kernel!r} has no γ; leave gammas away")
    rows, live, pairs, _ = found[0]
    del found
    weights = _weights(X, y, sample_weight)
    if len(live) < len(weights):  # folds are those of all rows; of weight 0 are rows of cost 0
        classes = pairs.classes
        rows, _, pairs, _ = model._problems(X, y, None)
        if len(classes) < len(pairs.classes):
            missing = np.setdiff1d(pairs.classes, classes)[0]
            raise ValueError(f"class {text_of(missing)} has no rows of positive weight; leave its rows out")
    labels = pairs.classes[pairs.place]
    folds = [
        (np.asarray(train), np.asarray(test))
        for train, test in check_cv(cv, labels, classifier=True).split(rows, labels)
    ]
    for number, fold in enumerate(folds):
        for rows_of, which in zip(fold, ("training", "test"), strict=True):
            if not len(rows_of):
                raise ValueError(f"fold {number} of cv has no {which} rows")
    if not folds:
        raise ValueError("cv has no folds; give a number, a splitter of scikit-learn or pairs (train, test)")
    grid = _Grid(model, rows, pairs, folds, weights, _scorer(scoring), count_threads(model.n_jobs))
    scores = np.empty((len(kernels), len(strengths), len(folds)))
    proofs: list[Any] = [None] * len(kernels)
    began, left = time.perf_counter(), scores.size
    with ProgressLine("searching", 0.0, verbose=int(model.verbose), began=began, counted="models left:") as line:
        for done, (g, here) in enumerate(grid.run(kernels, strengths), 1):
            scores[g] = [score for score, _ in here]
            proofs[g] = tuple(each for _, each in here)
            left -= len(strengths) * len(folds)
            line.show(done, time.perf_counter() - began, left)
    result = KernelGrid(tuple(float(k.gamma) for k in kernels), strengths, scores, tuple(proofs), None)
    worst = float(result.relative_gaps.max())
    if grid.curvatures:
        g, curvature = min(grid.curvatures.items())
        warnings.warn(
            f"the kernel is not positive semidefinite with γ = {result.gammas[g]:g}"
            f"{' and others' if len(grid.curvatures) > 1 else ''}: {curvature}. Of such models nothing is proved; use "
            "another kernel or other parameters",
            IndefiniteKernelWarning,
            stacklevel=2,
        )
    elif worst > model.tol:
        warnings.warn(
            f"of {scores.size} models the widest relative gap is {worst:.1e}, asked for was tol={model.tol:.1e}; scale "
            "the columns of X, or ask for a larger tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    if not refit:
        return result
    g, k = result.best_index
    best = KernelSVM(**{**model.get_params(), "C": strengths[k], "gamma": float(kernels[g].gamma)})
    return replace(result, best_estimator=best.fit(X, y, sample_weight))


def _weights(X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Floats:
    """The weight of every row."""
    rows: Floats = _check_sample_weight(sample_weight, np.empty((_num_samples(X), 1)), dtype=np.float64)
    return rows


def _numbers(given: float | Iterable[float], name: str) -> tuple[float, ...]:
    numbers: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    for one in numbers:
        if not isinstance(one, Real) or not 0 < float(one) < np.inf:
            raise ValueError(f"{name} has {one!r}; give finite numbers > 0")
    if not numbers:
        raise ValueError(f"{name} is empty; give at least one number > 0")
    return tuple(map(float, numbers))


class _Grid:
    """The rows, sorted by class and fold, and the problems of all folds and pairs of classes."""

    def __init__(
        self,
        model: KernelSVM,
        X: Any,
        pairs: Pairs,
        folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
        weights: Floats,
        scorer: Callable[[Any, Floats], float],
        threads: int,
    ) -> None:
        self.model, self.pairs, self.folds, self.scorer, self.threads = model, pairs, folds, scorer, threads
        n, k = len(pairs.place), len(pairs.classes)
        first_test = np.full(n, len(folds))
        for number in range(len(folds) - 1, -1, -1):
            first_test[folds[number][1]] = number
        #: Rows of one class and fold lie side by side: the training rows of a fold are a few stretches.
        self.order = np.lexsort((first_test, pairs.place))
        self.X, self.place = X[self.order], pairs.place[self.order]
        self.costs = []
        labels, task = pairs.classes[pairs.place], model._task()
        for number, (train, _) in enumerate(folds):
            c = np.zeros(n)
            np.add.at(c, train, task.costs(labels[train], pairs.classes, weights[train]))  # rows may come twice
            empty = np.setdiff1d(np.arange(k), pairs.place[c > 0])
            if len(empty):
                raise ValueError(
                    f"fold {number} has no training rows of class {text_of(pairs.classes[empty[0]])}; use fewer folds, "
                    "or shuffled ones that keep the classes' shares (StratifiedKFold)"
                )
            self.costs.append(c[self.order])
        #: Of each precision, the sums that all kernels share.
        self.sums: dict[bool, Any] = {}
        self.lock = Lock()
        self.numbers = list(combinations(range(k), 2))
        #: Of each kernel that is not positive semidefinite, by its number.
        self.curvatures: dict[int, NegativeCurvature] = {}

    def run(self, kernels: list[Kernel], Cs: tuple[float, ...]) -> Iterator[tuple[int, Judged]]:
        """The number of each kernel and what it reached, as they come."""
        cache, tol, max_iter = self.model.cache_size, float(self.model.tol), self.model.max_iter
        memory = SHARE * free_memory() if cache is None else 1e6 * cache
        working = WORKING if cache is None else min(WORKING, 1e6 * cache / 4)
        # Of every kernel a matrix, and of that at most a third once more for each problem's active rows.
        matrix = 8.0 * len(self.order) ** 2
        each = matrix * (1 + len(self.costs) / 3)
        at_once = min(self.threads, int((memory - matrix) / each), len(kernels))
        if at_once < 1:
            limits = Limits(tol, max_iter, memory, working)
            with OneBlasThread():
                for g, kernel in enumerate(kernels):
                    yield g, self._of_kernel(g, kernel, Cs, limits)
            return
        stop = Event()
        limits = Limits(tol, max_iter, memory / at_once, working / at_once, stop.is_set)
        # All that computes is done by the workers; each kernel has a thread beside them that waits for its own.
        with (
            OneBlasThread(),
            ThreadPoolExecutor(self.threads, initializer=OneBlasThread) as workers,
            ThreadPoolExecutor(at_once) as waiting,
        ):

            def together(calls: list[Callable[[], Any]]) -> list[Any]:
                return [each.result() for each in [workers.submit(call) for call in calls]]

            running = {
                waiting.submit(self._of_kernel, g, kernel, Cs, limits, together): g for g, kernel in enumerate(kernels)
            }
            try:
                for one in as_completed(running):
                    yield running[one], one.result()
            finally:
                stop.set()
                waiting.shutdown(cancel_futures=True)

    def _of_kernel(
        self, g: int, kernel: Kernel, Cs: tuple[float, ...], limits: Limits, together: Together | None = None
    ) -> Judged:
        """With `together`, the kernel matrix is there as a whole, and its problems are solved at the same time."""
        threads = self.threads if together is None else 1
        gram = PointsGram(kernel, Rows(self.X, threads))
        problems = [
            _problem(gram, self.place, c, i, j, two=len(self.pairs.classes) == 2)
            for c in self.costs
            for i, j in self.numbers
        ]

        def source() -> Source:
            if together is None:
                return gram.source(single=gram.single, memory=limits.memory)
            return together([lambda: self._shared(gram)])[0]  # type: ignore[no-any-return]

        found: dict[int, Any] = {}
        for k, reached in follow(
            problems, Cs, source, limits, threads=threads, together=together or _one_after_another
        ):
            count, scores, proofs = len(self.numbers), [], []
            for number, (_, test) in enumerate(self.folds):
                here = reached[number * count : (number + 1) * count]
                scores.append(self._score(here, test))
                each = tuple(one.certificate for one in here)
                proofs.append(each[0] if count == 1 else Certificates(self.pairs.names, each))
            found[k] = scores, tuple(proofs)
            for one in reached:
                if one.curvature is not None:
                    rows = self.order[one.curvature.rows]
                    self.curvatures.setdefault(g, replace(one.curvature, rows=rows))
        return [found[k] for k in range(len(Cs))]

    def _shared(self, gram: PointsGram) -> Source:
        """The kernel matrix, made of the sums that all kernels share."""
        with self.lock:
            if gram.single not in self.sums:
                kind = _core.KernelSums32 if gram.single else _core.KernelSums64
                self.sums[gram.single] = kind.of(
                    gram.kernel.function, gram.rows.core, gram.shift, gram.sparse, self.threads
                )
        return self.sums[gram.single].source(gram.kernel.function, gram.threads)  # type: ignore[no-any-return]

    def _score(self, reached: list[Reached], test: NDArray[np.intp]) -> float:
        at = np.empty(len(self.order), dtype=np.intp)
        at[self.order] = np.arange(len(self.order))
        scores = np.column_stack([one.scores[at[test]] + one.b for one in reached])
        classes = self.pairs.classes
        if len(classes) == 2:
            decision = scores[:, 0]
            chosen = classes[(decision > 0).astype(np.intp)]
        else:
            decision = one_vs_rest_scores(scores, len(classes))
            chosen = classes[(decision if self.model.break_ties else np.rint(decision)).argmax(axis=1)]
        known = _Known(classes, chosen, decision)
        return float(self.scorer(known, classes[self.pairs.place[test]]))


def _one_after_another(calls: list[Callable[[], Any]]) -> list[Any]:
    return [call() for call in calls]


def _problem(gram: PointsGram, place: NDArray[np.intp], c: Floats, i: int, j: int, *, two: bool) -> KernelProblem:
    """The problem of a pair of classes, whose rows are stretches of the kernel matrix; of two classes all rows.

    Then those of the fold have cost 0, and the kernel matrix need not be copied without them.
    """
    chosen = np.ones(len(c), dtype=bool) if two else ((place == i) | (place == j)) & (c > 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    segments = tuple((int(a), int(b - a)) for a, b in edges.reshape(-1, 2))
    positive = j if two else i
    return KernelProblem.of(gram, segments, np.where(place[chosen] == positive, 1.0, -1.0), c[chosen])


class _Known(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """What a scorer asks: predictions that are known already."""

    def __init__(self, classes: Any = None, chosen: Any = None, decision: Any = None) -> None:
        self.classes_, self.chosen, self.decision = classes, chosen, decision

    def fit(self, X: Any, y: Any) -> _Known:
        return self

    def predict(self, X: Any) -> Any:
        return self.chosen

    def decision_function(self, X: Any) -> Any:
        return self.decision


def _scorer(scoring: str | Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    """A function of what is known of a model and the labels."""
    if scoring == "accuracy":
        return lambda known, y: float(np.mean(known.chosen == y))
    if callable(scoring) and not hasattr(scoring, "_score_func"):  # no scorer of scikit-learn
        if len(signature(scoring).parameters) == 3:
            judge: Callable[..., float] = scoring
            return lambda known, y: judge(known, np.zeros((len(y), 1)), y)
        return lambda known, y: scoring(y, known.chosen)
    named = get_scorer(scoring)
    if getattr(named, "_response_method", "") == "predict_proba":
        raise ValueError(f"scoring={scoring!r} needs probabilities, and KernelSVM has none; choose another")
    return lambda known, y: named(known, np.zeros((len(y), 1)), y)

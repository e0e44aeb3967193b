"""Several classes, each against the rest: their problems, and their fits side by side.

This is what an estimator does once its input is read. It needs no scikit-learn, whose import takes longer than many
fits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import training
from widemargin.certificate import Certificate, Certificates, InseparableError, SeparableError
from widemargin.data import Rows
from widemargin.data.labels import distinct
from widemargin.data.machine import cores_at_hand
from widemargin.losses import LOSSES
from widemargin.problem import Problem
from widemargin.progress import ProgressLine
from widemargin.solvers import Solver, Start, State, begins_with_descent, choose, lanes, side_by_side

Floats = NDArray[np.float64]

#: Solvers that keep a large part of the Gram matrix.
HEAVY = ("hildreth", "qp", "smo")
#: Non-zeros from which on classes are trained side by side.
LITTLE = 50_000


@dataclass(frozen=True)
class OneAgainstRest:
    """Minimises ½‖w‖² + Σ cᵢ φ(yᵢ(w·xᵢ + b)) for each class; the parameters are those of :class:`LinearSVM`."""

    C: float = 1.0
    loss: str = "hinge"
    fit_intercept: bool = True
    class_weight: Any = None
    solver: str | Solver = "auto"
    tol: float = 1e-3
    max_iter: int | None = None

    def check(self) -> None:
        """Raises if a parameter is not what it should be."""
        if not isinstance(self.C, Real) or not self.C > 0:
            raise ValueError(f"C={self.C!r}; it must be a number > 0")
        if self.loss not in LOSSES:
            usable = [name for name in LOSSES if name != "perceptron"]
            raise ValueError(f"loss={self.loss!r}; choose from {', '.join(map(repr, usable))}")
        if self.loss == "perceptron":
            raise ValueError("loss='perceptron' with the penalty ½‖w‖² is minimised by w = 0; use loss='hinge'")
        if not isinstance(self.tol, Real) or not self.tol > 0:
            raise ValueError(f"tol={self.tol!r}; it must be a number > 0, the relative gap to reach")
        if self.max_iter is not None and (not isinstance(self.max_iter, Integral) or self.max_iter < 1):
            raise ValueError(
                f"max_iter={self.max_iter!r}; it must be a whole number ≥ 1, or None for as many as it takes"
            )

    def problems(self, rows: Rows, y: NDArray[Any], weights: Floats) -> tuple[NDArray[Any], list[Problem]]:
        """The classes, and the problem of each of them (of the second, if there are two); `weights` are of the rows."""
        counts = weights > 0
        classes = distinct(y if counts.all() else y[counts])
        if len(classes) < 2:
            found = f"only one class, {classes[0]}," if len(classes) else "no class"
            raise ValueError(f"y has {found} among the rows of positive weight; a classifier needs at least 2 classes")
        strengths, loss = self.costs(y, classes, weights), LOSSES[self.loss]
        penalised = bool(np.isfinite(self.C)) or bool(np.isfinite(loss.kink))
        first, *others = signs(y, classes)
        problem = Problem(rows, first, strengths, loss, bool(self.fit_intercept), penalised)
        choose(self.solver, problem)
        return classes, [problem, *(problem.but(y=other) for other in others)]

    def costs(self, y: NDArray[Any], classes: NDArray[Any], weights: Floats) -> Floats:
        """cᵢ = C × class weight × sample weight."""
        strength = weights.copy()
        if self.class_weight is not None:
            strength *= self._class_weights(y, classes, weights)
        if np.isinf(self.C):  # the hard margin, or the loss without a penalty
            return np.where(strength > 0, np.inf, 0.0) if np.isfinite(LOSSES[self.loss].kink) else strength
        with np.errstate(over="ignore"):
            strength *= self.C
            total = float(strength.sum())
        if not np.isfinite(total):
            raise ValueError(f"C={self.C:g} times the weights is too large a number; use a smaller C, or C=inf")
        return strength

    def _class_weights(self, y: NDArray[Any], classes: NDArray[Any], weights: Floats) -> Floats:
        """What `class_weight` says of each row."""
        place = np.searchsorted(classes, y).clip(0, len(classes) - 1)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            totals = np.bincount(place, weights=weights, minlength=len(classes))
            per_class = totals.sum() / (len(classes) * totals)
        elif isinstance(self.class_weight, dict):
            unknown = [key for key in self.class_weight if key not in classes]
            unnamed = [name for name in classes.tolist() if name not in self.class_weight]
            if unknown and unnamed:  # a slip; names of classes that a fold happens to lack are none
                raise ValueError(
                    f"class_weight names {unknown[0]!r}, which is not a class of y, and leaves out {unnamed[0]!r}; "
                    f"the classes are {classes.tolist()}"
                )
            per_class = np.array([self.class_weight.get(name, 1.0) for name in classes], dtype=float)
            if not ((per_class > 0) & (per_class < np.inf)).all():
                raise ValueError(f"class_weight={self.class_weight!r}; weights of classes must be finite and > 0")
        else:
            raise ValueError(f"class_weight={self.class_weight!r}; it must be a dict, 'balanced' or None")
        each: Floats = per_class[place]
        return each

    def fit(
        self,
        problems: list[Problem],
        classes: NDArray[Any],
        *,
        seed: int = 0,
        threads: int = 1,
        verbose: int = 0,
        starts: list[Start] | None = None,
        resumed: State | None = None,
        keep: training.Keep | None = None,
    ) -> list[training.Fit]:
        """One fit per problem, side by side on as many threads as there are; an interrupt ends all of them.

        Where descent can take several classes at once, that is where each of them sets out. `keep` is offered the state
        of the whole training whenever a solver returned, which then goes class by class; `resumed` is such a state.
        """
        began, stop = time.perf_counter(), Event()
        ends = [] if resumed is None else resumed["done"]
        done = [training.judge(problem, **end) for problem, end in zip(problems, ends, strict=False)]
        ways: list[Start | None] = [None] * len(problems) if starts is None else [*starts]
        groups, in_lanes, solved = [range(k, k + 1) for k in range(len(problems))], False, False

        def kept(current: Callable[[], State | None]) -> None:
            assert keep is not None
            keep(lambda: {"done": [training.solution(fit) for fit in done], "current": current()})

        def show(line: ProgressLine, iteration: int, seconds: float, gap: float, rows: int) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            line.show(iteration, seconds, gap, rows)

        def descended(group: range, descend: Callable[..., list[Start]]) -> list[Start]:
            label = f"classes {group[0] + 1} to {group[-1] + 1} of {len(problems)}"
            with ProgressLine(label, self.tol, verbose=verbose, began=began) as line:

                def told(passes: int, gap: float, rows: int) -> None:
                    show(line, passes, time.perf_counter() - began, gap, rows)
                    if keep is not None:
                        kept(lambda: resumed["current"] if resumed is not None and len(done) == len(ends) else None)

                return descend([problems[k] for k in group], tol=self.tol, seed=seed, told=told)

        def begin(group: range) -> list[Start | None]:
            goes_on = resumed is not None and resumed["current"] is not None and group[-1] == len(ends)
            if not in_lanes or goes_on:  # the last of its group, from where it was
                return [ways[k] for k in group]
            return [*descended(group, lanes.descend)]

        def fit_group(group: range) -> list[training.Fit]:
            return [fit(k, start) for k, start in zip(group, begin(group), strict=True)]

        def fit(k: int, start: Start | None) -> training.Fit:
            label = f"class {k + 1} of {len(problems)}" if len(problems) > 1 else "training"
            with ProgressLine(label, self.tol, verbose=verbose, began=began) as line:
                try:
                    return training.fit(
                        problems[k],
                        solver=self.solver,
                        tol=self.tol,
                        max_iter=self.max_iter,
                        seed=seed,
                        start=start,
                        watch=partial(show, line),
                        resumed=resumed["current"] if resumed is not None and k == len(ends) else None,
                        keep=kept if keep is not None else None,
                        limited=True,
                    )
                except (InseparableError, SeparableError) as error:
                    if len(problems) > 2:
                        error.add_note(f"This is for the class {classes[k]} against the rest.")
                    raise

        if len(problems) > 1 and starts is None and self.max_iter is None and self._descends(problems[0]):
            if lanes.can_share(problems):
                groups, in_lanes = lanes.groups(len(problems)), True
            elif side_by_side.can_share(problems):
                descend = partial(side_by_side.descend, solver=str(self.solver), threads=threads)
                first = len(ends) + (resumed is not None and resumed["current"] is not None)
                for group in side_by_side.groups(range(first, len(problems))):
                    ways[group[0] : group[-1] + 1] = descended(group, descend)
                solved = all(way.hopeful for way in ways[first:] if way is not None)
        # Lines of progress would run into each other, some solvers hold too much to have it several times, and proofs
        # and fits of little data would wait for each other's Python.
        alone = verbose or self.solver in HEAVY or solved or (problems[0].rows.nonzeros < LITTLE and not in_lanes)
        workers = 1 if alone else min(threads, len(groups))
        if workers == 1 or keep is not None:
            with training.OneBlasThread():
                for group in groups:
                    if group[-1] < len(done):
                        continue
                    for k, start in zip(group, begin(group), strict=True):
                        if k < len(done):
                            continue
                        done.append(fit(k, start))
                        if done[-1].interrupted and len(problems) > 1:
                            raise KeyboardInterrupt  # it is not done, and must not be kept as if it were
            return done
        from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait  # slow to import

        problems = [problem.but(threads=1) for problem in problems]  # the bits do not depend on it
        # BLAS counts its threads for the whole process or, on OpenMP, for each thread that calls it.
        with training.OneBlasThread(), ThreadPoolExecutor(workers, initializer=training.OneBlasThread) as pool:
            tasks = [pool.submit(fit_group, group) for group in groups]
            try:  # the first to fail ends them all, whichever class it is
                for one in wait(tasks, return_when=FIRST_EXCEPTION).done:
                    one.result()
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
            return [fit for one in tasks for fit in one.result()]

    def _descends(self, problem: Problem) -> bool:
        """Whether coordinate descent comes first."""
        return self.solver == "dual_cd" or (self.solver == "auto" and begins_with_descent(problem))


def signs(y: NDArray[Any], classes: NDArray[Any]) -> list[Floats]:
    """±1 for each class against the rest; for two classes, for the second against the first."""
    targets = classes if len(classes) > 2 else classes[1:]
    return [np.where(y == target, 1.0, -1.0) for target in targets]


def certificate_of(fits: list[training.Fit], classes: NDArray[Any]) -> Certificate | Certificates:
    """The proof of all classes, or the one there is for two."""
    each = tuple(fit.certificate for fit in fits)
    return each[0] if len(each) == 1 else Certificates(tuple(classes), each)


def count_threads(wanted: int | None) -> int:
    """How many threads that number of scikit-learn's `n_jobs` stands for; None is one per core."""
    cores = cores_at_hand()
    if wanted is None:
        return cores
    return min(int(wanted) if wanted > 0 else max(1, cores + 1 + int(wanted)), 4 * cores)  # more would only wait

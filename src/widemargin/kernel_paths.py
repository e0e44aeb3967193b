"""PATHS: the same kernel problems for many C, each begun where the last one ended.

A dual point scaled by C′/C stays feasible when C grows to C′, and so do its scores: the gradient of the start costs
nothing. The problems of all folds and pairs of classes share one kernel matrix; what they reach is judged together,
since one walk over the kernel values in float64 gives the scores of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core, kernel_training
from widemargin.certificate import Certificate, relative
from widemargin.kernel_certificate import certify
from widemargin.kernel_problem import KernelProblem, all_scores
from widemargin.kernel_training import ROUNDS, NegativeCurvature, Stagnation, largest_working_set
from widemargin.kernels.gram import Source
from widemargin.problem import inner

Floats = NDArray[np.float64]
#: Calls functions, which do not depend on each other, and returns what they return.
Together = Callable[[list[Callable[[], Any]]], list[Any]]

#: Share of the gap to prove that solvers claim; the rest is for the rounding of kernel values in float32.
SHARPER = 0.8
#: Rows whose exact scores tell how far a gradient from kernel values in float32 is off.
SAMPLE = 16
#: Bytes of scores that are held at once.
SCORES = 2e8


@dataclass(frozen=True)
class Reached:
    """One problem at one C: its proof, its bias, and the scores f(xᵢ) of all rows of the kernel matrix, without b."""

    certificate: Certificate
    b: float
    scores: Floats
    #: Why nothing is proved, if the kernel is not positive semidefinite.
    curvature: NegativeCurvature | None = None


@dataclass(frozen=True)
class Limits:
    """What a path is given: the gap to prove, rounds at each C, memory in bytes, and whether it is to end."""

    tol: float
    max_iter: int | None = None
    #: Of rows of the kernel matrix that are kept, and of all working sets together.
    memory: float = 1e9
    working_memory: float = 1e9
    stopped: Callable[[], bool] = lambda: False


class _Path:
    """One problem, from C to C."""

    def __init__(self, problem: KernelProblem, source: Source, largest: int, threads: int) -> None:
        self.problem, self.C, self.before = problem, 0.0, (0, 0)
        self.alpha, self.e, self.c = np.zeros(problem.n), problem.y.copy(), np.zeros(problem.n)
        kind = _core.KernelSmo32 if isinstance(source, _core.KernelRows32) else _core.KernelSmo64
        self.core = kind(source, problem.segments, problem.y, self.c, self.alpha, self.e, largest, threads)

    def go_to(self, C: float) -> None:
        """Sets out for another C."""
        np.multiply(self.problem.c, C, out=self.c)
        if self.C > 0:
            scores = self.problem.y - self.e
            square = inner(self.alpha * self.problem.y, scores)
            growth = min(float(self.alpha.sum()) / square if square > 0 else np.inf, C / self.C)
            np.minimum(growth * self.alpha, self.c, out=self.alpha)
            self.e[:] = self.problem.y - growth * scores
        self.C, self.before = C, (self.core.steps, self.core.status[0])
        self.stagnation = Stagnation()

    def advance(self, limits: Limits) -> None:
        """Goes on until the solver sees the gap asked for, has no step to take, or is at its end."""
        while not limits.stopped():
            steps, rounds = self.core.steps - self.before[0], self.core.status[0] - self.before[1]
            if limits.max_iter is not None and rounds >= limits.max_iter:
                return
            most = ROUNDS if limits.max_iter is None else min(ROUNDS, limits.max_iter - rounds)
            self.core.run(most, SHARPER * limits.tol)
            _, primal, dual, _, stalled = self.core.status
            self.stagnation.look(self.core, steps, rounds)
            if stalled or self.stagnation.reached or relative(max(primal - dual, 0.0), dual) <= SHARPER * limits.tol:
                return

    def doubtful(self, tol: float) -> bool:
        """Whether the gradient is so far off that the gap may be larger than the solver sees.

        Rows on the edge of the margin cost c times what their scores are off, in one direction.
        """
        problem, coef = self.problem, self.alpha * self.problem.y
        used = np.flatnonzero(coef)
        if not len(used):
            return False
        some = used[:: max(1, len(used) // SAMPLE)]
        exact = problem.gram.block(problem.index[some], problem.index[used]) @ coef[used]
        off = float(np.std(problem.y[some] - self.e[some] - exact))
        on_edge = float(self.c[(self.alpha > 0) & (self.alpha < self.c)].sum())
        return off * on_edge / 2 > (1 - SHARPER) * tol * self.core.status[2]

    def correct(self, scores: Floats) -> None:
        """Goes on from the gradient of these scores of all rows of the kernel matrix."""
        self.e[:] = self.problem.y - scores[self.problem.index]


def follow(
    problems: Sequence[KernelProblem],
    Cs: Sequence[float],
    source: Callable[[], Source],
    limits: Limits,
    *,
    threads: int,
    together: Together,
) -> Iterator[tuple[int, list[Reached]]]:
    """The number of each C, in ascending order, and what the problems, with costs c for C = 1, reached there.

    `source` makes rows of the kernel matrix. Problems run `together`, each on so many threads: more than one problem at
    a time only if the matrix is there as a whole.
    """
    order = sorted(range(len(Cs)), key=lambda k: Cs[k])
    gram = problems[0].gram
    if not gram.semidefinite:  # whether or not it is there: claims of a gap mean nothing
        for k in order:
            yield k, together([partial(_alone, one, Cs[k], limits, threads) for one in problems])
        return
    rows = source()
    single = isinstance(rows, _core.KernelRows32)
    largest = largest_working_set(limits.working_memory / len(problems) / (4 if single else 8))
    paths = [_Path(problem, rows, largest, threads) for problem in problems]
    batch, most = [], max(1, int(SCORES / 8 / gram.n / len(problems)))
    for k in order:
        for path in paths:
            path.go_to(Cs[k])
        together([partial(path.advance, limits) for path in paths])
        if single and any(together([partial(path.doubtful, limits.tol) for path in paths])):
            (scores,) = together([partial(all_scores, problems, [path.alpha for path in paths])])
            for path, exact in zip(paths, scores, strict=True):
                path.correct(exact)
            together([partial(path.advance, limits) for path in paths])
        if limits.stopped():
            raise KeyboardInterrupt
        batch.append((k, [path.alpha.copy() for path in paths]))
        if len(batch) == most or k == order[-1]:
            (judged,) = together([partial(_judged, problems, Cs, batch, limits, threads)])
            yield from judged
            batch = []


def _judged(
    problems: Sequence[KernelProblem],
    Cs: Sequence[float],
    batch: list[tuple[int, list[Floats]]],
    limits: Limits,
    threads: int,
) -> list[tuple[int, list[Reached]]]:
    """The proofs of these, all scores in one go over the kernel matrix."""
    every = [*problems] * len(batch)
    scores = iter(all_scores(every, [alpha for _, alphas in batch for alpha in alphas]))
    return [
        (
            k,
            [
                _reached(problem, Cs[k], alpha, next(scores), limits, threads)
                for problem, alpha in zip(problems, alphas, strict=True)
            ],
        )
        for k, alphas in batch
    ]


def _reached(problem: KernelProblem, C: float, alpha: Floats, scores: Floats, limits: Limits, threads: int) -> Reached:
    """The proof of α; where it is refused, that of a fit of its own that begins there."""
    one = KernelProblem.of(problem.gram, problem.segments, problem.y, C * problem.c)
    proved = certify(one, alpha, scores[one.index])
    if proved.certificate.relative_gap > limits.tol and limits.max_iter is None:
        return _alone(problem, C, limits, threads, alpha)
    return Reached(proved.certificate, proved.b, scores)


def _alone(problem: KernelProblem, C: float, limits: Limits, threads: int, start: Floats | None = None) -> Reached:
    """What a fit of its own reaches, from this α."""

    def look(*_: object) -> None:
        if limits.stopped():
            raise KeyboardInterrupt

    one = KernelProblem.of(problem.gram, problem.segments, problem.y, C * problem.c)
    (found,) = kernel_training.fit(
        [one],
        tol=limits.tol,
        max_iter=limits.max_iter,
        memory=limits.memory,
        working_memory=limits.working_memory,
        threads=threads,
        starts=None if start is None else [start],
        watch=look,
    )
    if found.interrupted:
        raise KeyboardInterrupt
    (scores,) = all_scores([one], [found.alpha])
    return Reached(found.certificate, found.proved.b, scores, found.curvature)

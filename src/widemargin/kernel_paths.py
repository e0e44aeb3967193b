"""PATHS: the same kernel problems for many C, each begun where the last one ended.

A dual point scaled by C′/C stays feasible when C grows to C′, and so do its scores: the gradient of the start costs
nothing. The problems of all folds and pairs of classes run side by side on one kernel matrix, a thread each; what they
reach is judged together, since one walk over the kernel values in float64 gives the scores of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin import _core, kernel_training
from widemargin.certificate import Certificate, relative
from widemargin.kernel_certificate import certify
from widemargin.kernel_problem import KernelProblem
from widemargin.kernel_training import LARGEST, ROUNDS
from widemargin.kernels import Gram
from widemargin.kernels.gram import Source
from widemargin.problem import inner

Floats = NDArray[np.float64]

#: Solvers claim a gap smaller by this factor than the one to prove: theirs is of rounded kernel values.
SHARPER = 0.5
#: Bytes of scores that are held at once.
SCORES = 2e8


@dataclass(frozen=True)
class Reached:
    """One problem at one C: its proof, its bias, and the scores f(xᵢ) of all rows of the kernel matrix, without b."""

    certificate: Certificate
    b: float
    scores: Floats


class _Path:
    """One problem, from C to C."""

    def __init__(self, problem: KernelProblem, source: Source, largest: int, threads: int) -> None:
        self.problem, self.C = problem, 0.0
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
        self.C = C

    def arrived(self, tol: float) -> bool:
        """Whether the solver sees the gap asked for, or no step to take."""
        _, primal, dual, _, stalled = self.core.status
        return bool(stalled) or relative(max(primal - dual, 0.0), dual) <= tol


def follow(
    problems: Sequence[KernelProblem],
    Cs: Sequence[float],
    source: Source,
    *,
    tol: float,
    threads: int,
    side_by_side: bool,
    working_memory: float = 1e9,
) -> Iterator[tuple[int, list[Reached]]]:
    """The number of each C, in ascending order, and what the problems, with costs c for C = 1, reached there.

    `source` gives rows of the kernel matrix; if that is there as a whole, problems may run `side_by_side`.
    """
    gram = problems[0].gram
    size = 4 if isinstance(source, _core.KernelRows32) else 8
    largest = min(LARGEST, 1 << int(math.log2(max(working_memory / len(problems) / size, 4)) / 2))
    paths = [_Path(problem, source, largest, 1 if side_by_side else threads) for problem in problems]
    batch, most = [], max(1, int(SCORES / 8 / gram.n / len(problems)))
    order = sorted(range(len(Cs)), key=lambda k: Cs[k])
    for k in order:
        for path in paths:
            path.go_to(Cs[k])
        active = paths
        while active:
            if side_by_side:
                type(active[0].core).run_all([path.core for path in active], 16 * ROUNDS, SHARPER * tol, threads)
            else:
                for path in active:
                    path.core.run(ROUNDS, SHARPER * tol)
            active = [path for path in active if not path.arrived(SHARPER * tol)]
        batch.append((k, [path.alpha.copy() for path in paths]))
        if len(batch) == most or k == order[-1]:
            yield from _judged(problems, Cs, batch, gram, tol, threads)
            batch = []


def _judged(
    problems: Sequence[KernelProblem],
    Cs: Sequence[float],
    batch: list[tuple[int, list[Floats]]],
    gram: Gram,
    tol: float,
    threads: int,
) -> Iterator[tuple[int, list[Reached]]]:
    """The proofs of these, all scores in one go over the kernel matrix."""
    coef = np.zeros((gram.n, len(batch) * len(problems)))
    for column, (problem, alpha) in enumerate(
        (one, alpha) for _, all_ in batch for one, alpha in zip(problems, all_, strict=True)
    ):
        coef[problem.index, column] = alpha * problem.y
    used = np.flatnonzero(coef.any(axis=1))
    scores = gram.products(used, coef[used]).T
    column = 0
    for k, alphas in batch:
        reached = []
        for problem, alpha in zip(problems, alphas, strict=True):
            reached.append(_reached(problem, Cs[k], alpha, np.ascontiguousarray(scores[column]), tol, threads))
            column += 1
        yield k, reached


def _reached(problem: KernelProblem, C: float, alpha: Floats, scores: Floats, tol: float, threads: int) -> Reached:
    """The proof of α; where it is refused, that of a fit of its own that begins there."""
    one = KernelProblem.of(problem.gram, problem.segments, problem.y, C * problem.c)
    proved = certify(one, alpha, scores[one.index])
    if proved.certificate.relative_gap > tol:
        again = kernel_training.fit([one], tol=tol, threads=threads, starts=[alpha])[0]
        proved = again.proved
        coef = again.alpha * one.y
        used = np.flatnonzero(coef)
        scores = problem.gram.products(one.index[used], coef[used])
    return Reached(proved.certificate, proved.b, scores)

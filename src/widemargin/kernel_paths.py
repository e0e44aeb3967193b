"""PATHS: the same kernel problems for many C, each begun where the last one ended.

A dual point scaled by C′/C stays feasible when C grows to C′, and so do its scores: the gradient of the start costs
nothing. The problems of all folds and pairs of classes share one kernel matrix; what they reach is judged together,
since one walk over the kernel values in float64 gives the scores of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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

    def advance(self, tol: float, stopped: Callable[[], bool]) -> None:
        """Goes on until the solver sees the gap asked for, or no step to take."""
        while not stopped():
            self.core.run(ROUNDS, SHARPER * tol)
            _, primal, dual, _, stalled = self.core.status
            if stalled or relative(max(primal - dual, 0.0), dual) <= SHARPER * tol:
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
    source: Source,
    *,
    tol: float,
    threads: int,
    together: Together,
    stopped: Callable[[], bool] = lambda: False,
    working_memory: float = 1e9,
) -> Iterator[tuple[int, list[Reached]]]:
    """The number of each C, in ascending order, and what the problems, with costs c for C = 1, reached there.

    `source` gives rows of the kernel matrix. Problems run `together`, each on so many threads: more than one problem at
    a time only if the matrix is there as a whole. Once `stopped`, nothing more is reached.
    """
    gram = problems[0].gram
    size = 4 if isinstance(source, _core.KernelRows32) else 8
    largest = min(LARGEST, 1 << int(math.log2(max(working_memory / len(problems) / size, 4)) / 2))
    paths = [_Path(problem, source, largest, threads) for problem in problems]
    batch, most = [], max(1, int(SCORES / 8 / gram.n / len(problems)))
    order = sorted(range(len(Cs)), key=lambda k: Cs[k])
    for k in order:
        for path in paths:
            path.go_to(Cs[k])
        together([partial(path.advance, tol, stopped) for path in paths])
        if size == 4 and any(together([partial(path.doubtful, tol) for path in paths])):
            alphas = [path.alpha for path in paths]
            (scores,) = together([partial(_scores, problems, [alphas])])
            for path, exact in zip(paths, scores, strict=True):
                path.correct(exact)
            together([partial(path.advance, tol, stopped) for path in paths])
        if stopped():
            return
        batch.append((k, [path.alpha.copy() for path in paths]))
        if len(batch) == most or k == order[-1]:
            (judged,) = together([partial(_judged, problems, Cs, batch, tol, threads)])
            yield from judged
            batch = []


def _scores(problems: Sequence[KernelProblem], alphas: list[list[Floats]]) -> Floats:
    """Of each of the alphas, and each problem's among these, the scores of all rows of the kernel matrix."""
    gram: Gram = problems[0].gram
    coef = np.zeros((gram.n, len(alphas) * len(problems)))
    pairs = ((one, alpha) for all_ in alphas for one, alpha in zip(problems, all_, strict=True))
    for column, (problem, alpha) in enumerate(pairs):
        coef[problem.index, column] = alpha * problem.y
    used = np.flatnonzero(coef.any(axis=1))
    return gram.products(used, coef[used]).T


def _judged(
    problems: Sequence[KernelProblem],
    Cs: Sequence[float],
    batch: list[tuple[int, list[Floats]]],
    tol: float,
    threads: int,
) -> list[tuple[int, list[Reached]]]:
    """The proofs of these, all scores in one go over the kernel matrix."""
    scores = iter(_scores(problems, [alphas for _, alphas in batch]))
    return [
        (
            k,
            [
                _reached(problem, Cs[k], alpha, np.ascontiguousarray(next(scores)), tol, threads)
                for problem, alpha in zip(problems, alphas, strict=True)
            ],
        )
        for k, alphas in batch
    ]


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

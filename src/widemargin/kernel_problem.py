"""KERNEL PROBLEM: min over f, b of ½‖f‖² + Σ cᵢ max(0, 1 − yᵢ(f(xᵢ) + b)) in the space of a kernel, and its dual.

f = Σ vⱼ k(xⱼ, ·), and ‖f‖² = vᵀKv with the kernel matrix K. The dual is max Σ αᵢ − ½‖f(α)‖² over 0 ≤ αᵢ ≤ cᵢ and
Σ αᵢyᵢ = 0 with v = αy; the bias b is the multiplier of Σ αᵢyᵢ = 0. cᵢ = ∞ is the hard margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data import Rows
from widemargin.kernels import Gram, PointsGram
from widemargin.losses import LOSSES
from widemargin.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Rows:
    """What bounds, balance and bias need to know of rows: how many they are, and how many threads there are."""

    n: int
    threads: int


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """Some rows of a kernel matrix, given as stretches (first, count) of it, with labels ±1 and costs."""

    gram: Gram
    segments: tuple[tuple[int, int], ...]
    problem: Problem

    @classmethod
    def of(cls, gram: Gram, segments: tuple[tuple[int, int], ...], y: Floats, c: Floats) -> KernelProblem:
        """The problem with these labels and costs, one per row of the segments."""
        rows: Any = _Rows(len(y), gram.threads)
        return cls(gram, segments, Problem(rows, y, c, LOSSES["hinge"], fit_intercept=True))

    @property
    def n(self) -> int:
        """Rows."""
        return self.problem.rows.n

    @property
    def y(self) -> Floats:
        """Labels."""
        return self.problem.y

    @property
    def c(self) -> Floats:
        """Costs."""
        return self.problem.c

    @property
    def hard(self) -> bool:
        """Whether this is the hard margin, C = ∞."""
        return self.problem.hard

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """Its rows in the kernel matrix."""
        return np.concatenate([np.arange(first, first + count) for first, count in self.segments])

    @property
    def whole(self) -> bool:
        """Whether it has all rows of the kernel matrix."""
        return self.n == self.gram.n

    def scores(self, coef: Floats) -> Floats:
        """f(xᵢ) = Σ coefⱼ k(xⱼ, xᵢ) of every row, in float64."""
        used, index = np.flatnonzero(coef), self.index
        everywhere = self.gram.products(index[used], coef[used])
        return everywhere if self.whole else everywhere[index]

    def linear(self) -> Problem:
        """The same problem for the linear solvers; its kernel must be the linear one."""
        assert isinstance(self.gram, PointsGram)
        assert self.gram.kernel.name == "linear"
        rows = self.gram.rows
        if not self.whole:
            rows = Rows(rows.X[self.index], rows.threads_at_hand)
        return Problem(rows, self.y, self.c, self.problem.loss, fit_intercept=True)

    @property
    def diagonal(self) -> Floats:
        """K(x, x) of every row."""
        return self.gram.diagonal if self.whole else self.gram.diagonal[self.index]

    @property
    def square_lengths(self) -> Floats:
        """‖Φ(x)‖² = |k(x, x)| of every row; where that is 0 for all, Φ being known up to a shift, `sizes`."""
        lengths = np.abs(self.diagonal)
        return lengths if lengths.any() else self.sizes

    @property
    def sizes(self) -> Floats:
        """Of every row, what bounds the rounding of its kernel values, see :attr:`widemargin.kernels.Gram.sizes`."""
        return self.gram.sizes if self.whole else self.gram.sizes[self.index]

    def rounding(self, coef: Floats) -> Floats | None:
        """By how much the scores may be off, see :meth:`widemargin.kernels.Gram.rounding`."""
        used, index = np.flatnonzero(coef), self.index
        everywhere = self.gram.rounding(index[used], coef[used])
        return everywhere if everywhere is None or self.whole else everywhere[index]


def all_scores(problems: Sequence[KernelProblem], alphas: Sequence[Floats]) -> Floats:
    """Σ αⱼyⱼ k(xⱼ, x) of every problem and row x of their kernel matrix, all in one go over that, in float64."""
    gram = problems[0].gram
    coef = np.zeros((gram.n, len(problems)))
    for column, (problem, alpha) in enumerate(zip(problems, alphas, strict=True)):
        coef[problem.index, column] = alpha * problem.y
    used = np.flatnonzero(coef.any(axis=1))
    return np.ascontiguousarray(gram.products(used, coef[used]).T)


def own_scores(problems: Sequence[KernelProblem], alphas: Sequence[Floats]) -> list[Floats]:
    """The same of the rows of each problem."""
    if len(problems) == 1:
        return [problems[0].scores(alphas[0] * problems[0].y)]
    return [scores[one.index] for one, scores in zip(problems, all_scores(problems, alphas), strict=True)]

"""A smooth loss at the margins of all rows and along a step from there: what Newton's method asks of it."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.problem import Problem, inner
from widemargin.solvers.line_search import line_search

Floats = NDArray[np.float64]

#: A line search ends where the slope has fallen to this share.
FLAT = 0.1


class _Sums(NamedTuple):
    """What one walk over the rows yields; see curve.hpp."""

    slope: float
    bend: float
    loss: float
    held: float


class Curve:
    """Margins of a smooth loss, with the α = −cφ′ and the weights cφ″ that belong to them."""

    def __init__(self, problem: Problem, m: Floats) -> None:
        self.problem, self.m = problem, m
        self.alpha, self.weights = np.empty_like(m), np.empty_like(m)
        self.sums = self._follow(np.zeros_like(m), 0.0)

    def _follow(self, dm: Floats, t: float) -> _Sums:
        name, c, threads = self.problem.loss.name, self.problem.c, self.problem.rows.threads
        return _Sums(*_core.follow_curve(name, self.m, dm, t, c, self.alpha, self.weights, threads))

    def search(self, dm: Floats, linear: float, quadratic: float) -> float:
        """Goes to the root t of the slope `linear` + t·`quadratic` + Σ cφ′(m + t·dm)·dm along dm, and returns it."""
        flat = FLAT * abs(linear - inner(self.alpha, dm))
        t, self.sums = line_search(partial(self._follow, dm), linear, quadratic, flat)
        self.m = self.m + t * dm
        return t

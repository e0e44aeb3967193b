"""A smooth loss at the margins of all rows and along a step from there: what Newton's method asks of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.problem import Problem, inner

Floats = NDArray[np.float64]

#: A line search ends where the slope has fallen to this share.
FLAT = 0.1


class Curve:
    """Margins of a smooth loss, with the α = −cφ′ and the weights cφ″ that belong to them."""

    def __init__(self, problem: Problem, m: Floats) -> None:
        self.problem, self.m = problem, m
        self.alpha, self.weights = np.empty_like(m), np.empty_like(m)
        self.slope, self.bend, self.loss, self.held = self._follow(np.zeros_like(m), 0.0)

    def _follow(self, dm: Floats, t: float) -> tuple[float, float, float, float]:
        name, c, threads = self.problem.loss.name, self.problem.c, self.problem.rows.threads
        return _core.follow_curve(name, self.m, dm, t, c, self.alpha, self.weights, threads)

    def search(self, dm: Floats, linear: float, quadratic: float) -> float:
        """Goes to the root t of the slope `linear` + t·`quadratic` + Σ cφ′(m + t·dm)·dm along dm, and returns it.

        The slope only rises: Newton's method inside a bracket.
        """
        steepness = abs(linear - inner(self.alpha, dm))
        t, low, high = 1.0, 0.0, np.inf
        for _ in range(60):
            taken = t
            self.slope, self.bend, self.loss, self.held = self._follow(dm, t)
            slope, bend = linear + t * quadratic + self.slope, quadratic + self.bend
            if abs(slope) <= FLAT * steepness:
                break
            low, high = (t, high) if slope < 0 else (low, t)
            t -= slope / bend if bend > 0 else -np.inf
            if not low < t < high:
                t = (low + high) / 2 if np.isfinite(high) else 2 * low
        self.m = self.m + taken * dm
        return taken

"""What a solver that does not see the gap on its way looks up from time to time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate

Floats = NDArray[np.float64]


class Sight:
    """Primal, dual and the claim that follows, looked up after passes 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15 …

    A look costs as much as a pass; in between, the last values stand, and nothing is claimed.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.primal, self.dual, self.next = np.inf, -np.inf, 1

    def of(self, w: Floats, b: float, alpha: Floats, iteration: int) -> Iterate:
        """The iterate for these points."""
        claim = np.inf
        if iteration >= self.next:
            self.next = max(iteration + 1, iteration * 5 // 4)
            alpha = self._look(w, alpha)
            claim = (self.primal - self.dual) / self.dual if self.dual > 0 else np.inf
        return Iterate(w, b, alpha, self.primal, self.dual, claim, len(self.problem.live), iteration)

    def _look(self, w: Floats, alpha: Floats) -> Floats:
        """Sees the primal at w with its best bias, and the dual at the best feasible point that w and α suggest."""
        problem = self.problem
        scores = problem.rows.scores(w)
        b = problem.best_bias(scores)
        margins = problem.y * (scores + b)
        if problem.hard:
            w, b = problem.canonical(w, b, margins)
            margins = problem.margins(w, b)
        candidates = [_best_multiple(problem, problem.feasible(alpha))]
        if problem.loss.smooth and not problem.hard:
            own = problem.feasible(problem.implied_alpha(margins))
            candidates.append((problem.dual(own, problem.weights(own)), own))
        self.primal = problem.primal(w, margins)
        self.dual, alpha = max(candidates, key=lambda candidate: candidate[0])
        return alpha


def _best_multiple(problem: Problem, alpha: Floats) -> tuple[float, Floats]:
    """The dual at the best tα, t ≤ 1, for a loss whose dual is tΣα − t²/2 ‖w(α)‖²."""
    implied = problem.weights(alpha)
    if not problem.loss.smooth and not problem.hard:
        square = inner(implied, implied)
        share = min(1.0, float(alpha.sum()) / square) if square > 0 else 1.0
        alpha, implied = share * alpha, share * implied
    return problem.dual(alpha, implied), alpha

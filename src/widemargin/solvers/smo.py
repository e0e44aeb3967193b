"""Sequential minimal optimisation: the exact dual with Σ αᵢyᵢ = 0, two coordinates at a time. The kernel is `smo.hpp`.

max Σα − ½‖Σ αᵢyᵢxᵢ‖² over 0 ≤ αᵢ ≤ cᵢ, Σ αᵢyᵢ = 0. Only inner products of rows enter; columns of their matrix are
computed when a step needs them, and the last ones kept. Platt 1998; Fan, Chen and Lin 2005.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin import _core
from widemargin.problem import Problem
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.sight import Sight

#: Bytes of inner products that are kept.
KEPT = 200_000_000
#: After this many steps per row the solver gives up.
ROUNDS = 10_000


class SmoState:
    """α and f = y − Xw on their way, and the columns of XXᵀ that were needed last."""

    def __init__(self, problem: Problem, start: Start | None = None) -> None:
        self.problem, n = problem, problem.rows.n
        self.alpha = np.zeros(n) if start is None else problem.feasible(start.alpha)
        self.f = problem.y - problem.rows.scores(problem.weights(self.alpha))
        slots = int(np.clip(KEPT // (8 * n), 2, max(n, 2)))
        self.columns = np.empty((slots, n))
        self.owner, self.place, self.next = np.full(slots, -1), np.full(n, -1), np.zeros(1, dtype=np.int64)

    def run(self, steps: int, tol: float = 0.0) -> tuple[int, float]:
        """Up to that many steps, while the KKT violation is above `tol`; the steps taken, and the violation."""
        problem = self.problem
        return _core.smo_steps(
            problem.rows.core,
            problem.y,
            problem.c,
            problem.norms,
            self.alpha,
            self.f,
            self.columns,
            self.owner,
            self.place,
            self.next,
            problem.fit_intercept,
            steps,
            tol,
        )


def smo(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates of SMO, one per n steps."""
    state, sight = SmoState(problem, start), Sight(problem)
    for iteration in range(1, ROUNDS + 1):
        taken, _ = state.run(len(problem.live), 1e-14)
        w = problem.weights(state.alpha)
        sight.next = iteration  # a look costs little beside n steps
        yield sight.of(w, 0.0, state.alpha, iteration)
        if taken < len(problem.live):
            return
        state.f = problem.y - problem.rows.scores(w)  # as fresh as new: its rounding would add up

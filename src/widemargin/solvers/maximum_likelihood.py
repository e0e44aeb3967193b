"""Logistic regression without a penalty: Newton's method, and the dual point that Newton's step implies.

min Σ cᵢ log(1 + exp(−yᵢ(w·xᵢ + b))), whose dual demands Σ αᵢyᵢxᵢ = 0. At margins m the losses ask for αᵢ = cᵢσ(−mᵢ),
and the step Δm of the quadratic model for αᵢ − cᵢσ(m)σ(−m)Δmᵢ: that sum is 0 to rounding, so it proves a bound at every
step. The minimum exists only if no hyperplane has all rows on its right side (Albert and Anderson 1984).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin.problem import Problem, inner
from widemargin.solvers.curve import Curve
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.normal_equations import Tall

#: The most columns of the linear system.
LARGEST_SYSTEM = 5000
#: One step after this relative gap the answer is claimed, whatever `tol`: here each step doubles the digits.
SHARP = 1e-9
#: Steps after which there is no minimum to be found.
STEPS = 60


def maximum_likelihood(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates of Newton's method, one per step."""
    if problem.rows.d > LARGEST_SYSTEM:
        raise ValueError(
            f"C=inf would need a matrix of {problem.rows.d:,} × {problem.rows.d:,} for these columns, and takes "
            f"{LARGEST_SYSTEM:,} at most; use a finite C"
        )
    y, c, n = problem.y, problem.c, problem.rows.n
    system = Tall(problem)
    w, b = np.zeros(problem.rows.d), problem.best_bias(np.zeros(n))
    curve, before = Curve(problem, y * b), np.inf
    for iteration in range(1, STEPS + 1):
        system.weigh(curve.weights.copy())
        balance = inner(curve.alpha, y) if problem.fit_intercept else 0.0
        step = system.solve(np.zeros(n), -problem.weights(curve.alpha), balance)
        balanced = curve.alpha + step.alpha
        primal, dual = curve.sums.loss, -np.inf
        if ((balanced >= 0) & (balanced <= c))[problem.live].all():
            dual = problem.dual(balanced, problem.weights(balanced))
        gap = (primal - dual) / dual if dual > 0 else np.inf
        claim, before = gap if before <= min(tol, SHARP) else np.inf, gap
        separates = bool((problem.narrow(curve.m) > 0).all())
        yield Iterate(w, b, balanced, primal, dual, claim, n, iteration, separates=separates)
        t = curve.search(step.m, 0.0, 0.0)
        w, b = w + t * step.w, b + t * step.b

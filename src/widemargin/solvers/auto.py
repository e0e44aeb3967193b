"""The choice between the solvers, and the change of mind when the one chosen crawls.

Costs are counted in nanoseconds of a typical machine from the numbers of the problem, never from a clock: the same data
takes the same path everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin.problem import Problem
from widemargin.solvers.dual_cd import dual_cd
from widemargin.solvers.interior_point import interior_point, operations
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.least_squares import least_squares
from widemargin.solvers.maximum_likelihood import maximum_likelihood

#: The largest linear system that the interior point may build.
LARGEST_SYSTEM = 5000
#: Problems that the interior point solves in less than this (20 ms) are not worth trying anything else.
AT_ONCE = 2e7
#: Nor are smooth problems that Newton's method solves in the time of this many passes: descent takes as many.
PASSES = 25


def auto(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Coordinate descent while it promises to finish first, the interior point otherwise."""
    if not problem.penalised:
        closed = least_squares if problem.loss.name == "squared" else maximum_likelihood
        yield from closed(problem, tol=tol)
        return
    rows, smooth = problem.rows, problem.loss.smooth and not problem.hard
    logistic = smooth and np.isfinite(problem.loss.upper)
    possible = min(rows.n, rows.d) <= LARGEST_SYSTEM
    per_row = 400 if not smooth else 150 if logistic else 60
    second_order = (6 if smooth else 18) * (0.15 * operations(problem) + 6 * rows.nonzeros + per_row * rows.n)
    visit = 3 * rows.nonzeros / rows.n + (300 if logistic else 40)
    at_once = second_order <= AT_ONCE or problem.hard or (smooth and second_order <= PASSES * rows.n * visit)
    done = 0
    descent = dual_cd(problem, tol=tol, seed=seed, start=start)
    if not possible or not at_once:
        spent, trace = 0.0, [(0.0, np.inf)]
        for iterate in descent:
            yield iterate
            done = iterate.iterations
            spent += 5e4 + iterate.active * visit
            trace.append((spent, iterate.claim))
            slow = spent > second_order or (spent > second_order / 10 and _left(trace, tol) > second_order)
            if possible and slow:
                break
        else:
            return
    steps = 0
    for iterate in interior_point(problem, tol=tol):
        steps = iterate.iterations
        iterate.iterations += done
        yield iterate
    for iterate in descent:  # where even that was not enough
        iterate.iterations += steps
        yield iterate


def _left(trace: list[tuple[float, float]], tol: float) -> float:
    """What coordinate descent will still cost if the gap goes on falling as it did over the second half of its work."""
    spent, claim = trace[-1]
    if claim <= tol:
        return 0.0
    half, before = next((at, then) for at, then in trace if at >= spent / 2)
    rate = np.log(before / claim) / (spent - half) if spent > half and np.isfinite(before) else 0.0
    return float(np.log(claim / tol) / rate) if rate > 0 and np.isfinite(claim) else np.inf

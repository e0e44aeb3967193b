"""The choice between the solvers, and the changes of mind when the one chosen crawls.

Costs are counted in nanoseconds of a typical machine from the numbers of the problem, never from a clock: the same data
takes the same path everywhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from widemargin.problem import Problem, inner
from widemargin.solvers.dual_cd import dual_cd
from widemargin.solvers.interior_point import interior_point, operations
from widemargin.solvers.iterate import Iterate, Start, State
from widemargin.solvers.least_squares import least_squares
from widemargin.solvers.maximum_likelihood import maximum_likelihood
from widemargin.solvers.newton_cg import PRODUCTS as AS_IT_LIKES
from widemargin.solvers.newton_cg import newton_cg
from widemargin.solvers.normal_equations import share_of_rows
from widemargin.solvers.proximal_newton import proximal_newton
from widemargin.solvers.sight import Sight
from widemargin.solvers.smo import SmoState

#: The largest linear system that the interior point may build.
LARGEST_SYSTEM = 5000
#: Problems that the interior point solves in less than this (20 ms) are not worth trying anything else.
AT_ONCE = 2e7
#: Except SMO where rows are so few that its steps cost next to nothing: these per row solve most such problems exactly.
FEW, STEPS = 300, 10
#: Nor are smooth problems that Newton's method solves in the time of this many passes: descent takes as many.
PASSES = 25
#: What a return of coordinate descent to Python costs.
A_RETURN = 5e4
#: Passes of coordinate descent before its pace is judged.
FIRST = 2
#: Nor is it tried where Σ c‖x‖² is this many times the number of columns, so much steeper than the penalty is the loss,
#: if the others take no longer than so many passes.
STIFF, QUICK = 1.5e4, 100
#: The relative gap from which on coordinate descent's point is a better start than none.
NEAR = 1.0
#: Products with the curvature that Newton's method takes where nothing stands in its way. It is given up at so many, or
#: where it has cost so many times what descent seemed to have left: early on, descent promises too much.
PRODUCTS, MOST_PRODUCTS, GENEROUS = 60, 600, 6
#: Where no matrix would do instead, it takes as many as it likes once descent has cost so many times what it should.
LATE = 25


#: What coordinate descent had cost and the relative gap it had come to, from the beginning on.
Trace = list[tuple[float, float]]
BEGINNING: Trace = [(0.0, np.inf)]


@dataclass
class Memory:
    """Where it stands: what of coordinate descent was tried, and from where which of the other methods sets out."""

    trying: bool
    reached: Any
    method: int = 0
    done: int = 0
    passes: int = 0
    trace: Trace = field(default_factory=lambda: [*BEGINNING])
    #: The state of coordinate descent, or what returns it.
    descent: Any = None

    def descend(self, iterate: Iterate) -> None:
        """Takes note of what coordinate descent has come to; its iterates count the steps of other methods too."""
        others = self.done - self.passes
        self.passes, self.done = iterate.iterations, iterate.iterations + others
        self.descent, iterate.iterations, iterate.state = iterate.state, self.done, self.state

    def state(self, at_once: int) -> State:
        """A method of second order takes a few steps: it begins anew, coordinate descent goes on."""
        descent = self.descent(at_once) if callable(self.descent) else self.descent
        reached = self.reached and {"alpha": self.reached.alpha.copy(), "b": self.reached.b}
        return {**vars(self), "trace": list(self.trace), "reached": reached, "descent": descent}


def auto(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Coordinate descent while it promises to finish first, a method of second order otherwise, or after its end."""
    if not problem.penalised:
        closed = least_squares if problem.loss.name == "squared" else maximum_likelihood
        yield from closed(problem, tol=tol)
        return
    plan = _plan(problem)
    if not plan:
        yield from dual_cd(problem, tol=tol, seed=seed, start=start)
        return
    at, pace = Memory(trying=plan[0][0] > 0, reached=start), Pace(problem)
    if start is not None and start.state is not None:
        at = Memory(**start.state)
        at.reached = at.reached and Start(**at.reached)
        start = start._replace(state=at.descent) if at.descent else None
    descent = dual_cd(problem, tol=tol, seed=seed, start=start)
    while at.method < len(plan):
        pace.other, method = plan[at.method]
        if at.trying:
            iterate = None
            for iterate in descent:
                at.descend(iterate)
                if iterate.visits or len(at.trace) == 1:  # else it had come to its end before, and is where it was
                    at.trace.append(pace.place(at.trace, iterate.visits, iterate.primal, iterate.dual))
                if pace.crawls(at.trace, tol):
                    break
                yield iterate
            at.trying = False
            if iterate is not None:
                at.reached = Start(iterate.alpha.copy(), iterate.b) if iterate.claim < NEAR else None
                iterate.claim = 0.0  # it may be better than it seems, and a look costs next to nothing
                yield iterate
        steps, last = 0, None
        if method is newton_cg:  # whose plan says nothing of how many products it may take
            method = partial(newton_cg, products=_products(problem, at.trace, tol))
        for last in method(problem, tol=tol, seed=seed, start=at.reached):
            steps = last.iterations
            last.iterations += at.done
            last.state = at.state
            yield last
        if last is not None and last.claim > tol:  # it may be the best that will be found
            last.claim, last.iterations = 0.0, at.done + steps
            yield last
        at.method, at.done = at.method + 1, at.done + steps
        at.trying = at.method < len(plan) and plan[at.method][0] > 0
    for iterate in descent:  # where even that was not enough
        at.descend(iterate)
        yield iterate


def _plan(problem: Problem) -> list[tuple[float, Any]]:
    """The other methods, one after the other, each with the cost up to which descent is tried first, or again."""
    rows, at_once = problem.rows, False
    plan: list[tuple[float, Any]] = []
    if min(rows.n, rows.d) <= LARGEST_SYSTEM:
        at_once = _is_solved_at_once(problem)
        methods: list[Any] = [interior_point]
        if _is_proximal(problem):
            methods.insert(1 if at_once else 0, proximal_newton)
        if at_once and problem.loss.name == "hinge" and rows.n <= FEW:
            methods.insert(0, _a_little_of_smo)
        tried = 0.0 if at_once or _would_crawl(problem) else _cost_of_second_order(problem)
        plan = [(tried if k == 0 else 0.0, method) for k, method in enumerate(methods)]
    in_parts = len(rows.parts) > 1  # which every product would read again
    if problem.loss.smooth and not (problem.hard or at_once or in_parts):
        products = _cost_of_newton_cg(problem)
        plan = plan or [(LATE * products, partial(newton_cg, products=AS_IT_LIKES))]
        if products < plan[0][0]:
            plan.insert(0, (products, newton_cg))
    return plan


def begins_with_descent(problem: Problem) -> bool:
    """Whether coordinate descent is worth a try: another method would take a while, and it would not crawl."""
    if not problem.penalised:
        return False
    plan = _plan(problem)
    return not plan or plan[0][0] > 0


class Pace:
    """How coordinate descent gets on with a problem, and with others of the same rows, and whether that is too slow.

    `other` is what another method would cost.
    """

    def __init__(self, problem: Problem) -> None:
        self.visit, self.other = _cost_of_a_visit(problem), np.inf

    @classmethod
    def at_first(cls, problem: Problem) -> Pace:
        """Beside the first of the other methods."""
        pace, plan = cls(problem), _plan(problem)
        pace.other = plan[0][0] if plan else np.inf
        return pace

    def place(self, trace: Trace, visits: int, primal: float, dual: float) -> tuple[float, float]:
        """The next one after so many visits: its cost, and the relative gap as the last pass saw it.

        That falls more steadily than what the solver makes of it.
        """
        spent = trace[-1][0] + A_RETURN + visits * self.visit
        return spent, (primal - dual) / dual if dual > 0 else np.inf

    def crawls(self, trace: Trace, tol: float) -> bool:
        """Whether, as far as it was tried, it will take longer than another method."""
        (_, before), (spent, gap) = trace[-2:]
        tried = len(trace) > FIRST and spent > self.other / 20 and not gap > before  # rows may have come back
        return spent > self.other or (tried and _left(trace, tol) > self.other)


def after_descent(descent: State, passes: int, trace: Trace) -> State:
    """The state of `auto` where that much of coordinate descent was tried, and came to its state."""
    return Memory(trying=True, reached=None, done=passes, passes=passes, trace=trace, descent=descent).state(1)


def _is_solved_at_once(problem: Problem) -> bool:
    smooth, interior = problem.loss.smooth and not problem.hard, _cost_of_interior_point(problem)
    passes = PASSES * (A_RETURN + problem.rows.n * _cost_of_a_visit(problem))
    return interior <= AT_ONCE or problem.hard or (smooth and interior <= passes)


def _is_proximal(problem: Problem) -> bool:
    """Whether the proximal point method is for it."""
    return problem.loss.name == "hinge" and not problem.hard and problem.rows.d <= problem.rows.n


def _would_crawl(problem: Problem) -> bool:
    """Coordinate descent, while the proximal point method is for it."""
    if not _is_proximal(problem) or inner(problem.c, problem.norms) <= STIFF * problem.rows.d:
        return False
    return _cost_of_second_order(problem) <= QUICK * problem.rows.n * _cost_of_a_visit(problem)


def _a_little_of_smo(problem: Problem, *, tol: float, seed: int, start: Start | None) -> Iterator[Iterate]:
    """The optimum, if a few steps of SMO reach it."""
    state, most = SmoState(problem, start), STEPS * problem.rows.n
    taken, _ = state.run(most, 1e-12)
    if taken < most and np.isfinite(state.alpha).all():  # which it is not where no hard margin exists
        yield Sight(problem).of(problem.weights(state.alpha), 0.0, state.alpha, 1)


def _cost_of_a_visit(problem: Problem) -> float:
    """Of a row, by coordinate descent."""
    rows, logistic = problem.rows, problem.loss.smooth and not problem.hard and np.isfinite(problem.loss.upper)
    return 3 * rows.nonzeros / rows.n + (300 if logistic else 40)


def _cost_of_second_order(problem: Problem) -> float:
    """Of the cheapest of the other methods."""
    interior = _cost_of_interior_point(problem)
    return min(interior, _cost_of_proximal_newton(problem)) if _is_proximal(problem) else interior


def _cost_of_interior_point(problem: Problem) -> float:
    """With a smooth loss this is Newton's method, which takes fewer steps."""
    rows, smooth = problem.rows, problem.loss.smooth and not problem.hard
    products = 0.15 * operations(problem)
    if not smooth:
        return 18 * (products + 6 * rows.nonzeros + 400 * rows.n)
    per_row = 150 if np.isfinite(problem.loss.upper) else 60
    factor = 0.15 * min(rows.n, rows.d) ** 3 / 3
    products = factor + share_of_rows(problem, rows.n) * (products - factor)
    return 6 * (products + 6 * rows.nonzeros + per_row * rows.n)


def _cost_of_newton_cg(problem: Problem) -> float:
    return PRODUCTS * _cost_of_a_product(problem)


def _cost_of_a_product(problem: Problem) -> float:
    """With the curvature."""
    rows = problem.rows
    return 2.5 * rows.nonzeros + 5 * (rows.n + rows.d) + 3e4


def _products(problem: Problem, trace: Trace, tol: float) -> int:
    """As many as Newton's method may take before it is given up."""
    wanted = GENEROUS * _left(trace, tol) / _cost_of_a_product(problem)
    return int(min(max(wanted, PRODUCTS), MOST_PRODUCTS))


def _cost_of_proximal_newton(problem: Problem) -> float:
    """Some twenty steps, and the Gram matrix of a part of the rows."""
    rows = problem.rows
    step = rows.nonzeros + 5 * rows.n + 0.04 * rows.d**3 + 3 * rows.d**2 + 5e5
    return 20 * step + 0.1 * operations(problem)


def _left(trace: Trace, tol: float) -> float:
    """What coordinate descent will still cost if the gap goes on falling as it did over the second half of its work."""
    spent, claim = trace[-1]
    if claim <= tol:
        return 0.0
    half = bisect_right(trace, spent / 2, key=itemgetter(0)) - 1
    earlier = next((one for one in trace[half:-1] if np.isfinite(one[1])), None)
    if earlier is None or not earlier[1] > claim:
        return np.inf
    rate = np.log(earlier[1] / claim) / (spent - earlier[0])
    return float(np.log(claim / tol) / rate)

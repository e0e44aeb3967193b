"""Dual coordinate descent for several classes of little data, each against the rest, on a thread each.

Such descents take a millisecond or so, and their Python would hold them up for longer: here they return to it when they
are through. What comes out are starts, as from `lanes`: most classes need nothing but their proof.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from widemargin import _core
from widemargin.problem import Problem
from widemargin.solvers.auto import BEGINNING, Pace, after_descent
from widemargin.solvers.dual_cd import at_the_beginning
from widemargin.solvers.iterate import Start
from widemargin.solvers.lanes import Told

#: Non-zeros up to which data is little, and the numbers that all classes may hold: one for each row and column.
LITTLE, HELD = 1 << 20, 1 << 21
#: Classes in a group: it returns to Python once in a while.
GROUP = 64
#: From their first return on, classes that are not through return this many times as often, for a look at their pace.
THEN = 8
#: A class is left to itself after this many passes' worth of visits, and where it crawls.
PASSES = 100


def can_share(problems: Sequence[Problem]) -> bool:
    """Whether these are several classes of little data."""
    rows, count = problems[0].rows, len(problems)
    little = rows.nonzeros <= LITTLE and count * (rows.n + rows.d) <= HELD
    return count > 1 and little and len(rows.parts) == 1 and not problems[0].hard


def groups(classes: range) -> list[range]:
    """So many classes at a time."""
    return [classes[begin : begin + GROUP] for begin in range(0, len(classes), GROUP)]


def descend(
    problems: Sequence[Problem], *, tol: float, seed: int, solver: str, threads: int, told: Told
) -> list[Start]:
    """Where descent has come for each of these classes, and where `solver`, "dual_cd" or "auto", goes on."""
    began = time.perf_counter()
    pace = Pace.at_first(problems[0])
    descents = [_Class(problem, tol, seed) for problem in problems]
    going, visits = descents, descents[0].at_once
    while going:
        _core.all_go_on([one.kernel for one in going], PASSES, visits, threads)
        visited, visits = sum(one.look(pace) for one in going), descents[0].at_once // THEN
        told(max(one.course.passes for one in going), max(one.course.near for one in going), visited)
        going = [one for one in going if one.is_worth_more(tol, pace if solver == "auto" else None)]
    took = time.perf_counter() - began
    return [one.start(tol, solver, took) for one in descents]


class _Class:
    """The descent of one class, and its pace."""

    def __init__(self, problem: Problem, tol: float, seed: int) -> None:
        descent = at_the_beginning(problem.but(threads=1), tol, seed)
        self.problem, self.at, self.course = problem, descent.at, descent.at.course
        self.kernel, self.at_once = descent.kernel, descent.at_once
        self.visited, self.trace = 0, [*BEGINNING]

    def look(self, pace: Pace) -> int:
        """How many visits were made since the last look."""
        course, visits = self.course, self.course.visited - self.visited
        self.visited = course.visited
        self.trace.append(pace.place(self.trace, visits, course.dual + course.gap, course.dual))
        return visits

    def is_worth_more(self, tol: float, pace: Pace | None) -> bool:
        """Whether it is neither through nor, where there is another method, crawling."""
        if self.course.near <= tol or self.visited >= PASSES * len(self.problem.live):
            return False
        return pace is None or not pace.crawls(self.trace, tol)

    def start(self, tol: float, solver: str, took: float) -> Start:
        at, course = self.at, self.course
        at.actives[0] = self.kernel.actives
        state = at.state(PASSES)
        if solver == "auto":
            state = after_descent(state, course.passes, self.trace)
        return Start(at.alpha, course.b, at.w, course.near <= tol, course.passes, took, state)

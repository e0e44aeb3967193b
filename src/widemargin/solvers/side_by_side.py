"""Dual coordinate descent for several classes of little data, each against the rest, on a thread each.

Such descents take a millisecond or so, and their Python would hold them up for longer: here they return to it when they
are through. What comes out are starts, as from `lanes`: most classes need nothing but their proof.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from widemargin import _core
from widemargin.problem import Problem
from widemargin.solvers.auto import visits_worth_a_try
from widemargin.solvers.dual_cd import at_the_beginning
from widemargin.solvers.iterate import Start
from widemargin.solvers.lanes import Told

#: Non-zeros up to which data is little.
LITTLE = 1 << 20
#: Classes in a group: those that follow wait for its proofs.
GROUP = 64
#: A class is left to itself after this many passes' worth of visits, or where other methods would be through.
PASSES = 100


def can_share(problems: Sequence[Problem]) -> bool:
    """Whether these are several classes of little data."""
    rows = problems[0].rows
    return len(problems) > 1 and rows.nonzeros <= LITTLE and len(rows.parts) == 1 and not problems[0].hard


def groups(count: int) -> list[range]:
    """So many classes at a time."""
    return [range(begin, min(begin + GROUP, count)) for begin in range(0, count, GROUP)]


def descend(problems: Sequence[Problem], *, tol: float, seed: int, threads: int, told: Told) -> list[Start]:
    """Where descent has come for each of these classes."""
    began = time.perf_counter()
    descents = [at_the_beginning(problem.but(threads=1), tol, seed) for problem in problems]
    most, seen = min(visits_worth_a_try(problems[0]), PASSES * len(problems[0].live)), 0
    going = descents
    while going:
        _core.all_go_on([one.kernel for one in going], PASSES, going[0].at_once, threads)
        visited = sum(one.at.course.visited for one in descents)
        passes, gap = (max(getattr(one.at.course, name) for one in going) for name in ("passes", "near"))
        told(passes, gap, visited - seen)
        seen = visited
        going = [one for one in going if one.at.course.near > tol and one.at.course.visited < most]
    took = time.perf_counter() - began
    reached = [one.at for one in descents]
    return [Start(at.alpha, at.course.b, at.w, at.course.near <= tol, at.course.passes, took) for at in reached]

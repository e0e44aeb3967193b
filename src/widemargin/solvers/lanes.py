"""Dual coordinate descent for several classes at once, each against the rest. The kernel is `lanes.hpp`.

A row is read once for up to eight classes, whose weights lie side by side. What comes out are starts: classes that are
solved need nothing but their proof, those that take longer go on by themselves.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.problem import Problem
from widemargin.solvers.dual_cd import HABITS, inverse_rho_of, shift_of
from widemargin.solvers.iterate import Start

#: Non-zeros that are visited without a return to Python: a fraction of a second.
AT_ONCE = 20_000_000
#: So many classes are worth it, if that takes no more bytes than this and the data; not for dense rows that stay in the
#: cache, of which one at a time goes through vectors as well.
WORTH, LITTLE, CACHED = 4, 1 << 25, 1 << 20
#: Classes are left to themselves when one in so many is not solved, and after so many passes' worth of visits.
STRAGGLERS, PASSES = 4, 25

#: Is told after each step the passes so far, the largest relative gap, and how many rows were visited since the last.
Told = Callable[[int, float, int], None]


def can_share(problems: Sequence[Problem]) -> bool:
    """Whether these are several classes of the same rows, each against the rest, and of a loss that has a kernel.

    And whether what two groups hold, all lanes of every row and column, is little beside the data.
    """
    first = problems[0]
    held = 2 * 8 * _core.lanes * (first.rows.n + first.rows.d)
    dense = first.rows.nonzeros == first.rows.n * first.rows.d
    return (
        len(problems) >= WORTH
        and not (dense and first.rows.nonzeros <= CACHED)
        and held <= LITTLE + 12 * first.rows.nonzeros
        and first.loss.name in ("hinge", "squared_hinge")
        and not first.hard
        and len(first.rows.parts) == 1
        and all(one.rows is first.rows and one.c is first.c for one in problems)
    )


def groups(count: int) -> list[range]:
    """As many classes in a group as there are lanes, or fewer: two groups at a time are equally long."""
    pairs = math.ceil(count / (2 * _core.lanes))
    edges = np.linspace(0, count, 2 * pairs + 1).astype(int).tolist()
    return [range(begin, end) for begin, end in pairwise(edges) if begin < end]


def descend(problems: Sequence[Problem], *, tol: float, seed: int, told: Told) -> list[Start]:
    """Where descent has come for each of these classes, at most as many as there are lanes."""
    began, first = time.perf_counter(), problems[0]
    rows, live = first.rows, first.live
    descent = _core.LaneDescent(
        first.loss.name,
        rows.core,
        _classes(problems),
        np.array([problem.bias_of_nothing for problem in problems]),
        first.c,
        first.norms,
        live,
        shift_of(len(live)),
        inverse_rho_of(first),
        seed,
    )
    budget = math.ceil(AT_ONCE / max(1.0, rows.nonzeros / rows.n))
    seen, solved = 0, False
    while not solved and seen < PASSES * len(live):
        most = min(budget, PASSES * len(live) - seen)
        leave = len(problems) // STRAGGLERS
        solved, gap, passes, visits = descent.run(tol, HABITS, leave, most)
        told(passes, gap, visits - seen)
        seen = visits
    starts, took = [], time.perf_counter() - began
    for k in range(len(problems)):
        alpha, b, w, hopeful = descent.solution(k)
        starts.append(Start(alpha, b, w, hopeful, iterations=passes, seconds=took))
    return starts


def _classes(problems: Sequence[Problem]) -> NDArray[np.uint8]:
    """Which of these classes each row belongs to."""
    classes = np.full(problems[0].rows.n, _core.lanes, np.uint8)
    for k, problem in enumerate(problems):
        classes[problem.y > 0] = k
    return classes

"""SOLVER: one algorithm per stem. A solver turns a problem into a generator of iterates and never judges them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from widemargin.problem import Problem
from widemargin.solvers.auto import auto
from widemargin.solvers.dual_cd import dual_cd
from widemargin.solvers.interior_point import interior_point
from widemargin.solvers.iterate import Iterate, Start

__all__ = ["SOLVERS", "Iterate", "Solver", "Start"]


class Solver(Protocol):
    """What all solvers look like from outside."""

    def __call__(self, problem: Problem, *, tol: float, seed: int, start: Start | None) -> Iterator[Iterate]:
        """Iterates that claim a relative gap; those that claim at most `tol` are checked by the caller."""


#: Every solver by its name.
SOLVERS: dict[str, Solver] = {"auto": auto, "dual_cd": dual_cd, "interior_point": interior_point}

"""SOLVER: one algorithm per stem. A solver turns a problem into a generator of iterates and never judges them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem
from widemargin.solvers.auto import auto
from widemargin.solvers.dual_cd import dual_cd
from widemargin.solvers.interior_point import interior_point
from widemargin.solvers.iterate import Iterate

__all__ = ["SOLVERS", "Iterate", "run"]

#: Every solver by its name.
SOLVERS = {"auto": auto, "dual_cd": dual_cd, "interior_point": interior_point}


def run(
    name: str, problem: Problem, *, tol: float, seed: int, alpha: NDArray[np.float64] | None, b: float | None
) -> Iterator[Iterate]:
    """The iterates of that solver; the interior point takes no seed and no start, since neither would change it."""
    if name == "interior_point":
        return interior_point(problem, tol=tol)
    return SOLVERS[name](problem, tol=tol, seed=seed, alpha=alpha, b=b)

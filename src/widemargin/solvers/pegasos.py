"""Pegasos: stochastic subgradient steps of 1/(λt) on the hinge loss. The kernel is `sgd.hpp`.

min λ/2 ‖w‖² + (1/n) Σ max(0, 1 − yᵢ w·xᵢ), which is our problem for λ = 1/(nC). Step t draws k rows uniformly and sets

    w ← (1 − 1/t) w + 1/(λtk) Σ yᵢxᵢ  over those with margin below 1;  then, if asked, w ← w·min(1, 1/(√λ‖w‖)).

A step costs the rows' non-zeros. Shalev-Shwartz, Singer, Srebro and Cotter 2011.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from widemargin.problem import Problem
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.sgd import PASSES, check_switch, stochastic


@dataclass(frozen=True)
class Pegasos:
    """Pegasos as the lecture notes have it; without parameters it has no rate to tune.

    A bias takes the same steps, unshrunk; LinearSVM's answer has the best bias for the last w in its place.

    Parameters
    ----------
    project : bool
        Whether to cut w back into the ball of radius 1/√λ, where the optimum lies, after each step. The notes leave it
        open; without it, the first steps, as long as 1/λ, throw an unpenalised bias far off.
    average : bool
        Whether to answer with the mean of all w instead of the last.
    batch_size : int
        How many rows a step draws, at most all.

    """

    project: bool = True
    average: bool = False
    batch_size: int = 1
    name: ClassVar[str] = "pegasos"

    def __post_init__(self) -> None:
        check_switch("project", self.project)
        check_switch("average", self.average)
        if not isinstance(self.batch_size, Integral) or self.batch_size < 1:
            raise ValueError(f"batch_size={self.batch_size!r}; it must be a whole number ≥ 1")

    def __call__(self, problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
        """Iterates, one per n rows drawn."""
        everyone, order = problem.live.astype(np.int64), np.random.default_rng(seed)
        batch = min(int(self.batch_size), len(everyone))
        steps = -(-len(everyone) // batch)
        draws = (everyone[order.integers(0, len(everyone), steps * batch)] for _ in range(PASSES))
        inverse_lam = float(problem.c.sum())
        yield from stochastic(
            problem,
            draws,
            rate=inverse_lam,
            power=1.0,
            offset=0.0,
            average=self.average,
            batch=batch,
            radius=float(np.sqrt(inverse_lam)) if self.project else np.inf,
        )

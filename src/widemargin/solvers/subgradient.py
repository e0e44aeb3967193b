"""Batch subgradient descent: every step looks at all rows.

min λ/2 ‖w‖² + Σ gᵢφ(yᵢ(w·xᵢ + b)) with Σgᵢ = 1, which is our problem for λ = 1/Σcᵢ:

    w ← (1 − ηₜλ) w − ηₜ Σ gᵢφ′(mᵢ) yᵢxᵢ,    b ← b − ηₜ Σ gᵢφ′(mᵢ) yᵢ,    ηₜ = rate/(t + offset)^power.

α shrinks and grows with w, so that w = Σ αᵢyᵢxᵢ, and stays within its bounds while ηₜλ ≤ 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.sgd import check_rate, schedule
from widemargin.solvers.sight import Sight

Floats = NDArray[np.float64]

#: After this many passes over the rows the solver gives up.
PASSES = 2000


@dataclass(frozen=True)
class Subgradient:
    """Steps along the whole subgradient, with a rate that falls like rate/(t + offset)^power.

    Parameters
    ----------
    rate, power, offset
        As in :class:`~widemargin.solvers.Sgd`: a fixed rate, 1/√t or, by default, 1/(λ(t + offset)).

    """

    rate: float | None = None
    power: float = 1.0
    offset: float | None = None
    name: ClassVar[str] = "subgradient"

    def __post_init__(self) -> None:
        check_rate(self.rate, self.power, self.offset)

    def __call__(self, problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
        """Iterates, one per step."""
        steepest = float(problem.norms[problem.live].mean())
        rate, offset = schedule(problem, self.rate, self.offset, steepest)
        lam = 1 / float(problem.c.sum())
        eta = (rate / (t + offset) ** self.power for t in count(1))
        sight = Sight(problem)
        for iteration, (w, b, alpha) in enumerate(islice(descent(problem, lam * problem.c, lam, eta), PASSES), 1):
            yield sight.of(w, b, alpha, iteration)


def descent(problem: Problem, g: Floats, lam: float, eta: Iterator[float]) -> Iterator[tuple[Floats, float, Floats]]:
    """w, b and α after each step."""
    w, b, alpha = np.zeros(problem.rows.d), 0.0, np.zeros(problem.rows.n)
    for rate in eta:
        pull = -rate * g * problem.loss.slope(problem.margins(w, b))
        keep = 1 - rate * lam
        w = keep * w + problem.weights(pull)
        b += inner(pull, problem.y) if problem.fit_intercept else 0.0
        alpha = keep * alpha + pull
        yield w, b, alpha

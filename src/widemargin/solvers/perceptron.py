"""The perceptron: a mistake moves w along its row. The kernel is `sgd.hpp`, with the rule `Mistake`.

If yᵢ(w·xᵢ + b) ≤ 0:  w ← w + ηₜyᵢxᵢ,  b ← b + ηₜyᵢ,  ηₜ = rate/t^power.

Where a hyperplane separates the classes by a geometric margin γ and all rows have ‖x‖ ≤ R, a fixed rate from w = 0
makes at most (R/γ)² mistakes, the bias counted as one more column of ones. Rosenblatt 1958; Novikoff 1962.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from widemargin.data import Rows
from widemargin.solvers.lazy_weights import LazyWeights
from widemargin.solvers.sgd import rates

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PerceptronRule:
    """One step per row drawn; ηₜ counts all steps, not the mistakes."""

    rate: float = 1.0
    power: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Real) or not 0 < self.rate < np.inf:
            raise ValueError(f"learning_rate={self.rate!r}; it must be a finite number > 0")
        if not isinstance(self.power, Real) or not 0 <= self.power <= 1:
            raise ValueError(f"decay={self.power!r}; it must lie between 0 (a fixed rate) and 1 (1/t)")

    def __call__(self, weights: LazyWeights, rows: Rows, y: Floats, draws: Integers, *, bias: bool) -> int:
        """Walks over the rows drawn and returns the number of mistakes."""
        eta = rates(self.rate, self.power, 0.0, weights.steps, len(draws))
        return weights.sgd("mistake", rows, y, draws, eta, np.ones(len(draws)), bias=bias)

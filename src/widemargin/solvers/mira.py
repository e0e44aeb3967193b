"""MIRA: the least change of w that gives the rows drawn a margin of 1. The kernel is `mira.hpp`.

If yᵢ(w·xᵢ + b) ≤ p:  min ‖w′ − w‖² + (b′ − b)²  subject to  yᵢ(w′·xᵢ + b′) ≥ 1,  for each row drawn.

p = 0 is plain MIRA, which moves on mistakes only; with 0 < p < 1 it is aggressive: without a bias and a
limit it ends with a geometric margin of at least p/(1 + p) times the largest. Several rows at a time make a small QP.
Crammer and Singer 2003; Crammer et al. 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from widemargin.data import Rows
from widemargin.solvers.lazy_weights import LazyWeights

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


#: The most rows whose inner products are built: 200 MB.
LARGEST_BATCH = 5000


@dataclass(frozen=True)
class MiraRule:
    """One step per `batch_size` rows drawn; `limit` bounds how far one row may move w, as a multiple of itself."""

    p: float = 0.0
    limit: float = np.inf
    batch_size: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.p, Real) or not 0 <= self.p < 1:
            raise ValueError(f"aggressiveness={self.p!r}; it must be at least 0 and below 1")
        if not isinstance(self.limit, Real) or not self.limit > 0:
            raise ValueError(f"C={self.limit!r}; it must be a number > 0")
        if not isinstance(self.batch_size, Integral) or not 1 <= self.batch_size <= LARGEST_BATCH:
            raise ValueError(f"batch_size={self.batch_size!r}; it must be a whole number from 1 to {LARGEST_BATCH:,}")

    def __call__(self, weights: LazyWeights, rows: Rows, y: Floats, draws: Integers, *, bias: bool) -> int:
        """Walks over the rows drawn, the last batch as large as they allow, and returns how many had a margin ≤ p."""
        whole = len(draws) // self.batch_size * self.batch_size
        late = 0
        for part, batch in ((draws[:whole], self.batch_size), (draws[whole:], len(draws) - whole)):
            if len(part):
                late += weights.mira(rows, y, part, batch=int(batch), bias=bias, p=self.p, limit=self.limit)
        return late

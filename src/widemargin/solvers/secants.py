"""Newton steps from a matrix that was factored some steps ago, corrected by what was seen of the slope since then.

This is the limited-memory BFGS method (Nocedal 1980) with that matrix for its first guess. Near the optimum such a step
is nearly as good as Newton's own, and costs two walks over the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import inner
from widemargin.solvers.normal_equations import Tall

Floats = NDArray[np.float64]


class Secants:
    """Steps and changes of the slope, by w and, as their last component, by b."""

    def __init__(self, system: Tall) -> None:
        self.system = system
        self.pairs: list[tuple[Floats, Floats, float]] = []

    def add(self, step: Floats, change: Floats) -> None:
        """A step that was taken, and by how much it changed the slope."""
        along, rounding = inner(step, change), float(np.finfo(np.float64).eps)
        if along > rounding * np.linalg.norm(step) * np.linalg.norm(change):
            self.pairs.append((step, change, along))

    def newton_step(self, slope: Floats) -> tuple[Floats, float, Floats]:
        """Δw, Δb and Δm of Newton's step from a point of that slope, as far as these tell."""
        rest, shares = slope.copy(), []
        for step, change, along in reversed(self.pairs):
            shares.append(inner(step, rest) / along)
            rest -= shares[-1] * change
        towards = np.append(*self.system.direction(-rest[:-1], -float(rest[-1])))
        for (step, change, along), share in zip(self.pairs, reversed(shares), strict=True):
            towards -= (share + inner(change, towards) / along) * step
        dw, db = towards[:-1], float(towards[-1])
        return dw, db, self.system.along(dw, db)

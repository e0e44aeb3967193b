"""The step length at which a convex function stops falling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

#: Step lengths tried at most.
TRIALS = 60


class Walk(Protocol):
    """What a walk over the rows yields at m + t·dm, besides other things."""

    @property
    def slope(self) -> float:
        """Σ cφ′·dm."""

    @property
    def bend(self) -> float:
        """How fast the slope rises with t."""


W = TypeVar("W", bound=Walk)


def line_search(walk: Callable[[float], W], linear: float, quadratic: float, flat: float) -> tuple[float, W]:
    """The last t tried and the walk there: 1, or where the slope is at most `flat` in size.

    The slope is `linear` + t·`quadratic` + the walk's; it only rises with t. Newton's method inside a bracket.
    """
    t, low, high = 1.0, 0.0, np.inf
    for _ in range(TRIALS):
        tried, sums = t, walk(t)
        slope, bend = linear + t * quadratic + sums.slope, quadratic + sums.bend
        if abs(slope) <= flat:
            break
        low, high = (t, high) if slope < 0 else (low, t)
        t -= slope / bend if bend > 0 else -np.inf
        if not low < t < high:
            t = (low + high) / 2 if np.isfinite(high) else 2 * low
    return tried, sums

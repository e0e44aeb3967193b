"""Subdifferential of a convex f at x₀: all slopes d with f(x) ≥ f(x₀) + d(x − x₀) for every x.

Where f is differentiable the derivative is the only one; at a kink they fill the interval from the slope on the left to
the slope on the right. Any of them does for subgradient descent.

Notes 002, pages "Subderivatives generalize derivatives" and "Sub derivatives produce 'reasonable' downhill directions".
The second example there is ½x² for x < 1 and 4x from 1 on, which jumps from ½ to 4 at 1: that is not convex, and at 1
no slope at all stays below it on the left. Here the line starts where the parabola ends, at ½: 4x − 3½. The slopes are
those of the notes, [1, 4] at 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from widemargin.losses import Interval


@dataclass(frozen=True)
class Kinked:
    """A convex function of one variable, smooth but for one kink, from its two pieces and their slopes."""

    left: Callable[[float], float]
    right: Callable[[float], float]
    left_slope: Callable[[float], float]
    right_slope: Callable[[float], float]
    kink: float

    def value(self, x: float) -> float:
        """f(x)."""
        return self.left(x) if x < self.kink else self.right(x)

    def subdifferential(self, x: float) -> Interval:
        """All slopes at x that stay below f: one number twice, but for the kink."""
        return Interval(
            self.left_slope(x) if x <= self.kink else self.right_slope(x),
            self.right_slope(x) if x >= self.kink else self.left_slope(x),
        )


#: ½|x − 1|, with the set [−½, ½] at 1.
HALF_ABSOLUTE = Kinked(lambda x: (1 - x) / 2, lambda x: (x - 1) / 2, lambda _: -0.5, lambda _: 0.5, kink=1.0)
#: ½x² for x < 1, then a line of slope 4, with the set [1, 4] at 1.
PARABOLA_THEN_LINE = Kinked(lambda x: x * x / 2, lambda x: 4 * x - 3.5, lambda x: x, lambda _: 4.0, kink=1.0)

"""Hildreth's way to the maximum of a quadratic function of two variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.plots.look import COLOURS, COMMON, NEAREST, Display, Look, grey, new_axes, plain, scatter
from widemargin.textbook import hildreth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
#: An objective within this share of the best is the best but for rounding.
SETTLED = 1e-12
#: As many steps get a number; the later ones are too close to each other.
NUMBERED = 3


@dataclass(frozen=True)
class HildrethDisplay(Display):
    """The path of Hildreth's algorithm over the contours of −½αᵀQα − αᵀb, for two variables 0 ≤ α ≤ upper.

    A star is where it ends. If that is not the optimum, the legend says after how many steps, and a diamond is there.

    Examples
    --------
    The lecture's example ends at (8/7, 10/7):

    >>> from widemargin.plots import HildrethDisplay
    >>> display = HildrethDisplay.from_qp([[4, 1], [1, 2]], [-6, -4])
    >>> print(7 * display.path_[-1])
    [ 8. 10.]

    """

    #: α after each step, beginning with 0.
    path_: Floats

    @classmethod
    def from_qp(
        cls,
        Q: ArrayLike,
        b: ArrayLike,
        *,
        upper: float = np.inf,
        order: str = "cyclic",
        draws: Iterable[int] | None = None,
        max_steps: int = 1000,
        ax: Axes | None = None,
    ) -> Self:
        """Run ``textbook.hildreth`` from α = 0 and draw its steps."""
        Q, b = np.asarray(Q, dtype=np.float64), np.asarray(b, dtype=np.float64)
        if Q.shape != (2, 2) or b.shape != (2,):
            raise ValueError(f"HildrethDisplay draws two variables, got Q of shape {Q.shape} and b of shape {b.shape}")
        if not (np.isfinite(Q).all() and np.isfinite(b).all()):
            raise ValueError("Q or b has a number that is not finite; HildrethDisplay cannot draw it")
        if not _is_bounded(Q, b, upper):
            raise ValueError("the objective grows without bound; give an upper bound")
        steps = hildreth(Q, b, upper=upper, order=order, draws=draws, max_steps=max_steps)
        path = np.array([np.zeros(2), *(step.w for step in steps)])
        display, optimum = cls(new_axes() if ax is None else plain(ax), path), _optimum(Q, b, upper)
        display._draw_contours(Q, b, upper, max(float(path.max()), float(optimum.max())))
        missing = _value(Q, b, optimum) - _value(Q, b, path[-1])
        display._draw_path(None if missing <= SETTLED * abs(_value(Q, b, optimum)) else optimum)
        display.ax_.set_aspect("equal")
        return display._explain("α₁", "α₂")

    def _draw_contours(self, Q: Floats, b: Floats, upper: float, reach: float) -> None:
        """Contours as far as path and optimum reach and a little further; what is not allowed is shaded."""
        high = 1.35 * max(reach, 1e-9 + 0.5 * min(upper, 1.0))
        low = -0.12 * high
        axis = np.linspace(low, high, 241)
        x, y = np.meshgrid(axis, axis)
        value = -(Q[0, 0] * x**2 + (Q[0, 1] + Q[1, 0]) * x * y + Q[1, 1] * y**2) / 2 - b[0] * x - b[1] * y
        top = float(value[(x >= 0) & (y >= 0) & (x <= upper) & (y <= upper)].max())
        spread = max(top - float(value.min()), 1e-300)
        levels = np.unique(top - spread * np.linspace(1, 0.02, 14) ** 2)  # closer to each other near the maximum
        self.ax_.contour(x, y, value, levels=levels, colors=[grey(0.62)], linewidths=0.8, negative_linestyles="solid")
        self._shade(low, low, 0, high)
        self._shade(0, low, high, 0)
        if upper < high:
            self._shade(upper, 0, high, high)
            self._shade(0, upper, upper, high)
        self.ax_.set(xlim=(low, high), ylim=(low, high))

    def _shade(self, left: float, bottom: float, right: float, top: float) -> None:
        first = not any(patch.get_label() == "not allowed" for patch in self.ax_.patches)
        label = "not allowed" if first else None
        self.ax_.fill(
            [left, right, right, left], [bottom, bottom, top, top], color=grey(0.88), lw=0, zorder=1.5, label=label
        )

    def _draw_path(self, missed: Floats | None) -> None:
        """The steps and their end; the optimum, if they have missed it, besides."""
        steps: Look = {"color": COLOURS[0], "marker": "o", "markersize": 4, "lw": 1.6, "zorder": 3}
        self.ax_.plot(*self.path_.T, label="steps from 0", **steps)
        sides = {True: (0, 5, "center", "bottom"), False: (6, 0, "left", "center")}
        number = 0
        for before, after in zip(self.path_[:-1], self.path_[1:], strict=True):
            if (before == after).all() or number == NUMBERED:
                continue
            number += 1
            right, up, across, upright = sides[bool(before[1] == after[1])]
            beside: Look = {"xytext": (right, up), "textcoords": "offset points", "ha": across, "va": upright}
            middle = (before + after) / 2
            self.ax_.annotate(f"{number}", (middle[0], middle[1]), color=COLOURS[0], fontsize="small", **beside)
        end = self.path_[-1]
        ended = "end" if missed is None else f"stopped after {len(self.path_) - 1:,} steps"
        scatter(self.ax_, end[None, :], 120, label=f"{ended} ({end[0]:.4g}, {end[1]:.4g})", **COMMON)
        if missed is not None:
            scatter(self.ax_, missed[None, :], 60, label=f"optimum ({missed[0]:.4g}, {missed[1]:.4g})", **NEAREST)


def _value(Q: Floats, b: Floats, alpha: Floats) -> float:
    return float(-alpha @ Q @ alpha / 2 - alpha @ b)


def _is_bounded(Q: Floats, b: Floats, upper: float) -> bool:
    """Whether no allowed way from 0 on which the objective is straight goes up for ever."""
    curvatures, ways = np.linalg.eigh(Q)
    flat = [way * np.sign(way.sum()) for way in ways.T[curvatures <= SETTLED * curvatures[-1]]]
    return np.isfinite(upper) or not any((way >= -SETTLED).all() and b @ way < 0 for way in flat)


def _optimum(Q: Floats, b: Floats, upper: float) -> Floats:
    """The maximum over 0 ≤ α ≤ upper: that of the plane if it is allowed, else the best that an edge has."""
    places = [np.asarray(np.linalg.solve(Q, -b), dtype=np.float64)] if np.linalg.matrix_rank(Q) == 2 else []
    for i in (0, 1):
        along = Q[1 - i, 1 - i]
        for end in (0.0, upper) if np.isfinite(upper) else (0.0,):
            slope = -(b[1 - i] + Q[1 - i, i] * end)
            other = slope / along if along > 0 else np.inf if slope > 0 else 0.0
            places.append(np.roll([end, np.clip(other, 0.0, upper)], i))
    allowed = [place for place in places if (place >= 0).all() and (place <= upper).all() and np.isfinite(place).all()]
    return max(allowed, key=lambda place: _value(Q, b, place))

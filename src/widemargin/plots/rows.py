"""How the rows of a classifier are drawn: by class, and by what the classifier says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from widemargin.plots.look import (
    INSIDE,
    INSIDE_SUPPORT,
    MISCLASSIFIED,
    ON_MARGIN,
    RASTER,
    WRONG_SUPPORT,
    Look,
    class_look,
    frame,
    mark_scale,
    point_size,
    scatter,
)
from widemargin.plots.sides import Flags, Verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: Of the rows that only fill the classes' areas, so many are drawn.
MOST_FILLERS = 4_000
#: So few marks stay lines in a picture of many rows.
FEW = 100
#: So many marks of a kind are drawn in full black.
MOST_BLACK = 80
#: Coinciding rows are counted in the picture at so many places at most.
MOST_COUNTS = 12


def show(ax: Axes, groups: list[Floats], *, stretch: float) -> None:
    """Show the groups of places; to one scale, so that right angles look right, unless one of the axes were `stretch`
    times as long as the other.
    """
    low, high = frame(*groups)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    width, height = high - low
    if max(width / height, height / width) < stretch:
        ax.set_aspect("equal")


def on_levels(x: Floats, which: NDArray[np.intp]) -> Floats:
    """Rows of one feature at the height of their class, up to 0.25 above or below; the same ones every time."""
    return np.column_stack([x, which + np.random.default_rng(0).uniform(-0.25, 0.25, len(x))])


def draw_rows(ax: Axes, places: Floats, seen: Verdicts) -> None:
    """A mark for each row, and further marks for support vectors, margin violations and mistakes."""
    support = np.zeros(len(places), dtype=bool) if seen.support is None else seen.support
    drawn = _thinned(~support & ~seen.inside & ~seen.wrong & ~seen.misclassified)
    # a few rows of one class can be seen among thousands of the other
    sizes = np.array([point_size((seen.which == k).sum()) for k in range(len(seen.names))])[seen.which]
    # the squares tell it, too
    crossed = seen.misclassified if seen.misclassified.sum() <= RASTER else seen.misclassified & ~(support & seen.wrong)
    for k, label in enumerate(seen.names):
        rows = (seen.which == k) & drawn
        if rows.any():
            pixels = _as_pixels(rows)
            label = _counted(label, seen.which == k, drawn)
            scatter(ax, places[rows], sizes[rows], label=label, rasterized=pixels, **class_look(k))
    for label, rows, share, look in (
        ("support vector, ξ = 0", support & ~seen.inside & ~seen.wrong, 3.6, ON_MARGIN),
        ("support vector, 0 < ξ ≤ 1", support & seen.inside, 3.6, INSIDE_SUPPORT),
        ("support vector, ξ > 1", support & seen.wrong, 3.6, WRONG_SUPPORT),
        ("inside the margin", ~support & seen.inside, 0.3, INSIDE),
        ("misclassified", crossed, 1.2, MISCLASSIFIED),
    ):
        if rows.any():
            faint = _fainter(look, rows.sum() / mark_scale(ax))
            scatter(ax, places[rows], share * sizes[rows], label=label, rasterized=_as_pixels(rows), **faint)
    _count_coinciding(ax, places)


def _as_pixels(rows: Flags) -> bool:
    """Whether these rows' marks are kept as pixels: the kinds of marks add up."""
    return len(rows) > RASTER and int(rows.sum()) > FEW


def _count_coinciding(ax: Axes, places: Floats) -> None:
    """×3 beside three rows in one place, unless there are so many such places that it would be a clutter."""
    where, counts = np.unique(places, axis=0, return_counts=True)
    if 0 < (counts > 1).sum() <= MOST_COUNTS:
        for place, count in zip(where[counts > 1], counts[counts > 1], strict=True):
            near: Look = {"xytext": (8, 6), "textcoords": "offset points", "fontsize": "x-small"}
            ax.annotate(f"×{count:,}", place, **near)


def _thinned(fillers: Flags) -> Flags:
    """Every row that is no filler, and so many of those; the same ones every time."""
    drawn = ~fillers
    where = np.flatnonzero(fillers)
    if len(where) > MOST_FILLERS:
        where = np.random.default_rng(0).choice(where, MOST_FILLERS, replace=False)
    drawn[where] = True
    return drawn


def _fainter(look: Look, count: float) -> Look:
    """Thinner, paler strokes the more marks there are: a thousand black rings would be one black patch."""
    share = min(1.0, (MOST_BLACK / count) ** 0.5)
    if count > RASTER and "linestyle" in look:  # dots so small are all but a line, and slow to draw
        look = {**look, "linestyle": "-", "edgecolor": 0.4}
    return {**look, "lw": max(0.25, share * look["lw"]), "alpha": max(0.12, share) if share < 1 else None}


def _counted(label: str, rows: Flags, drawn: Flags) -> str:
    """The label of a class, and how many of its rows are drawn if not all are."""
    shown, there = int((rows & drawn).sum()), int(rows.sum())
    return label if shown == there else f"{label} ({shown:,} of {there:,})"

"""The separator, its margin and the rows around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.plots.look import (
    BAND,
    CLASSES,
    EDGE,
    INSIDE,
    INSIDE_SUPPORT,
    MISCLASSIFIED,
    ON_MARGIN,
    RASTER,
    SEPARATOR,
    SLACK,
    WRONG_SUPPORT,
    Display,
    Look,
    frame,
    inked,
    mark_beyond,
    mark_scale,
    name,
    point_size,
    scatter,
)
from widemargin.plots.sides import Flags, Side, feature_names, main_coordinate, matrix_of, side_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: More slacks than this would be a thicket of lines.
MOST_SLACKS = 100
#: Of the rows that only fill the classes' areas, so many are drawn.
MOST_FILLERS = 4_000
#: So few marks stay lines in a picture of many rows.
FEW = 100
#: So many marks of a kind are drawn in full black.
MOST_BLACK = 80
#: Coinciding rows are counted in the picture at so many places at most.
MOST_COUNTS = 12


class MarginDisplay(Display):
    """The separator, the band of scores from −1 to 1, and the rows.

    Support vectors are ringed by kind: a circle on the edge of the band (ξ = 0), a dotted circle inside the margin
    (0 < ξ ≤ 1), a square with a cross for a misclassified one (ξ > 1). Of a classifier without support vectors, rows
    inside the margin get a white dot and misclassified ones a cross. Slacks ξ, if they are at most 100, are lines from
    their rows to the edge of the band. A ξ within what the fit left open, by its certificate, counts as 0. Of more than
    4,000 rows that are none of this, 4,000 are drawn. A few rows that lie so far out that the rest would shrink to a
    dot are arrowheads on the frame.

    Two features are drawn as they are; of a single one the classes stand above each other, their rows spread at random.
    More are seen from the side: the score w·x + b to the right, and upwards the first principal component of what is
    left of X without its part along w.

    Examples
    --------
    >>> from widemargin import LinearSVM
    >>> from widemargin.plots import MarginDisplay
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], ["b", "b", "a", "a"]
    >>> MarginDisplay.from_estimator(LinearSVM().fit(X, y), X, y).ax_.get_xlabel()
    'x₁'

    """

    @classmethod
    def from_estimator(
        cls, clf: Any, X: ArrayLike, y: ArrayLike, *, target: object = None, ax: Axes | None = None
    ) -> Self:
        """Draw a linear classifier on rows, those it was fitted to or others.

        Of more than two classes, `target` is the one to tell from the rest. Support vectors are ringed if `clf` has a
        ``support_`` and the rows are those it was fitted to.
        """
        side, matrix = side_of(clf, X, y, target, cls.__name__), matrix_of(X)
        display, names = cls._on(ax), [name(one) for one in feature_names(X, clf) or ()]
        if len(side.w) == 1:
            places, normal, offset = _on_two_levels(matrix @ np.ones(1), side.positive), np.append(side.w, 0.0), side.b
            display.ax_.set_yticks([0, 1], labels=side.names, rotation="vertical", va="center")
            names = [*(names or ["x"]), "rows of a class are\nspread at random"]
        elif len(side.w) == 2:
            places, normal, offset, names = matrix @ np.eye(2), side.w, side.b, names or ["x₁", "x₂"]
        else:
            places = np.column_stack([side.scores, main_coordinate(matrix, side.w)])
            normal, offset, names = np.array([1.0, 0.0]), 0.0, ["score w·x + b", "main direction\nbesides w"]
        groups = [places[side.positive], places[~side.positive]]
        if len(side.w) > 2:  # the band is the point of such a picture
            groups.append(np.array([[-1.0, 0.0], [1.0, 0.0]]))
        display._frame(groups, square=len(side.w) == 2)
        display._draw_rows(places, side)
        display._draw_slacks(places, normal, side)
        display._draw_band(normal, offset)
        mark_beyond(display.ax_, places)
        return display._explain(*names)

    def _frame(self, groups: list[Floats], *, square: bool) -> None:
        """Show the groups of places; where both axes are of a size, to one scale, so that right angles look right."""
        low, high = frame(*groups)
        self.ax_.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        width, height = high - low
        if square and 0.4 < width / height < 2.5:
            self.ax_.set_aspect("equal")

    def _draw_rows(self, places: Floats, side: Side) -> None:
        support = np.zeros(len(places), dtype=bool) if side.support is None else side.support
        drawn = _thinned(~support & ~side.inside & ~side.wrong)
        # a few rows of one class can be seen among thousands of the other
        sizes = np.where(side.positive, point_size(side.positive.sum()), point_size((~side.positive).sum()))
        crossed = side.wrong if side.wrong.sum() <= RASTER else side.wrong & ~support  # the squares tell it, too
        for label, rows, share, look in (
            (_counted(side.names[0], ~side.positive, drawn), ~side.positive & drawn, 1.0, CLASSES[0]),
            (_counted(side.names[1], side.positive, drawn), side.positive & drawn, 1.0, CLASSES[1]),
            ("support vector, ξ = 0", support & ~side.inside & ~side.wrong, 3.6, ON_MARGIN),
            ("support vector, 0 < ξ ≤ 1", support & side.inside, 3.6, INSIDE_SUPPORT),
            ("support vector, ξ > 1", support & side.wrong, 3.6, WRONG_SUPPORT),
            ("inside the margin", ~support & side.inside, 0.3, INSIDE),
            ("misclassified", crossed, 1.2, MISCLASSIFIED),
        ):
            if rows.any():
                count = int(rows.sum())
                faint = dict(look) if look in CLASSES else _fainter(look, count / mark_scale(self.ax_))
                pixels = len(places) > RASTER and count > FEW  # the kinds of marks add up
                scatter(self.ax_, places[rows], share * sizes[rows], label=label, rasterized=pixels, **faint)
        self._count_coinciding(places)

    def _count_coinciding(self, places: Floats) -> None:
        """×3 beside three rows in one place, unless there are so many such places that it would be a clutter."""
        where, counts = np.unique(places, axis=0, return_counts=True)
        if 0 < (counts > 1).sum() <= MOST_COUNTS:
            for place, count in zip(where[counts > 1], counts[counts > 1], strict=True):
                near: Look = {"xytext": (8, 6), "textcoords": "offset points", "fontsize": "x-small"}
                self.ax_.annotate(f"×{count:,}", place, **near)

    def _draw_slacks(self, places: Floats, normal: Floats, side: Side) -> None:
        """ξ of every row that has one: the way to its edge of the band, at right angles to it."""
        late = side.inside | side.wrong
        if not 0 < late.sum() <= MOST_SLACKS or not normal.any():
            return
        from matplotlib.collections import LineCollection

        towards = np.where(side.positive[late], 1.0, -1.0) * side.slack[late] / (normal @ normal)
        ways = np.stack([places[late], places[late] + np.outer(towards, normal)], axis=1)
        self.ax_.add_collection(LineCollection(list(ways), label="slack ξ", **inked(SLACK)), autolim=False)

    def _draw_band(self, normal: Floats, offset: float) -> None:
        """Draw the lines on which normal · place + offset is −1, 0 and 1."""
        if not normal.any():
            return
        ax = self.ax_
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        middle, norm = np.array([left + right, bottom + top]) / 2, float(np.linalg.norm(normal))
        unit, reach = normal / norm, 10 * float(np.hypot(right - left, top - bottom))
        along = reach * np.array([-unit[1], unit[0]])
        # how far each line is from the middle of the picture, and how far the corners are along the normal
        away = {level: float((level - offset - normal @ middle) / norm) for level in (-1, 0, 1)}
        corner = float(np.abs(unit) @ [right - left, top - bottom]) / 2
        first, last = (middle + np.clip(away[level], -reach, reach) * unit for level in (-1, 1))
        ax.fill(*np.array([first - along, last - along, last + along, first + along]).T, **inked(BAND))
        seen = [level for level in (0, 1, -1) if abs(away[level]) < corner]
        for level in seen:
            start, look = middle + away[level] * unit, EDGE if level else SEPARATOR
            end = start + along
            label = "score 0" if level == 0 else "score ±1" if level == 1 or 1 not in seen else None
            ax.axline((start[0], start[1]), (end[0], end[1]), label=label, **inked(look))
        if 0 not in seen:
            ax.plot([], [], label="score 0, not in view", **inked(SEPARATOR))
        ax.set(xlim=(left, right), ylim=(bottom, top))


def _on_two_levels(x: Floats, positive: Flags) -> Floats:
    """Rows of one feature at the height of their class, up to 0.25 above or below; the same ones every time."""
    return np.column_stack([x, positive + np.random.default_rng(0).uniform(-0.25, 0.25, len(x))])


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

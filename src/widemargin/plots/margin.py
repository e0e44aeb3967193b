"""The separator, its margin and the rows around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.plots.decision import draw_plane
from widemargin.plots.look import BAND, EDGE, SEPARATOR, SLACK, Display, inked, mark_beyond, name
from widemargin.plots.rows import draw_rows, on_levels, show
from widemargin.plots.sides import Side, check_fit, feature_names, main_coordinate, matrix_of, rows_of, side_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: More slacks than this would be a thicket of lines.
MOST_SLACKS = 100


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

    With a kernel the separator is curved: one or two features are drawn as `DecisionDisplay` draws them, more are seen
    from the side, the score w·φ(x) + b to the right and the first principal component of X upwards. With C = ∞ there is
    nothing to mark but support vectors with ξ = 0; where the classes cannot be separated there is no fit to draw.

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
        """Draw a linear classifier, or one with a kernel, on rows, those it was fitted to or others.

        Of more than two classes, `target` is the one to tell from the rest; of a classifier that tells them apart in
        pairs, as those with a kernel do, the two classes to draw. Support vectors are ringed if `clf` has a
        ``support_`` and the rows are those it was fitted to.
        """
        check_fit(clf, cls.__name__, kernels=True)
        side, matrix = side_of(clf, X, y, target, cls.__name__), matrix_of(X)
        display, names = cls._on(ax), [name(one) for one in feature_names(X, clf) or ()]
        d = matrix.shape[1]
        if side.w is None and d <= 2 and getattr(clf, "kernel", None) != "precomputed":
            return display._explain(*draw_plane(display.ax_, clf, X, side, tuple(range(d))))
        matrix = rows_of(matrix, side.rows)
        if side.w is None:
            places = np.column_stack([side.scores, main_coordinate(matrix, None)])
            normal, offset, names = np.array([1.0, 0.0]), 0.0, ["score w·φ(x) + b", "main direction of X"]
        elif d == 1:
            places, normal, offset = on_levels(matrix @ np.ones(1), side.which), np.append(side.w, 0.0), side.b
            display.ax_.set_yticks([0, 1], labels=side.names, rotation="vertical", va="center")
            names = [*(names or ["x"]), "rows of a class are\nspread at random"]
        elif d == 2:
            places, normal, offset, names = matrix @ np.eye(2), side.w, side.b, names or ["x₁", "x₂"]
        else:
            places = np.column_stack([side.scores, main_coordinate(matrix, side.w)])
            normal, offset, names = np.array([1.0, 0.0]), 0.0, ["score w·x + b", "main direction\nbesides w"]
        groups = [places[side.positive], places[~side.positive]]
        if side.w is None or d > 2:  # the band is the point of such a picture
            groups.append(np.array([[-1.0, 0.0], [1.0, 0.0]]))
        show(display.ax_, groups, stretch=2.5 if side.w is not None and d == 2 else 0.0)
        draw_rows(display.ax_, places, side)
        display._draw_slacks(places, normal, side)
        display._draw_band(normal, offset)
        mark_beyond(display.ax_, places)
        return display._explain(*names)

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

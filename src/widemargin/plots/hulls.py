"""The classes' convex hulls: their nearest points, or a point that both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.certificate import InseparableError
from widemargin.estimators import LinearSVM
from widemargin.plots.look import (
    CLASSES,
    COMMON,
    INK,
    NEAREST,
    SEPARATOR,
    Display,
    class_label,
    frame,
    grey,
    inked,
    mark_beyond,
    name,
    new_axes,
    plain,
    point_size,
    scatter,
)
from widemargin.plots.sides import check_columns, check_fit, feature_names, main_coordinate, matrix_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HullDisplay(Display):
    """Both classes' convex hulls, with their nearest points or, where they overlap, a point of both.

    The distance of the hulls is the width 2/‖w‖ of the hard margin, and the separator halves the way between the
    nearest points. A point of both hulls proves that no hyperplane separates the classes.

    More than two features are projected: onto w and the main direction besides, which keeps the hulls' distance, or,
    where they overlap, onto the two main directions.

    Examples
    --------
    >>> from widemargin.plots import HullDisplay
    >>> display = HullDisplay.from_data([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, 1, 0, 0])
    >>> round(display.distance_, 9)
    2.0

    """

    #: How far the hulls are apart; 0 where they overlap.
    distance_: float
    #: The corners of either hull as drawn, the negative class first.
    hulls_: tuple[Floats, Floats]
    #: The hulls' nearest points as drawn, the negative class first; one point if they overlap.
    nearest_: Floats

    @classmethod
    def from_estimator(cls, clf: Any, X: ArrayLike, y: ArrayLike, *, ax: Axes | None = None) -> Self:
        """Draw the hulls of the two classes of a classifier, whatever its C or loss."""
        check_fit(clf, cls.__name__)
        check_columns(clf, matrix_of(X))
        if len(clf.classes_) != 2:
            raise ValueError(f"HullDisplay draws two classes, clf has {len(clf.classes_)}; leave the others out of y")
        return cls.from_data(X, y, names=feature_names(X, clf), ax=ax)

    @classmethod
    def from_data(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        proof: InseparableError | None = None,
        names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the hulls of the rows of two classes.

        `proof` is the error of a fit with C = ∞ on the same rows, where there was one; without it, such a fit is made.
        `names` are those of the features; without them, those of a data frame.
        """
        matrix, y = matrix_of(X), np.asarray(y)
        classes = np.unique(y)
        if len(classes) != 2:
            raise ValueError(f"HullDisplay draws two classes, y has {len(classes)}")
        positive = y == classes[1]
        svm: LinearSVM | None = None
        if proof is None or not len(proof.negative):  # that of a fit without a bias is about hulls of y·x
            proof = None
            try:
                with np.errstate(
                    over="ignore", invalid="ignore"
                ):  # where the hulls overlap, weights grow without bound
                    svm = LinearSVM(C=np.inf, tol=1e-9).fit(matrix, positive)
            except InseparableError as error:
                proof = error
        w = None if svm is None else svm.coef_[0] / np.linalg.norm(svm.coef_[0])
        places, axes = _plane(matrix, w, [name(one) for one in names or feature_names(X) or ()])
        hulls = convex_hull(places[~positive]), convex_hull(places[positive])
        if svm is None:
            assert proof is not None
            nearest = (proof.positive_weights @ places[proof.positive])[None, :]
            distance = 0.0
        else:
            alpha = np.zeros(len(y))
            alpha[svm.support_] = abs(svm.dual_coef_[0])
            nearest = np.array([alpha[side] @ places[side] / alpha[side].sum() for side in (~positive, positive)])
            distance = float(np.linalg.norm(nearest[1] - nearest[0]))
            if distance == 0:
                nearest = nearest[:1]
        display = cls(new_axes() if ax is None else plain(ax), distance, hulls, nearest)
        display._draw(places, positive, (class_label(classes[0]), class_label(classes[1])))
        if matrix.shape[1] == 1:
            display.ax_.set_yticks([])
        return display._explain(*axes)

    def _draw(self, places: Floats, positive: Any, names: tuple[str, str]) -> None:
        ax, size = self.ax_, point_size(len(places))
        low, high = frame(places[~positive], places[positive], self.nearest_)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        width, height = high - low
        if 0.4 < width / height < 2.5:
            ax.set_aspect("equal")
        for rows, hull, label, look in zip((~positive, positive), self.hulls_, names, CLASSES, strict=True):
            ax.fill(*hull.T, facecolor=look["color"], edgecolor=look["color"], alpha=0.22, lw=1.6, zorder=0.5)
            scatter(ax, places[rows], size, label=label, **look)
        mark_beyond(ax, places)
        if len(self.nearest_) == 1:
            scatter(ax, self.nearest_, 130, label="a point of both hulls", **COMMON)
            return
        ax.plot(*self.nearest_.T, color=grey(INK), lw=1.2, label=f"their distance, 2/‖w‖ = {self.distance_:.4g}")
        scatter(ax, self.nearest_, 3 * size, label="nearest points of the hulls", **NEAREST)
        middle, way = self.nearest_.mean(axis=0), self.nearest_[1] - self.nearest_[0]
        ax.axline(
            (middle[0], middle[1]), (middle[0] - way[1], middle[1] + way[0]), label="separator", **inked(SEPARATOR)
        )


def _plane(matrix: Any, w: Floats | None, names: Sequence[str]) -> tuple[Floats, tuple[str, str]]:
    """Where the rows stand in the picture, and what its axes are called."""
    d = matrix.shape[1]
    if d == 2:
        first, second = names or ("x₁", "x₂")
        return matrix @ np.eye(2), (first, second)
    if d == 1:
        return np.column_stack([matrix @ np.ones(1), np.zeros(matrix.shape[0])]), ((names or ("x",))[0], "")
    if w is not None:
        return np.column_stack([matrix @ w, main_coordinate(matrix, w)]), ("along w", "main direction\nbesides w")
    along = main_coordinate(matrix, None)
    across = main_coordinate(matrix, np.asarray(matrix.T @ along))
    return np.column_stack([along, across]), ("main direction", "second main direction")


def convex_hull(points: Floats) -> Floats:
    """The corners of the hull of points in the plane, counter-clockwise; two for a segment, one for a single place.

    Andrew's monotone chain.
    """
    corners = np.unique(points, axis=0)
    if len(corners) < 3:
        return corners
    chains = []
    for walk in (corners, corners[::-1]):
        chain: list[Any] = []
        for point in walk.tolist():
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        chains.append(chain[:-1])
    return np.array([*chains[0], *chains[1]])


def _turn(a: Any, b: Any, c: Any) -> float:
    """Positive if the way from a over b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

"""Several classifiers' lines through the same points."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from widemargin.plots.look import (
    CLASSES,
    COLOURS,
    DASHES,
    Display,
    Look,
    class_label,
    frame,
    mark_beyond,
    name,
    point_size,
    scatter,
)
from widemargin.plots.sides import check_columns, check_fit, dense, feature_names, is_known, matrix_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class SeparatorsDisplay(Display):
    """The separators of several linear classifiers of two features, over the points.

    Examples
    --------
    >>> from widemargin import LeastSquaresClassifier, LinearSVM
    >>> from widemargin.plots import SeparatorsDisplay
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, 1, 0, 0]
    >>> fits = {"least squares": LeastSquaresClassifier().fit(X, y), "SVM": LinearSVM().fit(X, y)}
    >>> len(SeparatorsDisplay.from_estimators(fits, X, y).ax_.lines)
    2

    """

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], X: ArrayLike, y: ArrayLike, *, ax: Axes | None = None
    ) -> Self:
        """Draw fitted classifiers of the same two classes, given under their labels."""
        if not estimators:
            raise ValueError("estimators is empty; give at least one fitted classifier under its label")
        matrix, y = matrix_of(X), np.asarray(y)
        for clf in estimators.values():
            check_fit(clf, cls.__name__)
        for label, clf in estimators.items():
            _check(clf, label, matrix, y)
        first = next(iter(estimators.values()))
        display, places = cls._on(ax), matrix @ np.eye(2)
        low, high = frame(*(places[y == one] for one in np.asarray(first.classes_)))
        display.ax_.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        for one, look in zip(np.asarray(first.classes_), CLASSES, strict=True):
            if (y == one).any():
                scatter(display.ax_, places[y == one], point_size(len(y)), label=class_label(one), **look)
        # the classes have the first two colours
        for (label, clf), color, dashes in zip(estimators.items(), cycle(COLOURS[2:]), cycle(DASHES), strict=False):
            display._draw_line(dense(clf.coef_).ravel(), float(np.ravel(clf.intercept_)[0]), name(label), color, dashes)
        mark_beyond(display.ax_, places)
        return display._explain(*map(name, feature_names(X, first) or ("x₁", "x₂")))

    def _draw_line(self, w: Any, b: float, label: str, color: str, dashes: Any) -> None:
        """The line w·x + b = 0; one that does not cross the frame is named all the same."""
        look: Look = {"color": color, "ls": dashes, "lw": 1.8}
        low, high = np.transpose([self.ax_.get_xlim(), self.ax_.get_ylim()])
        middle, norm, corner = (low + high) / 2, float(np.linalg.norm(w)), float(np.abs(w) @ (high - low)) / 2
        if abs(w @ middle + b) >= corner:
            self.ax_.plot([], [], label=f"{label}, not in view", **look)
            return
        foot = middle - (w @ middle + b) * w / norm**2
        end = foot + float(np.hypot(*(high - low))) * np.array([-w[1], w[0]]) / norm
        self.ax_.axline((foot[0], foot[1]), (end[0], end[1]), label=label, **look)


def _check(clf: Any, label: str, matrix: Any, y: Any) -> None:
    """Raises unless the classifier tells two classes apart by two features, and these rows are of that kind."""
    classes, features = np.asarray(clf.classes_), np.shape(clf.coef_)[-1]
    if len(classes) != 2 or features != 2:
        raise ValueError(
            f"SeparatorsDisplay draws two classes and two features, {label!r} has {len(classes)} classes "
            f"and {features} features"
        )
    check_columns(clf, matrix, repr(label))
    known = is_known(y, classes)
    if not known.all():
        other = y[np.argmin(known)]
        raise ValueError(f"y has the label {other!r}, {label!r} the classes {classes.tolist()}; leave such rows out")

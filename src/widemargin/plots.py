"""Pictures of fitted classifiers, in the manner of scikit-learn's displays.

An estimator is known here by its attributes alone, so that others' classifiers can be drawn beside ours. matplotlib is
imported when something is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, svds

from widemargin.certificate import AT_BOUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Look = dict[str, Any]

# The look of every picture. The colours are those of Okabe and Ito, told apart by every kind of eye; what matters
# differs in shape as well.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
CLASSES: list[Look] = [{"color": COLOURS[1], "marker": "s", "lw": 0}, {"color": COLOURS[0], "marker": "o", "lw": 0}]
SUPPORT: Look = {"facecolor": "none", "edgecolor": "black", "lw": 0.7, "marker": "o"}
INSIDE: Look = {"facecolor": "white", "edgecolor": "black", "lw": 0.6, "marker": "o"}
MISCLASSIFIED: Look = {"color": "black", "lw": 1.2, "marker": "x"}
SEPARATOR: Look = {"color": "black", "lw": 1.5}
EDGE: Look = {"color": "black", "lw": 0.8, "ls": "--"}
BAND: Look = {"color": "0.93", "zorder": 0}
RUNS: list[Look] = [{"color": color, "marker": marker} for color, marker in zip(COLOURS, "osD^vP", strict=True)]
ASKED: Look = {"color": "0.5", "lw": 1.0, "ls": ":", "zorder": 0}


@dataclass(frozen=True)
class Display:
    """What a picture was drawn on."""

    ax_: Axes

    @property
    def figure_(self) -> Any:
        """The figure of the axes."""
        return self.ax_.figure

    @classmethod
    def _on(cls, ax: Axes | None) -> Self:
        """The axes given, or new ones, with the common look."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(6.4, 5.2), layout="constrained")[1]
        ax.spines[["top", "right"]].set_visible(False)
        return cls(ax)

    def _explain(self, x: str, y: str) -> Self:
        """Name the axes, and put the legend below them, where it covers nothing."""
        self.ax_.set_xlabel(x)
        self.ax_.set_ylabel(y)
        self.ax_.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False, fontsize="small")
        return self


class MarginDisplay(Display):
    """The separator, the band of scores from −1 to 1, and every row: support vectors circled, rows inside the margin
    (0 < ξ ≤ 1) dotted white, misclassified rows (ξ > 1) crossed out.

    Two features are drawn as they are. More are seen from the side: the score w·x + b to the right, and upwards the
    first principal component of what is left of X without its part along w.

    Examples
    --------
    >>> from widemargin import LinearSVM
    >>> from widemargin.plots import MarginDisplay
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], ["b", "b", "a", "a"]
    >>> MarginDisplay.from_estimator(LinearSVM().fit(X, y), X, y).ax_.get_xlabel()
    'x₁'

    """

    @classmethod
    def from_estimator(cls, clf: Any, X: ArrayLike, y: ArrayLike, *, ax: Axes | None = None) -> Self:
        """Draw a linear classifier of two classes on the rows it was fitted to.

        Support vectors are circled if `clf` has a ``support_``.
        """
        if len(clf.classes_) != 2:
            raise ValueError(f"MarginDisplay draws two classes, clf has {len(clf.classes_)}; fit one against the rest")
        matrix: Any = X if issparse(X) else np.asarray(X, dtype=np.float64)
        w, scores = np.ravel(clf.coef_).astype(np.float64), clf.decision_function(X)
        if len(w) == 2:
            places, normal, offset = matrix @ np.eye(2), w, float(np.ravel(clf.intercept_)[0])
            names = getattr(clf, "feature_names_in_", ("x₁", "x₂"))
        else:
            places, normal, offset = np.column_stack([scores, _main_coordinate(matrix, w)]), np.array([1.0, 0.0]), 0.0
            names = ("score w·x + b", "main direction besides w")
        positive = np.asarray(y) == clf.classes_[1]
        slack = np.maximum(0.0, 1 - np.where(positive, scores, -scores))
        size = float(np.clip(9000 / len(places), 8, 40))
        display = cls._on(ax)
        for label, rows, share, look in (
            (f"class {clf.classes_[0]}", ~positive, 1.0, CLASSES[0]),
            (f"class {clf.classes_[1]}", positive, 1.0, CLASSES[1]),
            ("support vector", getattr(clf, "support_", []), 4.0, SUPPORT),
            ("inside the margin", (slack > AT_BOUND) & (slack <= 1), 0.3, INSIDE),
            ("misclassified", slack > 1, 1.5, MISCLASSIFIED),
        ):
            if len(chosen := places[rows]):
                display.ax_.scatter(chosen[:, 0], chosen[:, 1], s=share * size, label=label, **look)
        display._draw_band(places if len(w) == 2 else np.vstack([places, -normal, normal]), normal, offset)
        return display._explain(*names)

    def _draw_band(self, framed: Floats, normal: Floats, offset: float) -> None:
        """Draw the lines on which normal · place + offset is −1, 0 and 1, in a frame around the places given."""
        ax, low, high = self.ax_, framed.min(axis=0), framed.max(axis=0)
        room = 0.12 * np.where(high > low, high - low, 1.0)
        (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
        ax.set(xlim=(left, right), ylim=(bottom, top))
        if not normal.any():
            return
        nearest = {level: normal * (level - offset) / (normal @ normal) for level in (-1, 0, 1)}
        along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
        far = 1e3 * max(right - left, top - bottom) * along
        ax.fill(*np.array([nearest[-1] - far, nearest[1] - far, nearest[1] + far, nearest[-1] + far]).T, **BAND)
        for level, label, look in ((0, "score 0", SEPARATOR), (1, "score ±1", EDGE), (-1, None, EDGE)):
            (x, y), (dx, dy) = nearest[level].tolist(), along.tolist()
            ax.axline((x, y), (x + dx, y + dy), label=label, **look)


def _main_coordinate(X: Any, w: Floats) -> Floats:
    """Each row's place along the first principal component of X without its part along w; 0 if nothing is left."""
    unit = w / max(float(np.linalg.norm(w)), np.finfo(float).tiny)

    def places(v: Floats) -> Floats:
        along = X @ (v.ravel() - unit * (unit @ v.ravel()))
        return np.asarray(along - along.mean())

    def back(u: Floats) -> Floats:
        v = X.T @ (u.ravel() - u.mean())
        return np.asarray(v - unit * (unit @ v))

    trial = np.random.default_rng(0).standard_normal(max(X.shape))
    left = np.linalg.norm(places(trial[: len(w)]))
    if len(w) == 1 or left <= 1e-12 * np.linalg.norm(X @ trial[: len(w)]):
        return np.zeros(X.shape[0])
    operator = LinearOperator(X.shape, matvec=places, rmatvec=back, dtype=np.float64)
    _, _, components = svds(operator, k=1, v0=trial[: min(X.shape)])
    upwards = np.sign(components[0, np.argmax(abs(components[0]))])  # the same side up on every machine
    return np.asarray(upwards * places(components[0]))


class ConvergenceDisplay(Display):
    """The relative gap over the seconds of training, a point for each evaluation; dotted, what was asked for.

    The gap is taken relative to the best dual value of its run; one below rounding is drawn at the rounding unit.

    Examples
    --------
    >>> from widemargin import LinearSVM
    >>> from widemargin.plots import ConvergenceDisplay
    >>> svm = LinearSVM().fit([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, 1, 0, 0])
    >>> ConvergenceDisplay.from_estimators({"hinge": svm}).ax_.get_yscale()
    'log'

    """

    @classmethod
    def from_estimators(cls, estimators: Mapping[str, Any], *, ax: Axes | None = None) -> Self:
        """Draw the ``history_`` of fitted estimators of two classes, given under their labels."""
        display = cls._on(ax)
        for (label, clf), look in zip(estimators.items(), cycle(RUNS), strict=False):
            if len(clf.classes_) != 2:
                raise ValueError(f"ConvergenceDisplay draws fits of two classes, {label!r} has {len(clf.classes_)}")
            best = max(record.dual for record in clf.history_)
            gaps = [max(record.gap / best, np.finfo(float).eps) for record in clf.history_ if best > 0]
            display.ax_.plot([record.seconds for record in clf.history_][: len(gaps)], gaps, label=label, **look)
            if len(gaps) > 30:  # so many marks would hide the line
                display.ax_.lines[-1].set_marker("")
        for k, tol in enumerate(sorted({clf.tol for clf in estimators.values()})):
            display.ax_.axhline(tol, label=None if k else "asked for (tol)", **ASKED)
        display.ax_.set_yscale("log")
        return display._explain("seconds", "relative gap (primal − dual) / dual")

"""The boundary of a classifier over two features, curved or straight, its margin and the rows around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import RectBivariateSpline
from sklearn.exceptions import NotFittedError

from widemargin.plots.look import EDGE, SEPARATOR, Display, Look, class_look, inked, mark_beyond, name, tint
from widemargin.plots.pairs import scores_of
from widemargin.plots.rows import draw_rows, on_levels, show
from widemargin.plots.sides import Several, Side, Verdicts, dense, feature_names, matrix_of, several_of, side_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: Kernel values, of 16 features at most, that the scores on a grid may take: half a second at LIBSVM's 50 ns for each.
MOST_VALUES = 10_000_000
#: Numbers that the points of a grid may hold.
MOST_NUMBERS = 20_000_000
#: Points along each side of the grid, at least and at most. Scores on a coarser grid than the finest are interpolated.
COARSEST, FINEST = 64, 300
#: Both axes have one scale unless one of them would be as many times as long as the other.
MOST_STRETCH = 1.4
#: How much colour the regions of the classes have, beyond their margin and within.
BEYOND_MARGIN, WITHIN_MARGIN = 0.26, 0.09


class DecisionDisplay(Display):
    """The regions of the classes in the plane of two features, their boundary and margin, and the rows.

    Of two classes the boundary is where the score is 0, and the paler band around it has scores from −1 to 1. Of
    several, which are told apart in pairs or each from the rest, the regions are those of the prediction, paler where
    the predicted class has a margin below 1 in any of its problems. Rows are marked as by `MarginDisplay`, ξ being the
    largest slack over the problems of the row's class. Slacks have no lines: where the boundary is curved, a score is
    no distance. With C = ∞ there are only support vectors with ξ = 0. Of a single feature the classes stand above each
    other.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from widemargin.plots import DecisionDisplay
    >>> X, y = [[1, 1], [-1, -1], [1, -1], [-1, 1]], ["same", "same", "opposite", "opposite"]
    >>> display = DecisionDisplay.from_estimator(SVC(C=10).fit(X, y), X, y)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()][:3]
    ['class opposite', 'class same', 'support vector, ξ = 0']

    """

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        features: tuple[int | str, int | str] | None = None,
        target: object = None,
        grid_resolution: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a classifier on rows, those it was fitted to or others.

        Parameters
        ----------
        clf : classifier
            Fitted, with a ``decision_function``; a pipeline or a search over parameters that ends in one will do.
        X, y : rows and labels
            Support vectors are ringed if these are the rows that `clf` was fitted to.
        features : two columns of X, by number or by name
            What to draw, of more than two features. The regions are those of rows whose other features have the median
            of X. The rows have their own, so that one may be rightly classified and yet lie in another class's region.
        target : class, or two classes
            Of several classes, draw only this one against the rest or, if they are told apart in pairs, only these two
            and their score. None draws all.
        grid_resolution : int
            Number of points along each axis at which the score is computed; None for as many as are computed soon.
        ax : axes
            To draw on; None for new ones.

        """
        clf = getattr(clf, "best_estimator_", clf)
        _check(clf, cls.__name__)
        if grid_resolution is not None and not grid_resolution >= 4:
            raise ValueError(f"grid_resolution={grid_resolution!r}; give at least 4 points, or None")
        last, rows = _last_step(clf, X)
        columns = _columns(features, matrix_of(X), feature_names(X, clf))
        if target is None and len(clf.classes_) > 2:
            seen: Verdicts = several_of(last, rows, y)
        else:
            seen = side_of(last, rows, y, target, cls.__name__)
        display = cls._on(ax)
        return display._explain(*draw_plane(display.ax_, clf, X, seen, columns, grid_resolution))


def _check(clf: Any, display: str) -> None:
    """Raises unless it is a fitted classifier that can tell the score of any place."""
    kind = type(clf).__name__
    try:
        fitted = hasattr(clf, "classes_")
    except NotFittedError:  # a pipeline asks its last step
        fitted = False
    if not fitted:
        raise NotFittedError(f"{display} draws fitted classifiers, and this {kind} is not fitted yet; call fit first")
    if not hasattr(clf, "decision_function"):
        raise ValueError(f"{display} draws scores, and this {kind} has no decision_function")
    last = clf.steps[-1][1] if hasattr(clf, "steps") else clf
    if getattr(last, "kernel", None) == "precomputed":
        raise ValueError(
            f"{display} draws features, which a precomputed kernel does not have; fit with kernel='rbf' or another "
            "function, or draw scores by MarginDisplay"
        )


def _last_step(clf: Any, X: Any) -> tuple[Any, Any]:
    """The classifier at the end of a pipeline and the rows that it sees."""
    return (clf.steps[-1][1], clf[:-1].transform(X)) if len(getattr(clf, "steps", ())) > 1 else (clf, X)


def _columns(features: Any, matrix: Any, names: list[str] | None) -> tuple[int, ...]:
    """The columns to draw: those asked for, else the only one or two."""
    d = matrix.shape[1] if matrix.ndim == 2 else 0
    if features is None:
        if d > 2:
            raise ValueError(
                f"DecisionDisplay draws two features, X has {d}; choose two, features=(0, 1), and the others are held "
                "at their median; or see the scores from the side by MarginDisplay"
            )
        return tuple(range(d))
    if isinstance(features, str) or np.ndim(features) != 1 or len(features) != 2:
        raise ValueError(f"features={features!r}; give two columns of X, by number or by name")
    found = []
    for one in features:
        if isinstance(one, str):
            if one not in (names or ()):
                raise ValueError(
                    f"features={features!r}: no feature is called {one!r}; there are {names or 'no names'}"
                )
            found.append((names or []).index(one))
        else:
            if not -d <= one < d:
                raise ValueError(f"features={features!r}: X has {d} columns, numbered from 0")
            found.append(int(one) % d)
    if found[0] == found[1]:
        raise ValueError(f"features={features!r}; give two different columns")
    return tuple(found)


def draw_plane(
    ax: Axes, clf: Any, X: Any, seen: Verdicts, columns: tuple[int, ...], resolution: int | None = None
) -> tuple[str, str]:
    """Draw a classifier over two columns of X, or over its only one, and return the names of the axes."""
    rows = X.tocsc() if hasattr(X, "tocsc") else matrix_of(X)
    matrix = dense(rows[:, list(columns)])[seen.rows]
    given = feature_names(X, clf)
    names = [name(given[c]) if given else f"x{chr(0x2081 + c)}" if c < 9 else f"x{c + 1}" for c in columns]
    if len(columns) == 1:
        places = on_levels(matrix[:, 0], seen.which)
        ax.set_yticks(range(len(seen.names)), labels=seen.names, rotation="vertical", va="center")
        names = [names[0] if given else "x", "rows of a class are\nspread at random"]
    else:
        places = matrix
    groups = [places[seen.which == k] for k in range(len(seen.names))]
    show(ax, groups, stretch=MOST_STRETCH if len(columns) == 2 else 0.0)
    draw_rows(ax, places, seen)
    x, y, scores = _on_grid(ax, clf, X, columns, resolution)
    slice_of = ", others at median" if rows.shape[1] > len(columns) else ""
    if isinstance(seen, Side):
        _draw_two(ax, x, y, seen.score(scores).reshape(len(y), len(x)), slice_of)
    elif isinstance(seen, Several):
        _draw_several(ax, x, y, scores, seen, slice_of)
    mark_beyond(ax, places)
    return names[0], names[1]


def _on_grid(
    ax: Axes, clf: Any, X: Any, columns: tuple[int, ...], resolution: int | None
) -> tuple[Floats, Floats, Floats]:
    """Abscissas and ordinates of a grid over the axes, and the scores there, in one call, rows of the grid in a row.

    Where the score is costly, since there are many support vectors or features, it is computed on a coarser grid and
    interpolated by cubic splines, which its smoothness allows.
    """
    d = np.shape(X)[1]
    last = clf.steps[-1][1] if hasattr(clf, "steps") else clf
    if resolution is None:
        vectors = max(len(getattr(last, "support_", ())), 1)
        most = min(MOST_VALUES / (vectors * max(1.0, d / 16)), MOST_NUMBERS / d)
        resolution = int(np.clip(np.sqrt(most), COARSEST, FINEST))
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    x, y = np.linspace(left, right, resolution), np.linspace(bottom, top, resolution)
    y = y if len(columns) == 2 else np.array([bottom, top])
    others = np.median(dense(matrix_of(X)), axis=0) if d > len(columns) else np.zeros(d)
    places = np.tile(others, (len(x) * len(y), 1))
    for column, values in zip(columns, (np.tile(x, len(y)), np.repeat(y, len(x))), strict=False):
        places[:, column] = values
    scores = scores_of(clf, _as_given(X, places))
    if resolution >= FINEST or len(columns) == 1:
        return x, y, scores
    fine_x, fine_y = np.linspace(left, right, FINEST), np.linspace(bottom, top, FINEST)
    fine = [
        RectBivariateSpline(y, x, column.reshape(len(y), len(x)))(fine_y, fine_x).ravel()
        for column in np.atleast_2d(scores.T)
    ]
    return fine_x, fine_y, np.column_stack(fine) if scores.ndim > 1 else fine[0]


def _as_given(X: Any, places: Floats) -> Any:
    """Places as a data frame with the columns of X, or as a sparse matrix, if X is one."""
    if hasattr(X, "iloc"):
        return type(X)(places, columns=X.columns)
    return type(X)(places) if hasattr(X, "tocsc") else places


def _draw_two(ax: Axes, x: Floats, y: Floats, score: Floats, slice_of: str) -> None:
    """The regions of two classes, and the lines on which the score is −1, 0 and 1."""
    shades = [(0, BEYOND_MARGIN), (0, WITHIN_MARGIN), (1, WITHIN_MARGIN), (1, BEYOND_MARGIN)]
    colors = [tint(class_look(k)["color"], share) for k, share in shades]
    low, high = min(float(score.min()), -1.0) - 1, max(float(score.max()), 1.0) + 1
    ax.contourf(x, y, score, levels=[low, -1, 0, 1, high], colors=colors, zorder=0)
    _draw_line(ax, [_line(x, y, score, 0.0)], f"score 0{slice_of}", SEPARATOR, missing="score 0, not in view")
    _draw_line(ax, [_line(x, y, score, 1.0), _line(x, y, score, -1.0)], "score ±1", EDGE)


def _draw_several(ax: Axes, x: Floats, y: Floats, scores: Floats, seen: Several, slice_of: str) -> None:
    """The regions of several classes, their boundaries, and the lines on which the smallest margin is 1."""
    shape, k = (len(y), len(x)), len(seen.names)
    winner, margins = seen.predicted(scores).reshape(shape), seen.class_margins(scores)
    beyond = margins.max(axis=1).reshape(shape) >= 1
    shades = np.array([[tint(class_look(c)["color"], s) for c in range(k)] for s in (WITHIN_MARGIN, BEYOND_MARGIN)])
    half = (x[1] - x[0]) / 2, (y[1] - y[0]) / 2
    ax.imshow(
        shades[beyond.astype(int), winner],
        extent=(x[0] - half[0], x[-1] + half[0], y[0] - half[1], y[-1] + half[1]),
        origin="lower",
        aspect=ax.get_aspect(),
        interpolation="bilinear",
        zorder=0,
    )
    leads = [one.reshape(shape) for one in seen.leads(scores).T]
    # a class that is predicted without a lead, by a tie of votes, has a boundary all the same
    signed = [np.where(winner == c, np.abs(one), -np.abs(one)) for c, one in enumerate(leads)]
    _draw_line(ax, [_line(x, y, one, 0.0) for one in signed], f"class boundary{slice_of}", {**SEPARATOR, "lw": 1.2})
    _draw_line(ax, [_line(x, y, one.reshape(shape), 1.0) for one in margins.T], "smallest margin 1", EDGE)


def _line(x: Floats, y: Floats, values: Floats, level: float) -> Floats:
    """The places where interpolated values have this level, curve after curve, a NaN between two of them."""
    from contourpy import contour_generator

    curves = contour_generator(x, y, values).lines(level)
    gap = np.full((1, 2), np.nan)
    return np.vstack([gap, *(np.vstack([np.asarray(one), gap]) for one in curves)])[1:]


def _draw_line(ax: Axes, curves: list[Floats], label: str, look: Look, missing: str | None = None) -> None:
    """Draw curves under one label; if there are none, only say so, if there is a label for it."""
    places = np.vstack(curves)
    if len(places) or missing:
        ax.plot(*places.T, label=label if len(places) else missing, scalex=False, scaley=False, **inked(look))

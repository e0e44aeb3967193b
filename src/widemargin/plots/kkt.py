"""What optimality asks of each row, and what it got."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.certificate import AT_BOUND, Certificate, Certificates, certify
from widemargin.plots.look import CLASSES, COLOURS, Display, class_label, frame, mark_beyond, point_size, scatter
from widemargin.plots.sides import SAME, check_columns, check_fit, class_of, is_about, matrix_of
from widemargin.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


class OtherProblemError(ValueError):
    """What a certificate was to be drawn on is not what it is about."""


class KKTDisplay(Display):
    """α against the margin for every row, and shaded where optimality allows it to be.

    With the hinge: α = 0 needs m ≥ 1; 0 < α < c needs m = 1; α = c needs m ≤ 1. Of the hard margin there are only the
    first two. A loss without a kink allows one α = −cφ′(m) for each m. Upwards stands α/c, so that rows of different
    strength c can be compared; of the hard margin, where c = ∞, α itself.

    Examples
    --------
    >>> from widemargin import LinearSVM
    >>> from widemargin.plots import KKTDisplay
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.1, -0.1]], [1, 1, 0, 0, 1]
    >>> KKTDisplay.from_estimator(LinearSVM().fit(X, y), X, y).ax_.get_ylabel()
    'α / c'

    """

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        target: object = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a fit of ours on the rows it was made from; of more than two classes, that of `target`."""
        check_fit(clf, cls.__name__)
        check_columns(clf, matrix_of(X))
        if not hasattr(clf, "certificate_"):
            raise ValueError(f"KKTDisplay needs the dual variables of a certificate; {type(clf).__name__} has none")
        row = 0 if len(clf.classes_) == 2 else class_of(clf, target, cls.__name__)
        classes, problems = copy(clf).problems(X, y, sample_weight)
        proof = clf.certificate_
        proof = proof[row] if isinstance(proof, Certificates) else proof
        if not np.array_equal(classes, clf.classes_):
            raise OtherProblemError("KKTDisplay draws the rows that clf was fitted to; these have other classes")
        problem, w, b = problems[row], np.asarray(clf.coef_[row], dtype=np.float64), float(clf.intercept_[row])
        margins = problem.margins(w, b)
        if not is_about(proof, w, problem.rows, problem.y, problem.y * margins):
            raise OtherProblemError("KKTDisplay draws the rows that clf was fitted to; these are others")
        if not _has_strengths_of(proof, certify(problem, w, b, proof.alpha, margins)):
            raise OtherProblemError(
                "these are the rows that clf was fitted to, but not with the same strengths; give the sample_weight of "
                "the fit, and leave C and class_weight as they were"
            )
        live = problem.live
        m, alpha, c = margins[live], proof.alpha[live], problem.c[live]
        heights = alpha if problem.hard else alpha / c
        display = cls._on(ax)
        first, second = ("the rest", class_label(classes[row])) if len(classes) > 2 else map(class_label, classes)
        positive, places = problem.y[live] > 0, np.column_stack([m, heights])
        display._frame([places[~positive], places[positive]], problem)
        display._shade(problem)
        for rows, label, look in zip((~positive, positive), (first, second), CLASSES, strict=True):
            scatter(display.ax_, places[rows], point_size(rows.sum()), alpha=0.75, label=label, **look)
        mark_beyond(display.ax_, places)
        return display._explain("margin m = y(w·x + b)", "α" if problem.hard else "α / c")

    def _frame(self, groups: list[Floats], problem: Problem) -> None:
        low, high = frame(*groups, np.array([[0.0, 0.0], [2.0, 0.0]]))  # around the corner at 1 in any case
        bounded = np.isfinite(problem.loss.upper) and not problem.hard
        top, bottom = problem.loss.upper if bounded else float(high[1]), min(0.0, float(low[1]))
        tall = max(top - bottom, AT_BOUND)
        self.ax_.set(xlim=(low[0], high[0]), ylim=(bottom - 0.12 * tall, top + 0.12 * tall))

    def _shade(self, problem: Problem) -> None:
        """What is allowed, as broad bands around lines: a line itself would hide under its rows."""
        ax, loss = self.ax_, problem.loss
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        broad: dict[str, Any] = {"lw": 13, "alpha": 0.3, "solid_capstyle": "butt", "zorder": 0.5}
        if loss.smooth and not problem.hard:
            m = np.linspace(left, right, 400)
            ax.plot(m, -loss.slope(m), color=COLOURS[2], label="allowed: α = −cφ′(m)", **broad)
        else:
            kink, high = loss.kink, top if problem.hard else loss.upper
            between = "α > 0" if problem.hard else "0 < α < c"
            ax.plot([kink, right], [0, 0], color=COLOURS[2], label=f"allowed: α = 0, m ≥ {kink:g}", **broad)
            ax.plot([kink, kink], [0, high], color=COLOURS[4], label=f"allowed: {between}, m = {kink:g}", **broad)
            if not problem.hard:
                ax.plot([left, kink], [high] * 2, color=COLOURS[5], label=f"allowed: α = c, m ≤ {kink:g}", **broad)
        ax.set(xlim=(left, right), ylim=(bottom, top))


def _has_strengths_of(proof: Certificate, again: Certificate) -> bool:
    """Whether the certificate comes out the same: another c changes the values, or the place of α in [0, c]."""
    same_places = [kind.count for kind in proof.kkt] == [kind.count for kind in again.kkt]
    near = SAME * abs(proof.primal)
    return same_places and bool(np.allclose([proof.primal, proof.dual], [again.primal, again.dual], SAME, near))

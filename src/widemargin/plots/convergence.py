"""How a fit came to its proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from widemargin.plots.look import PAPER, REFERENCE, RUNS, Display, grey, inked, name
from widemargin.plots.sides import check_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: So many marks would hide the line.
MOST_MARKS = 30


class ConvergenceDisplay(Display):
    """The relative gap, or primal and dual, over the seconds or passes of training, a point for each evaluation.

    The gap is taken relative to the best dual value of its run; one below rounding is drawn at the rounding unit.
    Dotted: what was asked for. Of the values, the primal falls to the optimum and the dual, dashed, rises to it.

    Examples
    --------
    >>> from widemargin import LinearSVM
    >>> from widemargin.plots import ConvergenceDisplay
    >>> svm = LinearSVM().fit([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, 1, 0, 0])
    >>> ConvergenceDisplay.from_estimators({"hinge": svm}).ax_.get_yscale()
    'log'

    """

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, show: str = "gap", over: str = "seconds", ax: Axes | None = None
    ) -> Self:
        """Draw the ``history_`` of fitted estimators of two classes, given under their labels."""
        for label, clf in estimators.items():
            check_fit(clf, cls.__name__)
            if not hasattr(clf, "history_"):
                raise ValueError(
                    f"ConvergenceDisplay draws the history_ of a fit; {label!r}, a {type(clf).__name__}, has none"
                )
            if len(clf.classes_) != 2:
                raise ValueError(
                    f"ConvergenceDisplay draws fits of two classes, {label!r} has {len(clf.classes_)}; "
                    "use from_histories with the histories of its classes"
                )
        histories = {label: clf.history_ for label, clf in estimators.items()}
        tols = {float(clf.tol) for clf in estimators.values() if hasattr(clf, "tol")}
        return cls.from_histories(histories, tols=tols, show=show, over=over, ax=ax)

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, Sequence[Any]],
        *,
        tols: Iterable[float] = (),
        show: str = "gap",
        over: str = "seconds",
        ax: Axes | None = None,
    ) -> Self:
        """Draw lists of records with ``iteration``, ``seconds``, ``primal``, ``dual`` and ``gap``.

        Parameters
        ----------
        histories : mapping
            From label to records.
        tols : numbers
            Relative gaps to draw as dotted lines.
        show : {"gap", "values"}
            The relative gap, or primal and dual.
        over : {"seconds", "passes"}
            What is drawn to the right.
        ax : axes
            To draw on; None for new ones.

        """
        if show not in ("gap", "values"):
            raise ValueError(f"show={show!r}; choose 'gap' or 'values'")
        if over not in ("seconds", "passes"):
            raise ValueError(f"over={over!r}; choose 'seconds' or 'passes'")
        display = cls._on(ax)
        for (label, history), look in zip(histories.items(), cycle(RUNS), strict=False):
            times = np.array([one.seconds if over == "seconds" else one.iteration for one in history], dtype=float)
            if show == "gap":
                best = max((one.dual for one in history), default=0.0)
                with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # what is infinite is not drawn
                    gaps = np.array([one.gap for one in history]) / max(best, 0.0)
                display._draw(times, np.maximum(gaps, np.finfo(float).eps), name(label), look)
            else:
                display._draw(times, np.array([one.primal for one in history]), f"{name(label)}: primal", look)
                dual = {**look, "ls": "--", "markerfacecolor": grey(PAPER)}
                display._draw(times, np.array([one.dual for one in history]), f"{name(label)}: dual", dual)
        for k, tol in enumerate(sorted(set(tols)) if show == "gap" else []):
            display.ax_.axhline(tol, label=None if k else "asked for (tol)", **inked(REFERENCE))
        display.ax_.set_yscale("log")
        if (
            over == "passes"
            and max((one.iteration for history in histories.values() for one in history), default=0) > 100
        ):
            display.ax_.set_xscale("symlog", linthresh=1)  # a few Newton steps beside thousands of passes
            display.ax_.set_xlim(left=0)
        elif over == "passes":
            display.ax_.locator_params(axis="x", integer=True)
        if show == "values":
            display._near_the_optimum(max((one.dual for history in histories.values() for one in history), default=0.0))
        what = "relative gap\n(primal − dual) / dual" if show == "gap" else "objective"
        return display._explain("passes or steps" if over == "passes" else over, what)

    def _draw(self, times: Any, values: Any, label: str, look: dict[str, Any]) -> None:
        """A line through the values that a logarithmic scale can show; a single one is a mark."""
        fits = np.isfinite(values) & (values > 0)
        marker = look["marker"] if fits.sum() <= MOST_MARKS else ""
        self.ax_.plot(
            times[fits], values[fits], label=label, **{**look, "marker": marker, "markersize": 4.5, "lw": 1.4}
        )

    def _near_the_optimum(self, best: float) -> None:
        """Leave out values more than thirty times as large or small as the optimum, and leave room around it."""
        if 0 < best < np.inf:
            bottom, top = self.ax_.get_ylim()
            self.ax_.set_ylim(np.clip(bottom, best / 30, best / 1.1), np.clip(top, best * 1.1, best * 30))

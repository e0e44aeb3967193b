"""What C does: accuracy, margin and support vectors along a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.certificate import Certificates
from widemargin.estimators import Path
from widemargin.plots.look import COLOURS, Display, grey, plain, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: Widths that differ by less than this factor look the same.
FLAT = 1.1


@dataclass(frozen=True)
class PathDisplay(Display):
    """Accuracy, margin width and number of support vectors over C, one above the other; C = ∞ stands at the right end.

    The width of several classes is the narrowest, and a support vector of any of them counts.

    Examples
    --------
    >>> from widemargin import path
    >>> from widemargin.plots import PathDisplay
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.1, -0.1]], [1, 1, 0, 0, 1]
    >>> [ax.get_ylabel() for ax in PathDisplay.from_path(path(X, y), X, y).axes_]
    ['accuracy', 'margin width', 'support vectors']

    """

    #: The three panels; `ax_` is the first.
    axes_: tuple[Axes, ...]

    @classmethod
    def from_path(
        cls,
        path: Path,
        X: ArrayLike,
        y: ArrayLike,
        *,
        held_out: tuple[Any, Any] | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the result of ``widemargin.path``.

        Parameters
        ----------
        path : Path
            What ``widemargin.path`` returned.
        X, y : arrays
            The rows to count mistakes on, mostly those that the path was trained on.
        held_out : (X, y), optional
            Further rows, for a second line of accuracies.
        axes : three axes, optional
            To draw on; None for new ones.

        """
        if axes is None:
            _, axes = pyplot().subplots(3, 1, figsize=(6.4, 6.6), sharex=True, layout="constrained")
        if len(axes) != 3:
            raise ValueError(f"PathDisplay draws on three axes, got {len(axes)}")
        order = np.argsort(path.Cs)
        Cs, models = np.array(path.Cs)[order], [path.models[k] for k in order]
        places, end = _places(Cs)
        accuracy, width, support = (plain(ax) for ax in axes)
        look: dict[str, Any] = {"marker": "o", "markersize": 4, "lw": 1.4}
        accuracy.plot(
            places, [model.score(X, y) for model in models], label="rows trained on", color=COLOURS[0], **look
        )
        if held_out is not None:
            scores = [model.score(*held_out) for model in models]
            accuracy.plot(places, scores, label="rows held out", color=COLOURS[3], ls="--", **{**look, "marker": "s"})
            accuracy.legend(frameon=False, fontsize="small", loc="best")
        width.plot(places, [_width(model.certificate_) for model in models], color=COLOURS[2], **look)
        support.plot(places, [len(model.support_) for model in models], color=COLOURS[4], **look)
        for ax, label in zip((accuracy, width, support), ("accuracy", "margin width", "support vectors"), strict=True):
            ax.set(ylabel=label, xscale="log")
            ax.grid(axis="x", color=grey(0.9), lw=0.6)
            if end is not None:
                ax.axvline(end, color=grey(0.88), lw=6, zorder=0)
        low, high = accuracy.get_ylim()
        accuracy.set_ylim(low, min(high, 1.0 + 0.04 * (1.0 - min(low, 0.96))))
        width.set_yscale("log")
        low, high = width.get_ylim()
        middle = float(np.sqrt(low * high))
        width.set_ylim(min(low, middle / FLAT), max(high, middle * FLAT))
        _plain_ticks(width)
        support.set_ylim(0, 1.08 * max(1, *(len(model.support_) for model in models)))
        support.set_xlabel("C")
        _name_strengths(support, Cs, end)
        figure = support.figure
        if hasattr(figure, "align_ylabels"):
            figure.align_ylabels([accuracy, width, support])
        return cls(accuracy, (accuracy, width, support))


def _places(Cs: Floats) -> tuple[Floats, float | None]:
    """Where each C stands; ∞ a step beyond the largest number."""
    finite = Cs[np.isfinite(Cs)]
    if len(finite) == len(Cs):
        return Cs, None
    end = 10 * float(finite[-1]) if len(finite) else 1.0
    return np.where(np.isfinite(Cs), Cs, end), end


def _plain_ticks(ax: Axes) -> None:
    """1, 2, 5, 10 … as numbers, not as powers of ten; over many decades 1, 10, 100 …"""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 50 * low else (1.0,), numticks=6))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _name_strengths(ax: Axes, Cs: Floats, end: float | None) -> None:
    """A tick for every power of ten, or for every few of them, and ∞ for the last if it is that."""
    finite = Cs[np.isfinite(Cs)]
    if end is None:
        return
    powers = np.arange(np.floor(np.log10(finite[0])), np.floor(np.log10(finite[-1])) + 1) if len(finite) else finite
    powers = powers[:: max(1, len(powers) // 8)]
    ax.set_xticks([*10.0**powers, end], labels=[*(f"$10^{{{power:.0f}}}$" for power in powers), "∞"])
    ax.minorticks_off()


def _width(proof: Any) -> float:
    return min(one.width for one in proof) if isinstance(proof, Certificates) else float(proof.width)

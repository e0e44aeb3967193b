"""The losses over the margin."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import TYPE_CHECKING, Self

import numpy as np

from widemargin.losses import LOSSES, Loss
from widemargin.plots.look import COLOURS, DASHES, SEPARATOR, Display, inked

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LossDisplay(Display):
    """φ(m) of losses over the margin m = y(w·x + b), with the 0–1 step, which counts mistakes and is never minimised.

    Examples
    --------
    >>> from widemargin.plots import LossDisplay
    >>> LossDisplay.from_losses(["hinge", "logistic"]).ax_.get_xlabel()
    'margin m = y(w·x + b)'

    """

    @classmethod
    def from_losses(
        cls,
        losses: Iterable[str | Loss] = ("hinge", "squared_hinge", "logistic", "squared", "perceptron"),
        *,
        low: float = -2.0,
        high: float = 3.0,
        ax: Axes | None = None,
    ) -> Self:
        """Draw losses, given by name or as they are, for margins from `low` to `high`."""
        if not low < high:
            raise ValueError(f"low={low:g} and high={high:g}; low must be below high")
        chosen = []
        for loss in losses:
            if isinstance(loss, str) and loss not in LOSSES:
                raise ValueError(f"there is no loss {loss!r}; choose from {', '.join(map(repr, LOSSES))}")
            chosen.append(LOSSES[loss] if isinstance(loss, str) else loss)
        display = cls._on(ax)
        m = np.unique(np.concatenate([np.linspace(low, high, 501), [0.0, 1.0]]).clip(low, high))  # kinks are kept sharp
        display.ax_.plot([low, 0, 0, high], [1, 1, 0, 0], label="0–1: a mistake", **inked(SEPARATOR))
        # where losses are equal, the thinner line shows upon the broader one
        broad = np.linspace(3.4, 1.4, max(len(chosen), 2))
        for loss, color, dashes, lw in zip(chosen, cycle(COLOURS), cycle(DASHES), broad, strict=False):
            display.ax_.plot(m, loss.value(m), label=loss.name.replace("_", " "), color=color, ls=dashes, lw=lw)
        # steep losses leave the picture at the height where the straight ones end
        display.ax_.set(xlim=(low, high), ylim=(-0.1, max(1.5, 1.15 * (1 - low))))
        return display._explain("margin m = y(w·x + b)", "loss φ(m)")

"""The words, numbers, tables and pictures of a report, as HTML."""

from __future__ import annotations

import base64
import html
import warnings
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

import numpy as np

from widemargin.data.labels import text_of

#: A name of more letters is cut.
LONGEST = 80


def escaped(of: object) -> str:
    """Anything from data or names as it may stand in HTML: one line, not too long, escaped."""
    words = "".join(letter if letter.isprintable() else " " for letter in text_of(of)[: 4 * LONGEST])
    words = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
    return html.escape(words.encode("utf-8", "replace").decode("utf-8"))


def percent(share: float) -> str:
    """One decimal; never 100 % for less than all, nor 0 % for more than nothing."""
    if 0.9995 <= share < 1:
        return "over 99.9\u00a0%"
    if 0 < share < 0.0005:
        return "under 0.1\u00a0%"
    return f"{100 * share:.1f}\u00a0%"


def small_percent(share: float) -> str:
    """Two digits, however small."""
    if not np.isfinite(share):
        return "unknown"
    if share <= 1e-12:
        return "0\u00a0%"
    percent = 100 * share
    return (
        f"{min(percent, 99.9):.1f}\u00a0%"
        if percent >= 10
        else f"{percent:.2g}\u00a0%"
        if percent >= 1e-4
        else "&lt;\u00a00.0001\u00a0%"
    )


def four_digits(value: float | None) -> str:
    """0.1234, or a dash for what cannot be said."""
    return "–" if value is None else f"{value:.4f}"


def plural(count: int, one: str, more: str) -> str:
    """The words for one, or those for more."""
    return one if count == 1 else more


def table_of(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int] = (), drawn: int | None = None
) -> str:
    """A table; its cells are HTML already. Columns of words stand to the left, numbers to the right."""

    def look(k: int) -> str:
        return ' class="words"' if k in words else ' class="drawn"' if k == drawn else ""

    head = "".join(f"<th{look(k)}>{one}</th>" for k, one in enumerate(heads))
    lines = "".join("<tr>" + "".join(f"<td{look(k)}>{one}</td>" for k, one in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def picture_of(draw: Any) -> str:
    """What `draw` draws on axes, as the address of an image that holds itself."""
    from matplotlib.figure import Figure
    from matplotlib.style import context

    # the page turns black on white to white on black by itself
    with context(["default", {"svg.hashsalt": "widemargin"}]), warnings.catch_warnings():
        figure = Figure(figsize=(4.6, 4.3), layout="constrained")  # small, so that letters are large
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a script that the font lacks: the page has it
        draw(figure.subplots())
        file = BytesIO()
        figure.savefig(file, format="svg", dpi=150, metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii")

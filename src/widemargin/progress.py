"""A line on the terminal that shows the gap falling."""

from __future__ import annotations

import math
import sys
import time
from typing import TextIO

#: Fits shorter than this show nothing; off a terminal, lines are this far apart.
PATIENCE_SECONDS = 2.0


class ProgressLine:
    """Shows how far the relative gap has come on its way to `tol`.

    `verbose` 0 shows nothing, 1 a line from two seconds after `began` on, 2 a line whenever the solver returned. On a
    terminal the line of 1 is rewritten in place; elsewhere one is printed every two seconds. Where there is no gap,
    `counted` names what falls instead.
    """

    def __init__(
        self,
        label: str,
        tol: float,
        *,
        verbose: int,
        began: float,
        counted: str | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self.label, self.tol, self.verbose, self.counted = label, tol, verbose, counted
        self.began, self.next = began, began + PATIENCE_SECONDS
        self.stream = sys.stderr if stream is None else stream
        self.in_place = verbose == 1 and self.stream.isatty()
        self.first: float | None = None
        self.since, self.rows = 0.0, 0
        self.shown = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown and self.in_place:  # leave the last line standing
            self.stream.write("\n")

    def show(self, iteration: int, seconds: float, relative_gap: float, rows: int = 0) -> None:
        """The state of the fit after that iteration, which went over so many rows."""
        self.rows += rows
        if self.first is None and 0 < relative_gap < math.inf:
            self.first = relative_gap
            self.since = seconds
        now = time.perf_counter()
        if self.verbose == 0 or (self.verbose == 1 and now < self.next):
            return
        if not self.in_place:
            self.next = max(self.next, now + PATIENCE_SECONDS)
        bar = "█" * round(20 * self._done(relative_gap))
        what = (
            f"{self.counted} {relative_gap:,.0f}"
            if self.counted
            else f"relative gap {relative_gap:.1e} → {self.tol:.0e}"
        )
        rate = f"  {_short(self.rows / seconds)} rows/s" if self.rows and seconds > 0 else ""
        text = f"{self.label}  {bar:·<20}  {what}  iteration {iteration:,}{rate}  {seconds:.1f} s"
        text += self._left(seconds, relative_gap)
        self.stream.write(f"\r{text}\x1b[K" if self.in_place else f"{text}\n")
        self.stream.flush()
        self.shown = True

    def _done(self, relative_gap: float) -> float:
        """How much of the way from the first gap to `tol` is done, on a logarithmic scale."""
        if relative_gap <= self.tol:
            return 1.0
        if self.first is None or self.first <= self.tol or math.isinf(relative_gap):
            return 0.0
        return max(0.0, min(1.0, math.log(self.first / relative_gap) / math.log(self.first / self.tol)))

    def _left(self, seconds: float, relative_gap: float) -> str:
        """How long it will take if the gap goes on falling as it did."""
        done = self._done(relative_gap)
        if self.counted or not 0.05 < done < 1:
            return ""
        return f"  about {(seconds - self.since) * (1 - done) / done:.0f} s left"


def _short(number: float) -> str:
    """12.3k, 4.56M."""
    for power, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= power:
            return f"{number / power:.3g}{letter}"
    return f"{number:.0f}"

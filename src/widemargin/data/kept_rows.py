"""Some rows of several parts, copied: to be visited together when the parts are gone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.data.rows import CsrRows, Rows

Integers = NDArray[np.int64]


class KeptRows:
    """Rows of `d` columns that are added part by part, as long as there is room for so many numbers (below 2³¹)."""

    def __init__(self, d: int, room: int) -> None:
        self.d, self.room, self.used, self.sparse = d, room, 0, False
        self.places: list[Integers] = []
        self.lengths: list[Integers] = []

    def add(self, part: Rows, wanted: Integers, first: int) -> None:
        """These rows of a part whose first row is row `first` of all, the first that fit."""
        self.sparse = not isinstance(part.X, np.ndarray)
        lengths = np.diff(part.X.indptr)[wanted] if self.sparse else np.full(len(wanted), self.d)
        fitting = int(np.searchsorted(np.cumsum(lengths), self.room - self.used, side="right"))
        if not fitting:
            return
        if not self.places:
            self.values = np.empty(self.room, part.X.dtype)
            self.columns = np.empty(self.room if self.sparse else 0, np.int32)
        rows, end = part.X[wanted[:fitting]], self.used + int(lengths[:fitting].sum())
        self.values[self.used : end] = rows.data if self.sparse else rows.ravel()
        if self.sparse:
            self.columns[self.used : end] = rows.indices
        self.used = end
        self.places.append(wanted[:fitting] + first)
        self.lengths.append(lengths[:fitting])

    @property
    def index(self) -> Integers:
        """Their numbers among all rows."""
        return np.concatenate([np.empty(0, np.int64), *self.places])

    def rows(self, threads: int) -> Rows:
        """All that were added, in that order; at least one must have been."""
        values, columns = self.values[: self.used], self.columns[: self.used]
        if not self.sparse:
            return Rows(values.reshape(-1, self.d), threads)
        starts = np.concatenate([[0], *self.lengths]).cumsum(dtype=np.int32)
        return CsrRows(values, columns, starts, self.d, threads)

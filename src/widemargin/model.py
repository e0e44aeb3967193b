"""MODEL: weights, biases and classes, and what they say of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data import Rows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """One row of `coef` per class, or a single one that tells `classes[1]` from `classes[0]`."""

    coef: Floats
    intercept: Floats
    classes: NDArray[Any]

    def scores(self, rows: Rows) -> Floats:
        """w·x + b: of shape (n,) for two classes, (n, classes) for more."""
        columns = [rows.scores(w) + b for w, b in zip(self.coef, self.intercept, strict=True)]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def choose(self, scores: Floats) -> NDArray[Any]:
        """The class that each row's scores speak for: the side of the hyperplane, or the highest score."""
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[chosen])

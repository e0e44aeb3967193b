"""Labels: which there are, and how they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur, none of them NaN, in order; np.unique imports numpy.ma, which takes longer than a fit."""
    ordered: NDArray[Any] = np.sort(labels)
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def text_of(label: object) -> str:
    """A label as it stands in files: 1, not 1.0; two labels that differ have texts that differ."""
    if isinstance(label, float | np.floating) and float(label).is_integer() and abs(float(label)) < 1e16:
        return str(int(label))
    return str(label)

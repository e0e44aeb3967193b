"""Labels: which there are, and how they are written."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Most data has few labels and all of them among its first rows; to find that they are all is quicker than to sort.
SOME, FEW = 250, 16


def distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur, none of them NaN, in order; np.unique imports numpy.ma, which takes longer than a fit."""
    import numpy as np

    if labels.dtype.kind in "biuf" and len(labels) > SOME:
        some = distinct(labels[:SOME])
        if len(some) <= FEW and sum(np.count_nonzero(labels == one) for one in some) == len(labels):
            return some
    ordered: NDArray[Any] = np.sort(labels)
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def text_of(label: object) -> str:
    """A label as it stands in files: 1, not 1.0; two labels that differ have texts that differ."""
    number = float(label) if isinstance(label, Real) and not isinstance(label, Integral) else None
    return str(int(number)) if number is not None and number.is_integer() and abs(number) < 1e16 else str(label)

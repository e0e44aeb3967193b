"""What a data file holds, and what is wrong with one that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from widemargin.data.encoding import Encoding


class DataError(ValueError):
    """Data that cannot be used: one line, `where: what; what to do`."""


@dataclass(frozen=True)
class Dataset:
    """Rows, their labels if they have any, and what is known of the columns."""

    #: A CSR array, a dense array, or the rows of a store.
    X: Any
    y: NDArray[Any] | None
    names: tuple[str, ...] | None = None
    encoding: Encoding | None = None
    qid: NDArray[np.int64] | None = None
    source: str = ""

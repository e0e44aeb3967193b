"""What a data file holds, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from widemargin.data.encoding import Encoding
from widemargin.data.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

__all__ = ["DataError", "Dataset", "checked_dtype", "stack"]


@dataclass(frozen=True)
class Dataset:
    """Rows, their labels, and what is known of the columns.

    `X` is a CSR array, a dense array in C order or, of a store or if asked for, :class:`Rows`; `y` the labels (None if
    the file has none), `names` the names of X's columns, `encoding` how the columns of a table became those of X, `qid`
    the query ids of svmlight text, `source` the name of the file, and `zero_based` whether svmlight text counted its
    columns from 0.
    """

    X: Any
    y: NDArray[Any] | None
    names: tuple[str, ...] | None = None
    encoding: Encoding | None = None
    qid: NDArray[np.int64] | None = None
    source: str = ""
    zero_based: bool | None = None

    def part(self, begin: int, end: int) -> Dataset:
        """Rows `begin` up to `end`."""
        y = None if self.y is None else self.y[begin:end]
        qid = None if self.qid is None else self.qid[begin:end]
        X = getattr(self.X, "X", self.X)
        return Dataset(X[begin:end], y, self.names, self.encoding, qid, self.source, self.zero_based)


def checked_dtype(source: str, dtype: DTypeLike) -> str:
    """The name of a type that numbers may have here; NumPy is not asked if it is a name already."""
    if dtype in ("float32", "float64"):
        return str(dtype)
    import numpy as np

    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise DataError.at(source, f"dtype={kind}", "use float64 or float32")
    return kind.name


def stack(parts: list[Any]) -> Any:
    """One array of dense or CSR parts, which are let go one by one, so that there is never a second copy of all."""
    import numpy as np

    if len(parts) == 1:
        return parts.pop()
    first, n = parts[0], sum(part.shape[0] for part in parts)
    if isinstance(first, np.ndarray):
        whole = np.empty((n, *first.shape[1:]), dtype=np.result_type(*{part.dtype for part in parts}))
        _pour([parts], [whole])
        return whole
    from scipy.sparse import csr_array

    nonzeros, width = sum(part.nnz for part in parts), first.shape[1]
    kind = np.int32 if max(nonzeros, width) <= np.iinfo(np.int32).max else np.int64
    values, indices = np.empty(nonzeros, dtype=first.dtype), np.empty(nonzeros, dtype=kind)
    starts = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)]).cumsum().astype(kind)
    arrays = [[part.data for part in parts], [part.indices for part in parts]]
    parts.clear()
    _pour(arrays, [values, indices])
    return csr_array((values, indices, starts), shape=(n, width))


def _pour(parts: list[list[Any]], wholes: list[Any]) -> None:
    """Copy lists of parts into their wholes, emptying the lists."""
    for column in parts:
        column.reverse()
    at = 0
    while parts[0]:
        for column, whole in zip(parts, wholes, strict=True):
            part = column.pop()
            whole[at : at + len(part)] = part
        at += len(part)

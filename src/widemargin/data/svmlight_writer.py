"""svmlight / LIBSVM text, written: numbers take as few characters as bring the same bits back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data.errors import DataError, quote
from widemargin.data.rows import as_csr
from widemargin.data.streams import written

#: Non-zeros formatted at a time.
WRITTEN_AT_ONCE = 1 << 16


def write_svmlight(
    path: str | os.PathLike[str],
    X: Any,
    y: NDArray[Any] | None = None,
    *,
    qid: NDArray[np.int64] | None = None,
    zero_based: bool = False,
) -> None:
    """Write rows as text, compressed if `path` ends in .gz, .bz2 or .zst; all of the file or none of it.

    Numbers take as few characters as bring the same bits back. Stored zeros of a CSR array stay, other zeros do not.
    Rows without labels get the label 0.
    """
    n = X.shape[0]
    name = os.fspath(path)
    labels = _numbers(name, np.zeros(n) if y is None else y, n)
    qids = None if qid is None else np.ascontiguousarray(qid, dtype=np.int64)
    if qids is not None and qids.shape != (n,):
        raise DataError.at(name, f"qid has shape {qids.shape} for {n} rows", "give one whole number per row")
    with written(Path(path)) as file:
        for begin, end in _spans(X):
            block = as_csr(X[begin:end])
            if not np.isfinite(block.data).all():
                bad = begin + int(np.searchsorted(block.indptr, np.argmin(np.isfinite(block.data)), "right")) - 1
                raise DataError.at(name, f"row {bad} of X holds nan or inf", "remove or replace it")
            file.write(
                _core.svmlight_text(
                    block.data,
                    block.indices,
                    block.indptr,
                    0,
                    end - begin,
                    labels[begin:end],
                    None if qids is None else qids[begin:end],
                    0 if zero_based else 1,
                )
            )


def _numbers(name: str, y: Any, n: int) -> NDArray[np.float64]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise DataError.at(name, f"y has shape {labels.shape} for {n} rows", "give one label per row")
    if labels.dtype.kind not in "biuf":
        what = f"labels such as {quote(str(labels.flat[0]))}" if labels.size else f"labels of type {labels.dtype}"
        raise DataError.at(name, what, "number the classes, as svmlight has it, or choose another format")
    numbers = np.ascontiguousarray(labels, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise DataError.at(name, f"label {int(np.argmin(np.isfinite(numbers)))} is not finite", "remove or replace it")
    return numbers


def _spans(X: Any) -> Iterator[tuple[int, int]]:
    """Rows cut so that each part has about as many numbers as are formatted at a time."""
    n, d = X.shape
    sizes = X.indptr[:-1] if hasattr(X, "indptr") and X.format == "csr" else np.arange(n) * d
    cuts = np.flatnonzero(np.diff(np.asarray(sizes, dtype=np.int64) // WRITTEN_AT_ONCE, prepend=-1)).tolist()
    cuts = sorted({*cuts, *range(0, n, WRITTEN_AT_ONCE), n})
    return pairwise(cuts)

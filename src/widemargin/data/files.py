"""The front door: any data file in, any data file out, the format told by the suffix or by the first bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from widemargin.data.dataset import Dataset, checked_dtype
from widemargin.data.encoding import Encoding
from widemargin.data.errors import DataError
from widemargin.data.machine import count_threads
from widemargin.data.streams import COMPRESSED, Source
from widemargin.data.svmlight import ZeroBased, read_svmlight, stream_svmlight

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike, NDArray

Progress = Callable[[int, int], None]
PathLike = str | os.PathLike[str]

FORMATS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".npy": "npy",
}
TABLES = ("csv", "parquet", "arrow")
#: Formats by what the first bytes say, for files whose suffix says nothing.
BY_MAGIC = {"npz or zip": "npz", "npy": "npy", "Parquet": "parquet", "Arrow": "arrow"}


def open(
    path: PathLike,
    *,
    label: str | int | None = None,
    encoding: Encoding | None = None,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = "float64",
    threads: int = 0,
    progress: Progress | None = None,
    as_rows: bool = False,
) -> Dataset:
    """Read a data file: svmlight text, CSV or TSV (plain, .gz, .bz2 or .zst), Parquet, Arrow or Feather, CSR in .npz,
    dense rows in .npy, or the directory of a store.

    Parameters
    ----------
    path : str or path
        The suffix tells the format; the first bytes do where it does not. ``-`` is svmlight text on standard input.
    label : str or int, optional
        For tables, the column of the labels: its name or, in a file without names, its number from 0. Left out, it is
        the one column called label, y, target or class.
    encoding : Encoding, optional
        For tables, what the columns meant in another file; the columns of X are then those of that file.
    n_features : int, optional
        Number of columns of X: svmlight text may have fewer, other formats must have as many.
    zero_based : bool or 'auto'
        For svmlight text, whether columns count from 0; 'auto' takes 0 if any index is 0, else 1.
    dtype : float64 or float32
        Type of X; a store keeps its own.
    threads : int
        At most so many parse; 0 for one per core. Tables are parsed by one, Parquet by all if this is 0.
    progress : callable, optional
        Called with the bytes read so far and the bytes of the file (0 if unknown), again and again.
    as_rows : bool
        X as :class:`widemargin.data.Rows`, which the estimators take as they take arrays.

    Returns
    -------
    A `Dataset`. Whatever is wrong with the file or the options raises a `DataError`.

    """
    count_threads(threads)
    form = _format(path, label, encoding, zero_based)
    if form == "svmlight":
        text: dict[str, Any] = {"n_features": n_features, "zero_based": zero_based, "dtype": dtype, "threads": threads}
        return _from_text(read_svmlight(path, **text, progress=progress, as_rows=as_rows), path)
    from widemargin.data.rows import Rows

    if form in TABLES:
        from widemargin.data.tables import read_table

        options: dict[str, Any] = {"dtype": dtype, "threads": threads, "progress": progress}
        data = read_table(path, form, label=label, encoding=encoding, **options)
    elif form == "store":
        from widemargin.data.store import open_store

        data = open_store(path, threads=count_threads(threads))
    else:
        from widemargin.data.arrays import read_npy, read_npz

        checked_dtype(os.fspath(path), dtype)
        data = (read_npy if form == "npy" else read_npz)(Path(path), dtype=dtype)
        if progress is not None:
            progress(size := os.path.getsize(path), size)
    data = _check_width(data, n_features)
    if as_rows and not isinstance(data.X, Rows):
        data = replace(data, X=Rows(data.X, count_threads(threads)))
    return data


def blocks(
    source: PathLike | IO[bytes],
    *,
    rows: int = 1 << 14,
    label: str | int | None = None,
    encoding: Encoding | None = None,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = "float64",
    threads: int = 0,
    progress: Progress | None = None,
) -> Iterator[Dataset]:
    """Read a data file in blocks of `rows` rows, holding one at a time; the other parameters are those of `open`.

    `source` may also be a binary stream, and ``-`` is standard input: svmlight text, or CSV if an `encoding` is given.
    Tables without `encoding` are read twice, first to learn it. In svmlight text, zero_based='auto' is settled by the
    first chunk (an index 0 that comes later is an error), and without `n_features` a block has as many columns as were
    seen so far.
    """
    if rows < 1:
        raise DataError.at(str(source), f"rows={rows}", "a block has at least one row")
    count_threads(threads)
    form = _format(source, label, encoding, zero_based)
    options: dict[str, Any] = {"dtype": dtype, "threads": threads, "progress": progress}
    if form == "svmlight":
        parts = stream_svmlight(source, rows=rows, n_features=n_features, zero_based=zero_based, **options)
        return (_from_text(part, source) for part in parts)
    if form in TABLES:
        from widemargin.data.tables import stream_table

        found = stream_table(source, form, rows=rows, label=label, encoding=encoding, **options)
    else:
        found = _stream_arrays(Path(os.fspath(source)), form, rows, dtype, progress)  # type: ignore[arg-type]
    return (_check_width(data, n_features) for data in found)


def _stream_arrays(path: Path, form: str, rows: int, dtype: DTypeLike, progress: Progress | None) -> Iterator[Dataset]:
    """Blocks of what is an array already; dense ones are left on the disk until they are asked for."""
    import numpy as np

    from widemargin.data.arrays import read_npy

    checked_dtype(os.fspath(path), dtype)
    data = read_npy(path, mapped=True) if form == "npy" else open(path, dtype=dtype)
    n = data.X.shape[0]
    for begin in range(0, n, rows):
        part = data.part(begin, begin + rows)
        part = replace(part, X=part.X.astype(dtype, copy=form == "npy"))
        if form == "npy" and not np.isfinite(part.X).all():
            what = f"rows {begin:,} to {begin + part.X.shape[0]:,} hold nan or inf"
            raise DataError.at(str(path), what, "replace them")
        yield part
        if progress is not None:
            size = os.path.getsize(path)
            progress(size * min(begin + rows, n) // n, size)


def save(
    path: PathLike,
    X: Any,
    y: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    qid: NDArray[np.int64] | None = None,
    zero_based: bool = False,
) -> None:
    """Write a data file in the format of its suffix; all of it or, if anything goes wrong, nothing.

    Parameters
    ----------
    path : str or path
        Ends in .svm, .svmlight, .libsvm, .csv, .tsv (all of them also with .gz, .bz2 or .zst behind), .parquet, .arrow,
        .feather, .npz or .npy. The labels of `X.npy` go to `X.y.npy` beside it.
    X : array or sparse array of shape (n_samples, n_features)
        float32 stays float32 where the format can hold it.
    y : array of shape (n_samples,), optional
        Numbers, or for all formats but svmlight text. Rows without labels get the label 0 in svmlight text.
    names : sequence of str, optional
        For tables, the names of X's columns; left out, they are x1, x2, …
    qid : array of shape (n_samples,), optional
        For svmlight text, the query ids.
    zero_based : bool
        For svmlight text, whether columns count from 0.

    """
    target, name = Path(path), os.fspath(path)
    form = format_to_write(target)
    for option, given, serves in (
        ("names=", names is not None, form in TABLES),
        ("qid=", qid is not None, form == "svmlight"),
        ("zero_based=True", zero_based, form == "svmlight"),
    ):
        if given and not serves:
            raise DataError.at(name, f"{option} means nothing to {form} files", "leave it out")
    X = _rows_to_write(name, X)
    labels = _labels_to_write(name, y, X.shape[0])
    if form == "svmlight":
        from widemargin.data.svmlight_writer import write_svmlight

        write_svmlight(path, X, labels, qid=qid, zero_based=zero_based)
    elif form in TABLES:
        if names is not None and (len(names) != X.shape[1] or len(set(names)) != len(names)):
            raise DataError.at(
                name, f"{len(names)} names for {X.shape[1]} columns", "give each column a name of its own"
            )
        from widemargin.data.table_files import write_table

        write_table(target, form, X, labels, None if names is None else tuple(names))
    else:
        from widemargin.data.arrays import write_npy, write_npz

        (write_npy if form == "npy" else write_npz)(target, X, labels)


def format_of(path: Path) -> str | None:
    """The format that a suffix stands for, that of the compression left aside."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return FORMATS.get(inner.suffix.lower())


def format_to_write(path: Path) -> str:
    """The format that a file of this name is written in; an error if there is none."""
    packed, form = path.suffix.lower() in COMPRESSED, format_of(path)
    if form is None or (packed and form not in ("svmlight", "csv")):
        known = ", ".join(FORMATS)
        raise DataError.at(
            str(path), f"no format ends in '{path.suffix}'", f"use one of {known}; text may add .gz, .bz2, .zst"
        )
    return form


def _from_text(rows: Any, source: Any) -> Dataset:
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else str(getattr(source, "name", "stream"))
    return Dataset(rows.X, rows.y, qid=rows.qid, source=name, zero_based=rows.zero_based)


def _format(source: PathLike | IO[bytes], label: object, encoding: object, zero_based: ZeroBased) -> str:
    """The format of a file, once the options are known to mean something to it."""
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else str(getattr(source, "name", "stream"))
    form = _sniff(source, encoding is not None)
    if encoding is not None and form not in TABLES:
        raise DataError.at(name, f"the columns asked for are those of a table, this is {form}", "give a table")
    for option, given, serves in (
        ("label=", label is not None, form in TABLES),
        (f"zero_based={zero_based!r}", zero_based != "auto", form == "svmlight"),
    ):
        if given and not serves:
            raise DataError.at(name, f"{option} means nothing to {form} files", "leave it out")
    return form


def is_svmlight(path: PathLike) -> bool:
    """Whether a file is read as svmlight text."""
    return _sniff(path, False) == "svmlight"


def _sniff(source: PathLike | IO[bytes], has_encoding: bool) -> str:
    stream = "csv" if has_encoding else "svmlight"
    if not isinstance(source, str | os.PathLike) or os.fspath(source) == "-":
        return stream
    path = Path(source)
    if path.is_dir():
        return "store"
    by_suffix = format_of(path)
    if by_suffix is not None:
        return by_suffix
    if path.exists() and not path.is_file():  # a pipe gives its bytes once
        return stream
    with Source(source) as file:
        if file.kind is not None and not file.compressed:
            return BY_MAGIC.get(file.kind, "svmlight")  # which then says what the file looks like
        lines = file.head(1 << 16).splitlines()
    line = next((line for line in lines if line.strip() and not line.lstrip().startswith(b"#")), b"")
    pairs = line.partition(b"#")[0].split()[1:]
    looks_like_pairs = bool(pairs) and all(re.match(rb"(\d+|qid):", token) for token in pairs)
    return "csv" if re.search(rb"[,;\t]", line.strip()) and not looks_like_pairs else "svmlight"


def _check_width(data: Dataset, n_features: int | None) -> Dataset:
    if n_features is not None and data.X.shape[1] != n_features:
        raise DataError.at(
            data.source, f"{data.X.shape[1]} columns, asked for were {n_features}", "give the right file"
        )
    return data


def _rows_to_write(name: str, matrix: Any) -> Any:
    import numpy as np
    from scipy.sparse import issparse

    sparse: bool = issparse(matrix)
    X: Any = matrix.tocsr() if sparse else np.asarray(matrix)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError.at(name, f"X has {X.ndim} dimensions and type {X.dtype}", "give rows of numbers")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if 0 in X.shape:
        raise DataError.at(name, f"X has shape {X.shape}", "give at least one row and one column")
    if not np.isfinite(X.data if sparse else X).all():
        raise DataError.at(name, "X holds nan or inf", "remove or replace them")
    return X


def _labels_to_write(name: str, y: ArrayLike | None, n: int) -> NDArray[Any] | None:
    if y is None:
        return None
    import numpy as np

    labels = np.asarray(y)
    if labels.dtype == object and all(isinstance(label, str) for label in labels.ravel().tolist()):
        labels = labels.astype(np.str_)
    if labels.shape != (n,):
        raise DataError.at(name, f"y has shape {labels.shape} for {n} rows", "give one label per row")
    if labels.dtype.kind not in "biufU" or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
        raise DataError.at(name, f"labels of type {labels.dtype} that are no names or finite numbers", "replace them")
    return labels

"""NumPy's files: dense rows in .npy, CSR in .npz as SciPy writes it. Nothing in them is ever run.

Labels lie in `y` inside the .npz, or beside the file: those of `train.npz` or `train.npy` in `train.y.npy`.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from widemargin.data.dataset import Dataset
from widemargin.data.errors import DataError, because
from widemargin.data.rows import as_csr
from widemargin.data.streams import aside


def labels_beside(path: Path) -> Path:
    """Where the labels of a file lie."""
    return path.with_name(f"{path.stem}.y.npy")


def read_npy(path: Path, *, dtype: DTypeLike = np.float64, mapped: bool = False) -> Dataset:
    """Dense rows; left on the disk if `mapped`."""
    X = _read_array(path, mapped=mapped)
    if X.ndim != 2:
        raise DataError.at(str(path), f"an array of {X.ndim} dimensions", "X needs rows and columns")
    if X.dtype.kind not in "biuf":
        raise DataError.at(str(path), f"an array of type {X.dtype}", "X needs numbers")
    if not mapped:
        X = _finite(path, X.astype(dtype, copy=False))
    return Dataset(X, _labels(path, X.shape[0], None), source=str(path))


def read_npz(path: Path, *, dtype: DTypeLike = np.float64) -> Dataset:
    """CSR rows from what `scipy.sparse.save_npz` or `write_npz` wrote."""
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as file:
                    arrays[entry.filename.removesuffix(".npy")] = _read_stream(path, file, entry.file_size)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError.at(str(path), f"not a sound npz file ({error})", "write it again") from None
    except OSError as error:
        raise DataError.at(str(path), *because(error)) from None
    missing = {"data", "indices", "indptr", "shape"} - set(arrays)
    if missing:
        raise DataError.at(str(path), f"no array {min(missing)!r} in the npz", "write CSR with scipy.sparse.save_npz")
    kind = arrays["format"].item() if "format" in arrays and arrays["format"].ndim == 0 else b"csr"
    if kind not in (b"csr", "csr"):
        raise DataError.at(str(path), f"a matrix in the format {kind!r}", "save it as CSR: save_npz(path, X.tocsr())")
    X = _checked_csr(path, arrays, dtype)
    return Dataset(X, _labels(path, X.shape[0], arrays.get("y")), source=str(path))


def _checked_csr(path: Path, arrays: dict[str, NDArray[Any]], dtype: DTypeLike) -> Any:
    from scipy.sparse import csr_array

    data, indices, starts, shape = (arrays[name] for name in ("data", "indices", "indptr", "shape"))
    whole = all(array.dtype.kind in "iu" for array in (indices, starts, shape))
    flat = all(array.ndim == 1 for array in (data, indices, starts, shape))
    sound = whole and flat and data.dtype.kind in "biuf" and len(shape) == 2 and len(data) == len(indices)
    sound = sound and 0 <= shape[0] == len(starts) - 1 and shape[1] >= 1 and starts[0] == 0
    sound = sound and starts[-1] == len(data) and bool((starts[1:] >= starts[:-1]).all())
    if not sound:
        raise DataError.at(str(path), "the arrays of the npz do not make a CSR matrix", "write it again")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < int(shape[1]):
        raise DataError.at(str(path), f"an index outside of the {shape[1]} columns", "write it again")
    values = _finite(path, data.astype(dtype, copy=False))
    return csr_array((values, indices, starts), shape=(int(shape[0]), int(shape[1])))


def _finite(path: Path, values: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(values).all():
        bad = values.size - int(np.count_nonzero(np.isfinite(values)))
        raise DataError.at(str(path), f"{bad:,} values are nan or infinite", "remove or replace them")
    return values


def _labels(path: Path, n: int, y: NDArray[Any] | None) -> NDArray[Any] | None:
    beside = labels_beside(path)
    if y is None:
        if not beside.exists():
            return None
        path, y = beside, _read_array(beside)
    if y.shape != (n,):
        raise DataError.at(str(path), f"labels of shape {y.shape} for {n} rows", "give one label per row")
    if y.dtype.kind not in "biufU" or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        raise DataError.at(str(path), f"labels of type {y.dtype} that are no names or finite numbers", "replace them")
    return y


def _read_array(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    try:
        with path.open("rb") as file:
            if not mapped:
                return _read_stream(path, file, os.fstat(file.fileno()).st_size)
            _check_size(path, file, os.fstat(file.fileno()).st_size)
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        raise DataError.at(str(path), *because(error)) from None


def _read_stream(path: Path, file: Any, size: int) -> NDArray[Any]:
    """An array, once its header and its size agree: no file makes us take memory that it does not fill."""
    shape, fortran, dtype = _check_size(path, file, size)
    flat = np.empty(int(np.prod(shape, dtype=object)), dtype=dtype)
    room = flat.view(np.uint8).data if flat.nbytes else memoryview(b"")
    filled = 0
    while filled < len(room):
        got = file.readinto(room[filled : filled + (1 << 24)])
        if not got:
            raise DataError.at(str(path), "the array ends too early", "write the file again")
        filled += got
    return flat.reshape(shape, order="F" if fortran else "C")


def _check_size(path: Path, file: Any, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = npy.read_magic(file)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"version {version}")
        shape, fortran, dtype = read(file)
    except ValueError as error:
        what = str(error).splitlines()[0][:80]
        raise DataError.at(str(path), f"not a sound npy array ({what})", "write it with numpy.save") from None
    if dtype.hasobject:
        raise DataError.at(str(path), "an array of Python objects", "save numbers or text")
    if dtype.itemsize * int(np.prod(shape, dtype=object)) != size - file.tell():
        raise DataError.at(str(path), f"its header speaks of shape {shape}, its size does not", "write the file again")
    return shape, fortran, dtype


def write_npy(path: Path, X: Any, y: NDArray[Any] | None) -> None:
    """Dense rows, the labels beside them."""
    from scipy.sparse import issparse

    if issparse(X):
        raise DataError.at(str(path), "X is sparse, .npy is dense", "save it as .npz, or save X.toarray()")
    beside = labels_beside(path)
    if y is None and beside.exists():
        raise DataError.at(
            str(path), f"{beside.name} beside it would be taken for its labels", "remove that file first"
        )
    with aside(path) as temporary:
        with temporary.open("wb") as file:
            np.save(file, np.asarray(X), allow_pickle=False)
        if y is not None:
            with aside(beside) as other, other.open("wb") as file:
                np.save(file, y, allow_pickle=False)


def write_npz(path: Path, X: Any, y: NDArray[Any] | None) -> None:
    """CSR rows as `scipy.sparse.load_npz` reads them, the labels as one more array."""
    rows = as_csr(X)
    arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
    arrays |= {"format": np.array(b"csr"), "_is_array": np.array(True)}
    if y is not None:
        arrays["y"] = y
    with aside(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)

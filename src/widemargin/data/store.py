"""The store: rows on disk that train as if they were in memory.

A directory of plain arrays, mapped as a whole or read part by part, and `store.json`, which describes them:

    x        the values: all of a dense matrix, the non-zeros of a sparse one
    rough    the same in 32 bits, of large stores of 64: what a solver walks over as long as that will do
    columns  of the non-zeros, sparse only; in 16 bits if that is enough
    lengths  the number of non-zeros of each row, sparse only
    norms    ‖x‖² of each row
    labels   a number per row, the place of its label in the description; where there are labels
    rows     the row of the input that each row was

Rows are shuffled once, when they are written. They lie in parts of some 16 MB of memory, each with
checksums that are verified when it is first read.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data.dataset import DataError, Dataset
from widemargin.data.encoding import Encoding
from widemargin.data.errors import because
from widemargin.data.machine import SHARE, free_memory
from widemargin.data.rows import CsrRows, Rows, csr_of

Floats = NDArray[np.float64]

FORMAT, VERSION = "widemargin store", 2
#: A store of so many bytes, or of its share of the free memory, is mapped as a whole: a pass over all rows beats
#: passes over parts.
SMALL = 1 << 28
#: What is read straight from the disk begins at a multiple of this, in the file and in memory.
PAGE = mmap.ALLOCATIONGRANULARITY
#: What to do about a store that cannot be used; one that --cache made comes back by itself.
ANEW = "remove it and convert the data again"
#: The arrays that have a checksum for each part.
CHECKED = ("x", "rough", "columns", "lengths")


class StoredRows(Rows):
    """Rows in the parts of a store: at hand all together or, if they are too many, part by part; see `divided`."""

    def __init__(self, files: _Files, about: dict[str, Any], threads: int) -> None:
        self.files, self.directory, self.about = files, files.directory, about
        self.n, self.d, self.nonzeros = about["rows"], about["columns"], about["nonzeros"]
        self.dtype = np.dtype(about["dtype"])
        self.threads_at_hand = self.threads = threads
        self.sparse = about["sparse"]
        self.verified: set[tuple[int, str]] = set()
        self.in_parts = is_large(self._bytes_at_hand)

    @cached_property
    def stored(self) -> tuple[slice, ...]:
        """The parts of rows as they lie in the store."""
        return tuple(slice(begin, end) for begin, end in pairwise(self.about["edges"]))

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The stretches of rows that are at hand together: the parts of the store or, if it is not large, all rows."""
        return self.stored if self.in_parts else (slice(0, self.n),)

    @property
    def rough(self) -> bool:
        """Whether walks over them may be rough: parts have their values in 32 bits too."""
        return len(self.parts) > 1 and "rough" in self.files.of

    @property
    def _short_columns(self) -> bool:
        """Whether columns are of 16 bits, and twice that in memory."""
        return bool(self.sparse and self.about["arrays"]["columns"] == "<u2")

    @property
    def _bytes(self) -> int:
        return sum(self.files.size(name) for name in self.files.of)

    @property
    def _bytes_at_hand(self) -> int:
        """Of all rows together, in memory."""
        return self._bytes - max(self.files.size("rough"), 0) + (2 * self.nonzeros if self._short_columns else 0)

    @cached_property
    def _whole(self) -> Rows:
        return Rows(self.X, self.threads)

    def walk(self, order: Iterable[int], *, rough: bool = False) -> Iterator[tuple[int, Rows]]:
        """Each of these parts in this order, with its rows, which are gone when the next one is asked for.

        Rows will do that are `rough`, if there are such. A thread reads the next part meanwhile, to where the one
        before lay: fresh memory costs more than the disk.
        """
        if len(self.parts) == 1:
            yield from ((k, self._whole) for k in order)
            return
        from concurrent.futures import Future, ThreadPoolExecutor  # slow to import

        queue, x = list(order), "rough" if rough and self.rough else "x"
        self.files.pass_by_the_cache(self._bytes > free_memory())
        with self.files.two_rooms() as rooms, ThreadPoolExecutor(1) as reader:

            def read(at: int) -> list[Future[dict[str, NDArray[Any]]]]:
                get = partial(self._read, rooms[at % 2])
                return [reader.submit(self._arrays, k, get, x) for k in queue[at : at + 1]]

            coming = read(0)
            for at, k in enumerate(queue):
                arrays = coming.pop().result()
                coming = read(at + 1)
                yield k, self._part(k, arrays)

    def _part(self, k: int, arrays: dict[str, NDArray[Any]]) -> Rows:
        """The rows of a part of these arrays, which are checked when they are first seen."""
        fresh = {(k, name) for name in arrays} - self.verified
        # The kernels trust what they read: a part that is not what was written is not read.
        if any(zlib.crc32(as_bytes(arrays[name])) != self.about["checksums"][k].get(name) for _, name in fresh):
            raise damaged(self.directory, f"part {k} is damaged, its checksum is wrong")
        if not self.sparse:
            self.verified |= fresh
            return Rows(next(iter(arrays.values())).reshape(-1, self.d), self.threads)
        (x, columns, lengths), first = arrays.values(), (k, "columns") in fresh
        kind = np.int32 if len(x) <= np.iinfo(np.int32).max else np.int64
        columns, starts = columns.astype(kind, copy=False), _starts(lengths)
        sound = not first or (int(lengths.min(initial=0)) >= 0 and starts[-1] == len(x))
        starts = starts.astype(kind, copy=False)
        if not sound or (first and not all(_core.check_order(columns, starts, self.d, self.threads))):
            raise damaged(self.directory, f"part {k} has impossible columns")
        self.verified |= fresh
        return CsrRows(x, columns, starts, self.d, self.threads)

    def _arrays(self, k: int, get: Callable[[str, int, int], NDArray[Any]], x: str = "x") -> dict[str, NDArray[Any]]:
        """The arrays of a part, with its values as they stand in this one."""
        part, reach = self.stored[k], self.about["reach"][k : k + 2]
        if not self.sparse:
            return {x: get(x, *reach)}
        return {x: get(x, *reach), "columns": get("columns", *reach), "lengths": get("lengths", part.start, part.stop)}

    def _read(self, room: _Room, name: str, begin: int, end: int) -> NDArray[Any]:
        """Elements of one of the arrays, in memory: pages that are mapped may be gone again before they are used."""
        dtype = np.dtype(self.about["arrays"][name])
        first, last = (place * dtype.itemsize for place in (begin, end))
        first, offset = first // PAGE * PAGE, first % PAGE
        into, at, needed = room.pages(name, -(-(last - first) // PAGE) * PAGE), 0, last - first
        while at < needed:
            got = self.files.read(name, into[at:], first + at)
            if not got:
                raise damaged(self.directory, f"{name} has become shorter")
            at += got
        return np.frombuffer(into, dtype, end - begin, offset)

    def _map(self, name: str, begin: int, end: int) -> NDArray[Any]:
        """Elements of one of the arrays, read only."""
        dtype = np.dtype(self.about["arrays"][name])
        if begin == end:
            return np.empty(0, dtype)
        offset = begin * dtype.itemsize // PAGE * PAGE
        size = end * dtype.itemsize - offset
        window = mmap.mmap(self.files.of[name], size, access=mmap.ACCESS_READ, offset=offset)
        return np.frombuffer(window, dtype, end - begin, begin * dtype.itemsize - offset)

    def with_threads(self, threads: int) -> Rows:
        """The same rows for another number of threads."""
        other = copy(self)
        other.threads_at_hand = other.threads = threads
        if "_whole" in self.__dict__:
            other._whole = self._whole.with_threads(threads)
        return other

    def divided(self, in_parts: bool) -> StoredRows:
        """The same rows, at hand part by part or all together, whatever memory is free."""
        other = copy(self)
        other.in_parts = in_parts
        other.__dict__.pop("parts", None)
        return other

    def scores(self, w: Floats) -> Floats:
        """Xw."""
        scores = np.empty(self.n)
        for here, part in self._all():
            scores[here] = part.scores(w)
        return scores

    def combine(self, v: Floats) -> Floats:
        """Xᵀv."""
        total = np.zeros(self.d)
        for k, part in self.walk(k for k, here in enumerate(self.parts) if v[here].any()):
            total += part.combine(v[self.parts[k]])
        return total

    def combine_by_sign(self, v: Floats) -> Floats:
        """Xᵀmax(v, 0) and Xᵀmax(−v, 0)."""
        total = np.zeros((2, self.d))
        for here, part in self._all():
            total += part.combine_by_sign(v[here])
        return total

    def scores_and_combine(self, w: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Xw and Xᵀv."""
        scores, total = np.empty(self.n), np.zeros(self.d)
        for here, part in self._all():
            scores[here], more = part.scores_and_combine(w, v[here])
            total += more
        return scores, total

    def combine_squares(self, v: Floats) -> Floats:
        """Σ vᵢxᵢⱼ² of every column j."""
        total = np.zeros(self.d)
        for here, part in self._all():
            total += part.combine_squares(v[here])
        return total

    @cached_property
    def square_norms(self) -> Floats:
        """‖xᵢ‖² of every row."""
        norms = np.array(self._map("norms", 0, self.n))
        if zlib.crc32(as_bytes(norms)) != self.about["norms_checksum"]:
            raise damaged(self.directory, "the norms are damaged, their checksum is wrong")
        return norms

    def column_sums(self, weight: Floats, *, power: int = 1, shift: Floats | None = None) -> Floats:
        """Σ weightᵢ|xᵢⱼ − shiftⱼ|^power of every column j."""
        total = np.zeros(self.d)
        for k, part in enumerate(self.stored):
            total += Rows(self._matrix(k)).column_sums(weight[part], power=power, shift=shift)
        return total

    def gram(self, weight: Floats, shift: Floats | None, border: bool) -> Floats:
        """Σ weightᵢ zᵢzᵢᵀ with zᵢ = xᵢ − shift and, with a border, a last component 1."""
        total = np.zeros((self.d + border, self.d + border))
        for here, part in self._all():
            if weight[here].any():
                total += part.gram(weight[here], shift, border)
        return total

    def _all(self) -> Iterator[tuple[slice, Rows]]:
        for k, part in self.walk(range(len(self.parts))):
            yield self.parts[k], part

    def _matrix(self, k: int) -> Any:
        """A part as an array or a CSR matrix."""
        return self._part(k, self._arrays(k, self._map)).X

    @cached_property
    def X(self) -> Any:  # noqa: N802  # as in Rows, but mapped when asked for
        """All rows at once, mapped but for columns of 16 bits: for what wants any row at any time."""
        for k in range(len(self.stored)):
            self._part(k, self._arrays(k, self._map))  # which verifies it
        x = self._map("x", 0, self.about["reach"][-1])
        if not self.sparse:
            return x.reshape(self.n, self.d)
        columns = self.files.wide_columns if self._short_columns else self._map("columns", 0, self.nonzeros)
        starts = _starts(self._map("lengths", 0, self.n))
        if self.nonzeros <= np.iinfo(columns.dtype).max:  # of two types, scipy would copy all columns to take some rows
            starts = starts.astype(columns.dtype, copy=False)
        return csr_of(x, columns, starts, self.d)

    @cached_property
    def core(self) -> _core.Rows:  # type: ignore[override]
        """All rows at once, for kernels that draw them at random."""
        return self._whole.core


class _Files:
    """The arrays of a store, open: whoever replaces it on the disk does not change what is read here."""

    def __init__(self, directory: Path, names: Iterable[str]) -> None:
        self.directory, self.of, self.refused = directory, dict[str, int](), False
        self.rooms: list[_Room] = []
        for name in names:
            with suppress(FileNotFoundError):
                self.of[name] = os.open(directory / name, os.O_RDONLY)

    def pass_by_the_cache(self, wanted: bool) -> None:
        """Whether what is read goes straight to where it is wanted, where the file system can do that.

        The system's cache is of no use for what is larger than it, and costs more than the disk.
        """
        flag = getattr(os, "O_DIRECT", 0)
        for one in self.of.values() if flag else ():
            import fcntl

            flags = fcntl.fcntl(one, fcntl.F_GETFL)
            with suppress(OSError):
                fcntl.fcntl(one, fcntl.F_SETFL, flags | flag if wanted and not self.refused else flags & ~flag)

    @contextmanager
    def two_rooms(self) -> Iterator[list[_Room]]:
        """Memory for two parts, which the next walk may have when this one is over."""
        mine = [self.rooms.pop() if self.rooms else _Room() for _ in range(2)]
        try:
            yield mine
        finally:
            self.rooms += mine

    def read(self, name: str, into: memoryview, at: int) -> int:
        """Some bytes from there on; how many."""
        try:
            return os.preadv(self.of[name], [into], at)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self.refused = True  # it let itself be told to pass by the cache, and cannot do it
            self.pass_by_the_cache(False)
            return os.preadv(self.of[name], [into], at)

    @cached_property
    def wide_columns(self) -> NDArray[np.int32]:
        """Columns of 16 bits, as the kernels take them; once for all who share these files."""
        if not self.size("columns"):
            return np.empty(0, np.int32)
        with mmap.mmap(self.of["columns"], 0, access=mmap.ACCESS_READ) as window:
            return np.array(memoryview(window).cast("H"), np.int32)

    def size(self, name: str) -> int:
        """Bytes, −1 if it is not there."""
        return os.fstat(self.of[name]).st_size if name in self.of else -1

    def __del__(self) -> None:
        for one in self.of.values():
            os.close(one)


class _Room:
    """Memory for the arrays of a part, one part after the other."""

    def __init__(self) -> None:
        self.of: dict[str, mmap.mmap] = {}

    def pages(self, name: str, size: int) -> memoryview:
        """So many bytes, at the beginning of a page."""
        if name not in self.of or len(self.of[name]) < size:
            self.of[name] = mmap.mmap(-1, max(size + size // 8, PAGE))  # parts are of much the same size
        return memoryview(self.of[name])[:size]


def damaged(place: str | os.PathLike[str], what: str) -> DataError:
    """What is said of a store that is not as it was written."""
    return DataError(f"{place}: {what}; {ANEW}")


def _starts(lengths: NDArray[Any]) -> NDArray[np.int64]:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def as_bytes(array: NDArray[Any]) -> memoryview:
    """The memory of an array."""
    return np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")


def kind_of_columns(d: int) -> str:
    """The type in which the numbers of d columns are written: what is read from a disk had better be small."""
    return "<u2" if d <= 1 << 16 else "<i4"


def is_large(size: int) -> bool:
    """Whether so many bytes are too many to be at hand at the same time."""
    return size > max(SMALL, SHARE * free_memory())


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a directory is a store."""
    return (Path(path) / "store.json").is_file()


def origin_of(path: str | os.PathLike[str]) -> Any:
    """What a store says it was made from, None if it does not; one of another version had better be made anew."""
    about = _said_of_itself(Path(path))
    if isinstance(about["version"], int) and about["version"] > VERSION:
        _description(Path(path))  # which says so
    origin = about.get("origin")
    if origin is None or about["version"] == VERSION:
        return origin
    return {"name": origin["name"]} if "name" in origin else {}


def order_of(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """The row of the input that each row of a store was."""
    rows: StoredRows = open_store(path).X
    order = rows._map("rows", 0, rows.n)
    sound = zlib.crc32(as_bytes(order)) == rows.about["rows_checksum"]
    inside = 0 <= int(order.min(initial=0)) <= int(order.max(initial=0)) < max(rows.n, 1)
    if not sound or not inside or (np.bincount(order, minlength=rows.n) != 1).any():
        raise damaged(path, "the order of the rows is damaged")
    return order


def encoding_in(path: str | os.PathLike[str]) -> Encoding | None:
    """How the columns of a table became those of a store."""
    encoding, place = _description(Path(path))["encoding"], str(path)
    return None if encoding is None else Encoding.from_json(encoding, source=place)


def open_store(path: str | os.PathLike[str], *, threads: int = 1) -> Dataset:
    """A store as a dataset: its X is a :class:`StoredRows`, which estimators take as they take arrays."""
    directory = Path(path)
    about = _description(directory)
    files = _Files(directory, about["arrays"])
    for name, dtype in about["arrays"].items():
        if files.size(name) != _lengths(about)[name] * np.dtype(dtype).itemsize:
            raise damaged(directory, f"{name} is missing or of the wrong size")
    rows, labels = StoredRows(files, about, threads), None
    if about["labels"] is not None:
        codes = rows._map("labels", 0, rows.n)
        sound = zlib.crc32(as_bytes(codes)) == about["labels_checksum"]
        if not sound or not 0 <= int(codes.min(initial=0)) <= int(codes.max(initial=0)) < len(about["labels"]):
            raise damaged(directory, "the labels are damaged, their checksum is wrong")
        labels = np.array(about["labels"])[codes]
    names = None if about["names"] is None else tuple(about["names"])
    base = about.get("zero_based")
    return Dataset(rows, labels, names, encoding_in(path), source=str(directory), zero_based=base)


def _lengths(about: dict[str, Any]) -> dict[str, int]:
    n, values = about["rows"], about["nonzeros"] if about["sparse"] else about["rows"] * about["columns"]
    return {
        "x": values,
        "rough": values,
        "columns": about["nonzeros"],
        "lengths": n,
        "norms": n,
        "labels": n,
        "rows": n,
    }


def _complaint(about: dict[str, Any]) -> str:
    """The first thing that a description has wrong, if there is one: it may come from anybody, and sizes follow it."""
    n, d, nonzeros, sparse = about["rows"], about["columns"], about["nonzeros"], about["sparse"]
    edges, reach, labels, names = about["edges"], about["reach"], about["labels"], about["names"]
    if not all(type(number) is int and 0 <= number < 1 << 62 for number in (n, d, nonzeros, *edges, *reach)):
        return "sizes"
    if type(sparse) is not bool or {*map(type, about["checksums"])} != {dict} or about["dtype"] not in ("<f4", "<f8"):
        return "type"
    arrays = {"x": about["dtype"], "norms": "<f8", "rows": "<i8"}
    arrays |= {"columns": kind_of_columns(d), "lengths": "<i8"} if sparse else {}
    arrays |= {} if labels is None else {"labels": "<i4"}
    if about["arrays"] not in (arrays, arrays | {"rough": "<f4"}):
        return "arrays"
    ends = (edges, n), (reach, nonzeros if sparse else n * d)
    if not all(marks[0] == 0 and marks == sorted(marks) and marks[-1] == end for marks, end in ends):
        return "edges"
    if not len(edges) == len(reach) == len(about["checksums"]) + 1 or not (sparse or reach == [d * k for k in edges]):
        return "parts"
    if labels is not None and (
        type(labels) is not list or not labels or {type(one) for one in labels} not in ({str}, {int}, {float}, {bool})
    ):
        return "labels"
    if about.get("zero_based") not in (None, True, False):
        return "zero_based"
    if names is not None and (type(names) is not list or len(names) != d or {type(name) for name in names} != {str}):
        return "names"
    return ""


def signature(about: dict[str, Any]) -> int:
    """A checksum of all that a description says."""
    said = {name: value for name, value in about.items() if name != "signature"}
    return zlib.crc32(json.dumps(said, sort_keys=True).encode())


def _description(directory: Path) -> dict[str, Any]:
    """What a store says of itself, if that may be relied on."""
    about = _said_of_itself(directory)
    if (version := about["version"]) != VERSION:
        newer = isinstance(version, int) and version > VERSION
        what_to_do = "update widemargin" if newer else ANEW
        raise DataError(f"{directory}: a store of version {version}, this program knows {VERSION}; {what_to_do}")
    return about


def _said_of_itself(directory: Path) -> dict[str, Any]:
    """The description of a store of any version."""
    try:
        about: dict[str, Any] = json.loads((directory / "store.json").read_text())
        if about["format"] != FORMAT:
            raise ValueError("format")
        origin = about.get("origin")
        if origin is not None and (type(origin) is not dict or type(origin.get("name", "")) is not str):
            raise ValueError("origin")
        if about["version"] == VERSION:
            _ = about["encoding"], about["labels_checksum"], about["norms_checksum"], about["rows_checksum"]
            if complaint := _complaint(about) or ("" if about["signature"] == signature(about) else "checksum"):
                raise ValueError(complaint)
    except FileNotFoundError:
        raise DataError(f"{directory}: a directory without a store.json; name a file, or a store") from None
    except OSError as error:
        raise DataError.at(f"{directory}/store.json", *because(error)) from error
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise damaged(f"{directory}/store.json", f"not the description of a store ({error})") from error
    return about

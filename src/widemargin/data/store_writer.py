"""Writing a store: rows of any number, shuffled, in the memory of a few parts.

The order is that of a hash of the rows' numbers, and depends on nothing else. What does not fit into memory is dealt
out to files by the first bits of the hash, as cards to hands; each hand is then put in order and played. The store is
written aside and renamed into place: it is whole or it is not there.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from widemargin.data.dataset import DataError, Dataset
from widemargin.data.rows import Rows
from widemargin.data.store import CHECKED, FORMAT, SMALL, VERSION, as_bytes, kind_of_columns, origin_of, signature

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

#: Bytes of a part in memory, where two are held at a time.
PART = 1 << 24
#: Bytes that are shuffled in memory.
AT_ONCE = 1 << 26
#: Files that more are dealt out to, a power of 2.
HANDS = 64
#: The files of a store beside its description, and the one that says that it is being written.
ARRAYS, CLAIM = ("x", "rough", "columns", "lengths", "norms", "labels", "rows"), "claim"
#: More labels than this are numbers to be predicted, not classes.
MOST_LABELS = 100_000


def write_store(
    path: str | os.PathLike[str],
    blocks: Iterable[Dataset],
    *,
    origin: dict[str, Any] | None = None,
) -> None:
    """Writes blocks of rows as a store; `origin`, which :func:`origin_of` gives back, says what they were made from.

    Memory holds a part of them at a time, however many there are.
    """
    target = Path(path)
    if target.exists() and not _may_be_replaced(target):
        raise DataError(f"{target}: exists and is no store; choose another name")
    aside, old = (target.with_name(f".{target.name}.{os.urandom(6).hex()}.{what}") for what in ("storing", "old"))
    try:
        _remove_leftovers(target)
        aside.mkdir()
        with _claimed(aside):
            _Writer(aside, origin).write(blocks)
            if target.exists():  # who has it open keeps it
                target.rename(old)
            aside.rename(target)
        (target / CLAIM).unlink(missing_ok=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DataError(f"{target}: no space left for the store; free some, or choose another place") from error
        raise DataError(f"{target}: {error.strerror or error}; nothing was written") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _may_be_replaced(target: Path) -> bool:
    """Whether it is a store, and nothing but one."""
    try:
        origin_of(target)
    except DataError:
        return False
    return {file.name for file in target.iterdir()} <= {"store.json", CLAIM, *ARRAYS}


@contextmanager
def _claimed(directory: Path) -> Iterator[None]:
    """Marks a directory as being written, for as long as this process lives."""
    with (directory / CLAIM).open("w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_leftovers(target: Path) -> None:
    """What a process that was killed while it wrote the same store has left: nobody holds its claim any more."""
    name = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{12}\.storing")
    for left in [one for one in target.parent.iterdir() if name.fullmatch(one.name)]:
        if fcntl is None or not (left / CLAIM).is_file():
            continue
        with (left / CLAIM).open("r+") as file, suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)


class _Writer:
    """Fills an empty directory with a store."""

    def __init__(self, directory: Path, origin: dict[str, Any] | None) -> None:
        self.directory, self.origin = directory, origin
        self.n = self.d = 0
        self.sparse, self.dtype = True, np.dtype(np.float64)
        self.labels: dict[Any, int] | None = None
        self.about: dict[str, Any] = {}
        self.pending: list[_Deal] = []
        self.dealt = False
        self.edges, self.reach = [0], [0]
        self.sums: list[dict[str, int]] = [{}]
        self.rough = True
        self.size = self.written = self.values = 0
        self.whole_sums = dict.fromkeys(("labels", "norms", "rows"), 0)
        self.files: dict[str, IO[bytes]] = {}

    def write(self, blocks: Iterable[Dataset]) -> None:
        """All of them; the description last."""
        with ExitStack() as stack:
            for name in ARRAYS:
                self.files[name] = stack.enter_context((self.directory / name).open("wb"))
            for block in blocks:
                self._take(block)
                if sum(deal.size for deal in self.pending) > AT_ONCE:
                    self._deal()
            if not self.n:
                raise DataError("no rows: there is nothing to store")
            if self.dealt:
                if self.pending:
                    self._deal()
                for hand in range(HANDS):
                    self._append(self._collect(hand))
            else:
                self._append(_Deal.joined(self.pending, self.d))
            self._end_part(last=True)
            for file in self.files.values():
                file.flush()
                os.fsync(file.fileno())
        arrays = {"x": self.dtype.str, "norms": "<f8", "labels": "<i4", "rows": "<i8"}
        arrays |= {"rough": "<f4", "columns": kind_of_columns(self.d), "lengths": "<i8"}
        absent = [] if self.sparse else ["columns", "lengths"]
        absent += [] if self.labels is not None else ["labels"]
        absent += [] if self.rough and self.values * self.dtype.itemsize > SMALL else ["rough"]
        for name in absent:
            arrays.pop(name)
            (self.directory / name).unlink()
            for sums in self.sums:
                sums.pop(name, None)
        self.about |= {
            "format": FORMAT,
            "version": VERSION,
            "origin": self.origin,
            "rows": self.n,
            "columns": self.d,
            "nonzeros": self.reach[-1],
            "sparse": self.sparse,
            "dtype": self.dtype.str,
            "arrays": arrays,
            "labels": None if self.labels is None else list(self.labels),
            "edges": self.edges,
            "reach": self.reach,
            "checksums": self.sums,
            **{f"{name}_checksum": value for name, value in self.whole_sums.items()},
        }
        self.about["signature"] = signature(self.about)
        with (self.directory / "store.json").open("wb") as file:
            file.write(json.dumps(self.about).encode())
            file.flush()
            os.fsync(file.fileno())

    def _take(self, block: Dataset) -> None:
        X, count = block.X, block.X.shape[0]
        if not self.n:
            self.sparse, self.dtype = sp.issparse(X), np.dtype(X.dtype)
            self.labels = None if block.y is None else {}
            names = None if block.names is None else list(block.names)
            encoding = None if block.encoding is None else block.encoding.to_json()
            self.about = {"names": names, "encoding": encoding, "zero_based": block.zero_based}
        if self.sparse:
            X = sp.csr_array(X, copy=not getattr(X, "has_canonical_format", True))
            X.sum_duplicates()
            if X.shape[1] > np.iinfo(np.int32).max:
                raise DataError(
                    f"{block.source}: a store has at most 2³¹ columns, not {X.shape[1]:,}; number them anew"
                )
        elif not isinstance(X, np.ndarray):
            X = X.toarray()
        X = X.astype(self.dtype, copy=False)
        if not np.isfinite(X.data if self.sparse else X).all():
            raise DataError(f"{block.source}: values must be finite; remove the rows with NaN or infinity")
        codes = np.zeros(count, np.int32)
        if self.labels is not None and block.y is not None:
            values, places = np.unique(block.y, return_inverse=True)
            if len({type(one) for one in [*list(self.labels)[:1], *values.tolist()[:1]]}) > 1:
                raise DataError(f"{block.source}: labels of different types; make all of them numbers or all texts")
            known = np.array([self.labels.setdefault(one, len(self.labels)) for one in values.tolist()], np.int32)
            codes = known[places]
            if len(self.labels) > MOST_LABELS:
                raise DataError(
                    f"{block.source}: more than {MOST_LABELS:,} different labels; classes are wanted, not numbers"
                )
        self.pending.append(_Deal(X, codes, np.arange(self.n, self.n + count)))
        self.n, self.d = self.n + count, max(self.d, X.shape[1])

    def _deal(self) -> None:
        """Moves what is pending to the files of its rows' neighbours to be: the hash begins with the same bits."""
        everything = _Deal.joined(self.pending, self.d).sorted()
        hands = (keys(everything.numbers) >> np.uint64(64 - HANDS.bit_length() + 1)).astype(np.intp)
        edges = np.searchsorted(hands, np.arange(HANDS + 1))
        for hand, (begin, end) in enumerate(pairwise(edges.tolist())):
            for name, array in everything[begin:end].arrays().items():
                with (self.directory / f"{name}.{hand}").open("ab") as file:
                    file.write(as_bytes(array))
        self.pending, self.dealt = [], True

    def _collect(self, hand: int) -> _Deal:
        """What was dealt to one of the files."""

        def read(name: str, dtype: Any) -> NDArray[Any]:
            file = self.directory / f"{name}.{hand}"
            array = np.fromfile(file, dtype)
            file.unlink()
            return array

        x, codes, numbers = read("x", self.dtype), read("labels", np.int32), read("rows", np.int64)
        if not self.sparse:
            return _Deal(x.reshape(-1, self.d), codes, numbers)
        columns, starts = read("columns", np.int32), np.append(0, np.cumsum(read("lengths", np.int64)))
        return _Deal(sp.csr_array((x, columns, starts), shape=(len(codes), self.d)), codes, numbers)

    def _append(self, deal: _Deal) -> None:
        """Writes rows in the order of their hash, part by part."""
        deal = deal.sorted()
        sizes, begin = deal.sizes(), 0
        ends = np.cumsum(sizes)
        while begin < len(sizes):
            room = PART - self.size + (int(ends[begin - 1]) if begin else 0)
            end = max(int(np.searchsorted(ends, room, side="right")), begin + (self.size == 0))
            if end > begin:
                self._write(deal[begin:end])
                self.size += int(sizes[begin:end].sum())
            if end < len(sizes):
                self._end_part(last=False)
            begin = end

    def _write(self, deal: _Deal) -> None:
        arrays = deal.arrays() | {"norms": Rows(deal.X).square_norms}
        self.rough = self.rough and self.dtype == np.float64 and _fits(arrays["x"])
        if self.rough:
            arrays["rough"] = arrays["x"].astype(np.float32)
        if self.sparse:
            arrays["columns"] = arrays["columns"].astype(kind_of_columns(self.d))
        self.written, self.values = self.written + len(deal.codes), self.values + arrays["x"].size
        for name, array in arrays.items():
            self.files[name].write(as_bytes(array))
            if name in CHECKED:
                self.sums[-1][name] = zlib.crc32(as_bytes(array), self.sums[-1].get(name, 0))
        for name, value in self.whole_sums.items():
            self.whole_sums[name] = zlib.crc32(as_bytes(arrays[name]), value)

    def _end_part(self, *, last: bool) -> None:
        self.edges.append(self.written)
        self.reach.append(self.values)
        if not last:
            self.sums.append({})
            self.size = 0


def _fits(x: NDArray[Any]) -> bool:
    """Whether these numbers lose nothing but digits in 32 bits."""
    size, kind = np.abs(x), np.finfo(np.float32)
    return bool(((size == 0) | ((size >= kind.tiny) & (size <= kind.max))).all())


@dataclass(frozen=True)
class _Deal:
    """Rows, the places of their labels and their numbers in the input."""

    X: Any
    codes: NDArray[np.int32]
    numbers: NDArray[np.int64]

    @staticmethod
    def joined(deals: list[_Deal], d: int) -> _Deal:
        matrices = [deal.X for deal in deals]
        for matrix in matrices:
            if not isinstance(matrix, np.ndarray):
                matrix.resize(matrix.shape[0], d)
        X = sp.vstack(matrices, format="csr") if sp.issparse(matrices[0]) else np.concatenate(matrices)
        return _Deal(
            X, *(np.concatenate(arrays) for arrays in zip(*((one.codes, one.numbers) for one in deals), strict=True))
        )

    @property
    def size(self) -> int:
        return int(self.sizes().sum())

    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each row."""
        if isinstance(self.X, np.ndarray):
            return np.full(len(self.X), max(1, self.X.shape[1] * self.X.itemsize))
        return np.asarray(np.diff(self.X.indptr) * (self.X.dtype.itemsize + 4) + 8)

    def sorted(self) -> _Deal:
        return self[np.argsort(keys(self.numbers))]

    def __getitem__(self, rows: Any) -> _Deal:
        return _Deal(self.X[rows], self.codes[rows], self.numbers[rows])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As they are written."""
        own: dict[str, NDArray[Any]] = {"labels": self.codes, "rows": self.numbers}
        if isinstance(self.X, np.ndarray):
            return {"x": self.X, **own}
        return {
            "x": self.X.data,
            "columns": self.X.indices.astype(np.int32),
            "lengths": np.diff(self.X.indptr).astype(np.int64),
            **own,
        }


def keys(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of the numbers of rows (SplitMix64: Steele, Lea and Flood 2014); its order is the order of a store."""
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))

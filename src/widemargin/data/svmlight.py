"""svmlight / LIBSVM text: one row per line, `label [qid:n] index:value … # comment`.

Read in chunks of whole lines by the compiled parser, in parallel over pieces of a chunk. Numbers are those that
Python's float() reads. The parser needs no NumPy, which may be imported meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from widemargin import _core
from widemargin.data.dataset import checked_dtype
from widemargin.data.errors import DataError, quote
from widemargin.data.machine import count_threads
from widemargin.data.streams import Source, magic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

Progress = Callable[[int, int], None]
ZeroBased = bool | Literal["auto"]

#: Bytes of text read at a time; between chunks progress is shown and Ctrl-C answered.
CHUNK = 1 << 23
#: What is left of a file may hold so much more than what was read of it suggests.
SLACK = 1.05
#: Bytes of text that one thread parses at a time.
PIECE = 1 << 18
#: A line longer than this is taken for a file without line ends, so that no file is held in memory whole.
LONGEST_LINE = 1 << 26


class Parsed(NamedTuple):
    """What lines of text hold: a CSR array, the labels, and the query ids if there are any."""

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[np.int64] | None
    zero_based: bool


def read_svmlight(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = "float64",
    threads: int = 0,
    progress: Progress | None = None,
    as_rows: bool = False,
) -> Parsed:
    """All rows of a file.

    Parameters
    ----------
    path : str, path or binary stream
        Plain text or compressed by gzip, bzip2 or zstd; ``-`` is standard input.
    n_features : int, optional
        Number of columns; the largest index decides if it is not given.
    zero_based : bool or 'auto'
        Whether the first column is 0 or 1 in the file; 'auto' takes 0 if any index is 0.
    dtype : float64 or float32
        Type of the values.
    threads : int
        At most so many; 0 for as many as there are cores.
    progress : callable, optional
        Called with the bytes read so far and those of the file (0 if unknown) after each chunk.
    as_rows : bool
        X as :class:`Rows` instead of a CSR array: all that training needs, without the import of scipy.sparse.

    """
    with Source(path) as source:
        reader = _Reader(source, n_features, zero_based, dtype, threads, progress)
        for _ in reader.feed(whole=True):
            pass
        return reader.take(as_rows=as_rows)


def stream_svmlight(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    rows: int,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = "float64",
    threads: int = 0,
    progress: Progress | None = None,
) -> Iterator[Parsed]:
    """The rows of a file or a stream in blocks of `rows`, one block in memory at a time.

    What cannot be known before the end is settled by the first chunk: indices count from 0 with zero_based='auto' if it
    has an index 0, and a later 0 in a file taken to count from 1 is an error. Without `n_features` a block has as many
    columns as were seen up to its end.
    """
    if rows < 1:
        raise DataError.at(str(path), f"rows={rows}", "a block has at least one row")
    with Source(path) as source:
        reader = _Reader(source, n_features, zero_based, dtype, threads, progress)
        waiting: list[Parsed] = []
        for _ in reader.feed():
            waiting.append(reader.take(partly=True))
            if sum(len(part.y) for part in waiting) < rows:
                continue
            whole = _join(waiting)
            full = len(whole.y) // rows * rows
            for begin in range(0, full, rows):
                yield _part(whole, begin, begin + rows)
            waiting = [_part(whole, full, len(whole.y))]
        reader.check_not_empty()
        if waiting and len((rest := _join(waiting)).y):
            yield rest


def _part(rows: Parsed, begin: int, end: int) -> Parsed:
    if begin == 0 and end == len(rows.y):
        return rows
    qid = None if rows.qid is None else rows.qid[begin:end]
    return Parsed(rows.X[begin:end], rows.y[begin:end], qid, rows.zero_based)


def _join(parts: list[Parsed]) -> Parsed:
    parts = [part for part in parts if len(part.y)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    import numpy as np
    from scipy.sparse import vstack

    width = max(part.X.shape[1] for part in parts)
    for part in parts:
        part.X.resize(part.X.shape[0], width)
    qids = [part.qid for part in parts if part.qid is not None]
    return Parsed(
        vstack([part.X for part in parts], format="csr"),
        np.concatenate([part.y for part in parts]),
        np.concatenate(qids) if qids else None,
        parts[-1].zero_based,
    )


class _Reader:
    """Cuts a stream into chunks of whole lines, feeds them to the parser and says what is wrong with them."""

    def __init__(
        self,
        source: Source,
        n_features: int | None,
        zero_based: ZeroBased,
        dtype: DTypeLike,
        threads: int,
        progress: Progress | None,
    ) -> None:
        if n_features is not None and not 1 <= n_features < 1 << 62:
            raise DataError.at(source.name, f"n_features={n_features}", "give the number of columns, at least 1")
        if zero_based not in (True, False, "auto"):
            raise DataError.at(source.name, f"zero_based={zero_based!r}", "give True, False or 'auto'")
        kind = checked_dtype(source.name, dtype)
        if source.kind is not None and not source.compressed:
            raise _looks_like(source.name, source.kind)
        self.source, self.n_features, self.zero_based, self.progress = source, n_features, zero_based, progress
        self.threads = count_threads(threads)
        base = "auto" if zero_based == "auto" else "zero" if zero_based else "one"
        self.parser = _core.svmlight_parser(kind == "float32", base, -1 if n_features is None else n_features)
        self.rows = 0
        self.read = False

    def feed(self, *, whole: bool = False) -> Iterator[None]:
        """Parse chunk after chunk, pausing after each; for a source that is held `whole`, room is made at once."""
        padding = _core.svmlight_padding + 1  # a last line may lack its end
        buffer, filled, more = bytearray(CHUNK + padding), 0, True
        while more:
            room = len(buffer) - padding
            try:
                with memoryview(buffer) as view:
                    got = self.source.readinto(view[filled:room])
            except DataError as error:  # of the compressed data: say how far they were good
                raise DataError.at(error.source, error.what, error.advice, line=self.parser.lines + 1) from None
            if not self.read and got:
                self.read = True
                self._check_start(buffer)
            filled += got
            more = filled == room
            if not more and filled and buffer[filled - 1] != 10:
                buffer[filled] = 10
                filled += 1
            cut = buffer.rfind(b"\n", 0, filled) + 1
            if cut:
                done, size = self.source.done, self.source.size
                self._parse(buffer, cut, SLACK * size / done if whole and more and 0 < done < size else 1.0)
            elif filled >= LONGEST_LINE:
                raise DataError.at(
                    self.source.name,
                    f"a line of more than {LONGEST_LINE >> 20} MB",
                    "give one row per line; are the line ends missing?",
                    line=self.parser.lines + 1,
                )
            elif more:
                buffer.extend(bytes(min(room, LONGEST_LINE - room)))
            rest = filled - cut
            buffer[:rest] = buffer[cut:filled]
            filled = rest
            if self.progress is not None:
                self.progress(self.source.done, self.source.size)
            if cut:
                yield

    def _check_start(self, buffer: bytearray) -> None:
        head = bytes(buffer[:8])
        if head.startswith(b"\xef\xbb\xbf"):  # the mark that some editors put before UTF-8
            buffer[:3] = b"   "
        elif self.source.compressed and (inner := magic(head)):
            raise _looks_like(self.source.name, inner)

    def _parse(self, buffer: bytearray, size: int, times: float) -> None:
        problem = self.parser.feed(buffer, size, times, PIECE, self.threads)
        if problem is not None:
            raise self._describe(*problem)

    def take(self, *, partly: bool = False, as_rows: bool = False) -> Parsed:
        """The rows parsed so far; unless `partly`, there must be some."""
        self.rows += self.parser.rows
        if not partly:
            self.check_not_empty()
        taken = self.parser.take()
        if len(taken) == 1:
            raise self._describe(*taken[0])
        from widemargin.data.rows import CsrRows

        values, indices, starts, y, qid, width = taken
        rows = CsrRows(values, indices, starts, width, self.threads)
        return Parsed(rows if as_rows else rows.X, y, qid, self.parser.zero_based)

    def check_not_empty(self) -> None:
        """Raise if the source held no rows."""
        if not self.rows:
            what = "no rows, only comments and blank lines" if self.read else "the file is empty"
            raise DataError.at(self.source.name, what, "give lines like `1 3:0.5 7:2`", line=1)

    def _describe(self, fault: str, line: int, token: bytes, number: int) -> DataError:
        junk = any(byte < 32 for byte in token) or _is_no_text(token)
        shown = quote(token)
        index = quote(token.partition(b":")[0])[1:-1]
        if junk:
            what, advice = f"{shown} looks like binary data", "give text, or name the file by its format"
        elif fault == "infinite":
            what, advice = f"{shown} is not a finite number", "remove it, or put in a number"
        else:
            what, advice = {
                "label": (f"{shown} is not a label", "begin each line with a number: 1 3:0.5 7:2"),
                "labels": (f"{shown} are several labels", "give one label per line; train one model per label"),
                "pair": (f"{shown} is not a pair index:value", "write pairs like 3:0.5, split by blanks"),
                "truncated": (f"{shown} has no value", "write index:value without blanks; is the line cut off?"),
                "value": (f"{shown} has no number behind the colon", "write pairs like 3:0.5"),
                "negative": (f"index {index} is negative", "count columns from 0 or 1"),
                "large": (f"index {index} is too large", "indices go up to 2^63 - 2"),
                "order": (f"index {index} after {number}", "indices must increase within a line"),
                "zero": (
                    ("index 0 where columns count from 1", "pass zero_based=True")
                    if self.zero_based is False
                    else ("index 0 after lines read as counting from 1", "pass zero_based=True, or number from 1")
                ),
                "wide": (f"index {number} with n_features={self.n_features}", "raise n_features, or leave it out"),
                "qid": (f"{shown} is not a query id", "write qid: and a whole number"),
                "mixed": (
                    "a qid here, none on the lines before" if number else "no qid here, unlike the lines before",
                    "give every line a qid, or none",
                ),
            }[fault]
        return DataError.at(self.source.name, what, advice, line=line)


def _is_no_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError as error:
        return len(token) < 100 or error.start < len(token) - 3  # a long one may be cut within a character
    return False


def _looks_like(name: str, kind: str) -> DataError:
    return DataError.at(
        name, f"the file is not text but looks like {kind}", "name it by its format, or give text", line=1
    )

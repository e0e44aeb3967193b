"""Tables as rows: numbers and booleans are taken as they are, text becomes one column of X for each value that occurs.

All values are kept, in sorted order. The first time over a file learns this encoding; the second applies it. A file
that comes with its encoding is read once, with its columns in any order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.data.dataset import Dataset, checked_dtype, stack
from widemargin.data.encoding import Column, Encoding, listed
from widemargin.data.errors import DataError, quote
from widemargin.data.table_files import Table, is_number

Progress = Callable[[int, int], None]

#: Columns that are taken for the label if none is named, in any case.
LABELS = ("label", "y", "target", "class")
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")


def _label_of(table: Table, label: str | int | None) -> str:
    """The name of the label's column."""
    if isinstance(label, int):
        if not -len(table.names) <= label < len(table.names):
            raise DataError.at(table.source, f"no column {label} among {len(table.names)}", "columns count from 0")
        return table.names[label]
    if label is not None:
        if label not in table.names:
            raise DataError.at(table.source, f"no column {quote(label)}", f"the columns are {listed(table.names)}")
        return label
    found = [name for name in table.names if name.lower() in LABELS]
    if len(found) != 1:
        what = f"the columns {listed(found)} may all be the label" if found else "no column is called label"
        advice = "name it with label=, or give its number if the file has no line of names"
        raise DataError.at(table.source, what, f"{advice}; the columns are {listed(table.names)}")
    return found[0]


def _as_text(arrow: Any, values: Any) -> Any:
    """A column of text or of a dictionary as plain strings."""
    if arrow.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.cast(arrow.string())


def _as_numbers(arrow: Any, values: Any) -> Any:
    """A column of numbers, or of text that is numbers, as float64; ArrowInvalid if it is not."""
    try:
        return values.cast(arrow.float64(), safe=False)
    except arrow.ArrowInvalid:  # blanks around it, perhaps
        return arrow.compute.utf8_trim_whitespace(values).cast(arrow.float64())


def _text_kind(arrow: Any, values: Any) -> str | None:
    """What strings look like; None if all are missing."""
    if values.null_count == len(values):
        return None
    for kind, make in (
        ("number", lambda: _as_numbers(arrow, values)),
        ("boolean", lambda: _all_in(arrow, values, TRUE + FALSE)),
        ("date", lambda: values.cast(arrow.timestamp("us"))),
        ("time", lambda: _all_like(arrow, values, r"^\d{1,2}:\d\d(:\d\d(\.\d+)?)?$")),
    ):
        try:
            make()
            return kind
        except arrow.ArrowInvalid:
            continue
    return "category"


def _all_in(arrow: Any, values: Any, words: tuple[str, ...]) -> None:
    if not arrow.compute.all(arrow.compute.is_in(values.drop_null(), value_set=arrow.array(words))).as_py():
        raise arrow.ArrowInvalid("another word")


def _all_like(arrow: Any, values: Any, pattern: str) -> None:
    if not arrow.compute.all(arrow.compute.match_substring_regex(values.drop_null(), pattern)).as_py():
        raise arrow.ArrowInvalid("another form")


def _typed_kind(arrow: Any, kind: Any) -> str:
    """What a column of that type holds."""
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
        return "category" if not types.is_nested(kind) and not types.is_temporal(kind) else str(kind)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    view = getattr(types, "is_string_view", lambda _: False)
    return "category" if types.is_string(kind) or types.is_large_string(kind) or view(kind) else str(kind)


def learn(table: Table, label: str | int | None, progress: Progress | None = None) -> Encoding:
    """The encoding that a table asks for."""
    target = _label_of(table, label)
    kinds: dict[str, str | None] = {
        name: None if table.is_text else _typed_kind(table.arrow, table.types[name]) for name in table.names
    }
    texts = tuple(name for name in table.names if kinds[name] == "category" and name != target)
    values = _survey(table, table.names if table.is_text else texts, kinds, progress)
    for name, kind in kinds.items():
        if kind not in ("number", "boolean", "category"):
            raise DataError.at(
                table.source,
                f"the column {quote(name)} holds values of type {kind}",
                "make numbers or text of it, or drop it",
            )
    columns = tuple(
        Column(name, str(kinds[name]), tuple(sorted(values.get(name, ())))) for name in table.names if name != target
    )
    if not columns:
        raise DataError.at(table.source, "no columns besides the label", "give at least one feature")
    return Encoding(columns, target, str(kinds[target]), table.header)


def _survey(
    table: Table, names: tuple[str, ...], kinds: dict[str, str | None], progress: Progress | None
) -> dict[str, set[str]]:
    """The values of each column of text; of columns without a type, what they hold, which is put into `kinds`.

    A column that turns out to be text behind numbers sends us over the file once more.
    """
    arrow, again = table.arrow, bool(names)
    values: dict[str, set[str]] = {}
    while again:
        missing, again, values = dict.fromkeys(names, 0), False, {name: set() for name in names}
        passed = set()  # columns with values that were seen while they looked like something else than text
        for batch in table.batches(names):
            for name, column in zip(names, batch.columns, strict=True):
                missing[name] += _count_missing(arrow, column)
                if kinds[name] != "category":
                    seen = _text_kind(arrow, column)
                    kinds[name] = seen if kinds[name] in (None, seen) else kinds[name] if seen is None else "category"
                if kinds[name] == "category":
                    values[name].update(_as_text(arrow, column).unique().drop_null().to_pylist())
                else:
                    passed.add(name)
            if progress is not None:
                progress(table.done, table.size)
        if table.is_text and not passed and not any(values.values()):
            raise DataError.at(table.source, "no rows", "give a line for each row")
        if table.is_text:  # else they are counted where all columns are read
            _refuse_missing(table.source, missing)
        again = any(kinds[name] == "category" for name in passed)
    return values


def _count_missing(arrow: Any, column: Any) -> int:
    nulls = int(column.null_count)
    if arrow.types.is_floating(column.type):
        nulls += int(np.isnan(column.drop_null().cast(arrow.float64()).to_numpy(zero_copy_only=False)).sum())
    return nulls


def _refuse_missing(source: str, missing: dict[str, int], row: int | None = None) -> None:
    """Raise if anything is missing, with how many and where."""
    lacking = {name: count for name, count in missing.items() if count}
    if lacking:
        total = sum(lacking.values())
        shown = ", ".join(f"{quote(name)} ({count:,})" for name, count in list(lacking.items())[:8])
        more = f" and {len(lacking) - 8} more columns" if len(lacking) > 8 else ""
        where = "" if row is None else f", the first in row {row + 1:,}"
        raise DataError.at(
            source, f"{total:,} missing values, in {shown}{more}{where}", "fill them in, or drop those rows or columns"
        )


class Encoder:
    """Applies an encoding to the batches of a table that may have its columns in another order."""

    def __init__(self, table: Table, encoding: Encoding, label: str | int | None, dtype: DTypeLike) -> None:
        self.table, self.arrow, self.encoding = table, table.arrow, encoding
        self.dtype = np.dtype(checked_dtype(table.source, dtype))
        inputs = [column.name for column in encoding.columns]
        if not encoding.header and encoding.label is not None and len(table.names) == len(inputs):
            table.names = tuple(inputs)  # without names, and without the label: the columns are those left
        target = encoding.label if label is None else _label_of(table, label)
        absent = [name for name in inputs if name not in table.names]
        if absent:
            what = (
                f"the column {quote(absent[0])} is missing"
                if len(absent) == 1
                else f"columns are missing: {listed(absent)}"
            )
            raise DataError.at(table.source, what, f"the columns are {listed(table.names)}")
        extra = [name for name in table.names if name not in inputs and name != target]
        if extra:
            raise DataError.at(table.source, f"columns that were not there before: {listed(extra)}", "drop them")
        self.target = target if target in table.names else None
        self.read = tuple(inputs) + ((self.target,) if self.target is not None else ())
        self.sets = {
            column.name: table.arrow.array(column.categories, table.arrow.string())
            for column in encoding.columns
            if column.kind == "category"
        }
        self.offsets = np.concatenate([[0], np.cumsum([column.width for column in encoding.columns])])

    def encode(self, batch: Any, row: int) -> Dataset:
        """A batch whose first row has that number, from 0."""
        n, encoding = batch.num_rows, self.encoding
        values = np.empty((n, len(encoding.columns)), dtype=self.dtype)
        places = np.empty(values.shape, dtype=np.int32) if encoding.is_sparse else None
        X = None if encoding.is_sparse else np.zeros((n, int(self.offsets[-1])), dtype=self.dtype)
        for k, column in enumerate(encoding.columns):
            at = int(self.offsets[k])
            if column.kind == "category":
                codes = self._codes(column, batch.column(k), row)
                if X is not None:
                    X[np.arange(n), at + codes] = 1
                elif places is not None:
                    places[:, k], values[:, k] = at + codes, 1
            else:
                numbers = self._numbers(column.name, column.kind, batch.column(k), row)
                if X is not None:
                    X[:, at] = numbers
                elif places is not None:
                    places[:, k], values[:, k] = at, numbers
        if X is not None:
            rows: Any = X
        else:
            from scipy.sparse import csr_array

            assert places is not None
            starts = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
            rows = csr_array((values.ravel(), places.ravel(), starts), shape=(n, int(self.offsets[-1])))
            rows.eliminate_zeros()
        y = None if self.target is None else self._labels(batch.column(len(encoding.columns)), row)
        return Dataset(rows, y, encoding.names, encoding, None, self.table.source)

    def _fail(self, name: str, column: Any, bad: NDArray[np.bool_], row: int, what: str, advice: str) -> DataError:
        at = int(np.argmax(bad))
        value = quote(str(column[at].as_py()))
        return DataError.at(
            self.table.source, f"row {row + at + 1:,}: {value} in the column {quote(name)} {what}", advice
        )

    def _numbers(self, name: str, kind: str, column: Any, row: int) -> NDArray[np.float64]:
        arrow, types = self.arrow, self.arrow.types
        is_text = types.is_string(column.type) or types.is_large_string(column.type)
        if kind == "boolean":
            if types.is_boolean(column.type):
                return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
            if is_text:
                column = column.cast(arrow.string())
                true = arrow.compute.is_in(column, value_set=arrow.array(TRUE)).to_numpy(zero_copy_only=False)
                false = arrow.compute.is_in(column, value_set=arrow.array(FALSE)).to_numpy(zero_copy_only=False)
                if not (true | false).all():
                    raise self._fail(name, column, ~(true | false), row, "is not true or false", "write true or false")
                return np.asarray(true, dtype=np.float64)
        if not is_text and _typed_kind(arrow, column.type) not in ("number", "boolean"):
            raise DataError.at(
                self.table.source,
                f"the column {quote(name)} is of type {column.type}, it was a {kind}",
                "give it as before",
            )
        try:
            numbers = _as_numbers(arrow, column.cast(arrow.string()) if is_text else column)
        except arrow.ArrowInvalid:
            bad = np.array([not is_number(value) for value in column.to_pylist()])
            raise self._fail(
                name, column, bad, row, "is not a number", "the column held only numbers; correct it"
            ) from None
        array = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
        largest = float(np.finfo(self.dtype).max)
        if not (np.abs(array) <= largest).all():
            bad = ~(np.abs(array) <= largest)
            raise self._fail(name, column, bad, row, "is not a finite number", "replace it, or drop the row")
        return array

    def _codes(self, column: Column, values: Any, row: int) -> NDArray[np.intp]:
        if _typed_kind(self.arrow, values.type) not in ("category", "number", "boolean"):
            raise DataError.at(
                self.table.source,
                f"the column {quote(column.name)} is of type {values.type}, it was text",
                "give it as before",
            )
        codes = self.arrow.compute.index_in(_as_text(self.arrow, values), value_set=self.sets[column.name])
        if codes.null_count:
            unknown = np.asarray(codes.is_null().to_numpy(zero_copy_only=False))
            known = listed(column.categories, 4)
            raise self._fail(
                column.name,
                values,
                unknown,
                row,
                f"is none of the values known: {known}",
                "replace it, or train on it too",
            )
        return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.intp)

    def _labels(self, column: Any, row: int) -> NDArray[Any]:
        name = str(self.target)
        if self.encoding.label_kind == "category":
            return np.array(_as_text(self.arrow, column).to_pylist(), dtype=np.str_)
        numbers = self._numbers(name, self.encoding.label_kind, column, row)
        return numbers.astype(np.bool_) if self.encoding.label_kind == "boolean" else numbers


def _open(
    source: Any,
    kind: str,
    label: str | int | None,
    encoding: Encoding | None,
    dtype: DTypeLike,
    threads: int,
    progress: Progress | None,
) -> Encoder:
    header = encoding.header if encoding is not None else not isinstance(label, int)
    table = Table(source, kind, header=header, threads=threads)
    if encoding is None:
        if table.once:
            raise DataError.at(table.source, "a table from a stream needs encoding=", "learn one from a file first")
        encoding = learn(table, label, progress)
    return Encoder(table, encoding, label, dtype)


def read_table(
    source: str | os.PathLike[str],
    kind: str,
    *,
    label: str | int | None = None,
    encoding: Encoding | None = None,
    dtype: DTypeLike = np.float64,
    threads: int = 0,
    progress: Progress | None = None,
) -> Dataset:
    """All rows of a table."""
    encoder = _open(source, kind, label, encoding, dtype, threads, progress)
    table, parts, labels, row = encoder.table, [], [], 0
    missing = dict.fromkeys(encoder.read, 0)
    for batch in table.batches(encoder.read):
        for name, column in zip(encoder.read, batch.columns, strict=True):
            missing[name] += _count_missing(table.arrow, column)
        if not any(missing.values()):  # else go on to count them all
            part = encoder.encode(batch, row)
            parts.append(part.X)
            if part.y is not None:
                labels.append(part.y)
        row += batch.num_rows
        if progress is not None:
            progress(table.done, table.size)
    _refuse_missing(table.source, missing)
    if not row:
        raise DataError.at(table.source, "no rows", "give a line for each row")
    y = np.concatenate(labels) if labels else None
    return Dataset(stack(parts), y, encoder.encoding.names, encoder.encoding, None, table.source)


def stream_table(
    source: Any,
    kind: str,
    *,
    rows: int,
    label: str | int | None = None,
    encoding: Encoding | None = None,
    dtype: DTypeLike = np.float64,
    threads: int = 0,
    progress: Progress | None = None,
) -> Iterator[Dataset]:
    """The rows of a table in blocks of `rows`, one in memory at a time; without `encoding` the file is read twice."""
    encoder = _open(source, kind, label, encoding, dtype, threads, progress)
    table, arrow, waiting, row = encoder.table, encoder.arrow, [], 0

    def block(batches: list[Any], size: int) -> Dataset:
        whole = arrow.Table.from_batches(batches).combine_chunks().to_batches(max_chunksize=size)[0]
        missing = {
            name: _count_missing(arrow, column) for name, column in zip(encoder.read, whole.columns, strict=True)
        }
        _refuse_missing(table.source, missing, _first_missing(arrow, whole) + row if any(missing.values()) else None)
        return encoder.encode(whole, row)

    held = 0
    for batch in table.batches(encoder.read):
        while batch.num_rows:
            taken = batch.slice(0, rows - held)
            batch = batch.slice(taken.num_rows)
            waiting.append(taken)
            held += taken.num_rows
            if held == rows:
                yield block(waiting, rows)
                waiting, held, row = [], 0, row + rows
        if progress is not None:
            progress(table.done, table.size)
    if held:
        yield block(waiting, held)
    if not held and not row:
        raise DataError.at(table.source, "no rows", "give a line for each row")


def _first_missing(arrow: Any, batch: Any) -> int:
    bad = np.zeros(batch.num_rows, dtype=bool)
    for column in batch.columns:
        bad |= np.asarray(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
    return int(np.argmax(bad))

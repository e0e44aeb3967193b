"""Tables in files: CSV and TSV, Parquet, Arrow and Feather, read and written in batches through pyarrow.

pyarrow is imported when a table is opened. All fields of CSV are read as text, so that what a column holds is decided
by the whole of it and not by its first lines.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data.errors import DataError, because, quote
from widemargin.data.streams import Source, aside, written

Names = tuple[str, ...]

#: Bytes of CSV parsed at a time, and rows of the other formats.
CSV_BLOCK = 1 << 20
BATCH = 1 << 14
#: A line of names is looked for in so many bytes.
LONGEST_HEADER = 1 << 24
#: What stands for a missing value in CSV.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "-NaN", "NULL", "null", "None")


def need_pyarrow(source: str) -> Any:
    """Import pyarrow, or say how to get it."""
    try:
        import pyarrow
        import pyarrow.compute  # so that pyarrow.compute is there
    except ImportError:
        raise DataError.at(source, "tables need pyarrow", "run: pip install 'widemargin[tables]'") from None
    return pyarrow


class Table:
    """A table in a file: its column names, and its batches as often as they are asked for (a stream: once)."""

    def __init__(
        self, source: str | os.PathLike[str] | IO[bytes], kind: str, *, header: bool = True, threads: int = 0
    ) -> None:
        self.path, self.kind, self.header, self.threads = source, kind, header, threads
        self.once = not isinstance(source, str | os.PathLike) or os.fspath(source) == "-" or _is_pipe(source)
        self.source = (
            str(getattr(source, "name", "stream")) if not isinstance(source, str | os.PathLike) else str(source)
        )
        self.arrow = need_pyarrow(self.source)
        self.done = self.size = 0
        self._opened = Source(source) if self.once else None
        with self._errors():
            self.names, self.types = self._look()
        twice = [name for k, name in enumerate(self.names) if name in self.names[:k]]
        if twice:
            raise DataError.at(
                self.source, f"the column {quote(twice[0])} comes twice", "give each column its own name"
            )

    @property
    def is_text(self) -> bool:
        """Whether all fields are read as text."""
        return self.kind == "csv"

    def _look(self) -> tuple[Names, dict[str, Any]]:
        """Names and types of the columns."""
        if self.kind == "csv":
            if self._opened is not None:
                return self._look_at_csv(self._opened)
            with Source(self.path) as source:
                return self._look_at_csv(source)
        schema = self._open_parquet().schema_arrow if self.kind == "parquet" else self._open_arrow().schema
        return tuple(schema.names), {field.name: field.type for field in schema}

    def _look_at_csv(self, source: Source) -> tuple[Names, dict[str, Any]]:
        if source.kind is not None and not source.compressed:
            raise DataError.at(
                self.source, f"the file is not text but looks like {source.kind}", "name it by its format"
            )
        size = 1 << 16
        while b"\n" not in (head := source.head(size)) and len(head) == size and size < LONGEST_HEADER:
            size *= 2
        if not head.strip():
            raise DataError.at(
                self.source, "the file is empty", "give a line of column names and a line for each row", line=1
            )
        if b"\0" in head:
            raise DataError.at(
                self.source, "the file looks like binary data", "give text, or name it by its format", line=1
            )
        try:
            text = head.decode("utf-8-sig", "strict" if len(head) < size else "ignore")
        except UnicodeDecodeError:
            raise DataError.at(self.source, "the file is not UTF-8 text", "save it as UTF-8") from None
        first = text.lstrip("\r\n").partition("\n")[0]
        suffixes = [suffix.lower() for suffix in Path(self.source).suffixes]
        self.delimiter = "\t" if {".tsv", ".tab"} & set(suffixes) else max(",;\t", key=first.count)
        lines = csv.reader(text.lstrip("\r\n").splitlines(keepends=True), delimiter=self.delimiter)
        names = next(lines)
        if not self.header:
            if not any(map(is_number, names)) and any(map(is_number, next(lines, []))):
                what = f"the first line looks like names: {', '.join(map(quote, names[:4]))} …"
                raise DataError.at(self.source, what, "give label= the name; a number is for files without", line=1)
            names = [f"f{k}" for k in range(len(names))]
        return tuple(names), {}

    def _open_parquet(self) -> Any:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(os.fspath(self.path))  # type: ignore[arg-type]

    def _open_arrow(self) -> Any:
        try:
            return self.arrow.ipc.open_file(self.arrow.OSFile(os.fspath(self.path)))  # type: ignore[arg-type]
        except self.arrow.ArrowInvalid:
            return self.arrow.ipc.open_stream(self.arrow.OSFile(os.fspath(self.path)))  # type: ignore[arg-type]

    def batches(self, columns: Names) -> Iterator[Any]:
        """Record batches of these columns, in this order."""
        with self._errors():
            if self.kind == "csv":
                yield from self._csv_batches(columns)
                return
            self.size = os.path.getsize(os.fspath(self.path))  # type: ignore[arg-type]
            if self.kind == "parquet":
                file = self._open_parquet()
                total, rows = max(1, file.metadata.num_rows), 0
                for batch in file.iter_batches(BATCH, columns=list(columns), use_threads=self.threads == 0):
                    rows += batch.num_rows
                    self.done = self.size * rows // total
                    yield self._plain(batch, columns)
            else:
                reader = self._open_arrow()
                count = getattr(reader, "num_record_batches", None)
                parts = reader if count is None else map(reader.get_batch, range(count))
                for k, batch in enumerate(parts, 1):
                    batch.validate(full=True)  # offsets are taken on trust otherwise
                    self.done = self.size * k // count if count else 0
                    for begin in range(0, batch.num_rows, BATCH):
                        yield self._plain(batch.slice(begin, BATCH), columns)

    def _plain(self, batch: Any, columns: Names) -> Any:
        """These columns, without dictionaries, which may differ from batch to batch."""
        arrays = [batch.column(batch.schema.get_field_index(name)) for name in columns]
        arrays = [a.dictionary_decode() if self.arrow.types.is_dictionary(a.type) else a for a in arrays]
        return self.arrow.RecordBatch.from_arrays(arrays, names=list(columns))

    def _csv_batches(self, columns: Names) -> Iterator[Any]:
        from pyarrow import csv as arrow_csv

        with self._opened or Source(self.path) as source:
            self.size = source.size
            reader = arrow_csv.open_csv(
                self.arrow.PythonFile(source, "r"),
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=CSV_BLOCK, column_names=None if self.header else list(self.names)
                ),
                arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, self.arrow.string()),
                    include_columns=list(columns),
                    null_values=list(MISSING),
                    strings_can_be_null=True,
                ),
            )
            for batch in reader:
                self.done = source.done
                yield batch

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn pyarrow's complaints into ours."""
        try:
            yield
        except DataError:
            raise
        except (self.arrow.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise DataError.at(self.source, *because(error)) from None
            first = (str(error).splitlines() or ["unreadable"])[0]
            wrong = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", first)
            if wrong:
                row, expected, got = wrong.groups()
                what = f"{got} fields where there are {expected} columns"
                raise DataError.at(self.source, what, "quote fields that hold the delimiter", line=int(row)) from None
            if "Empty CSV" in first:
                raise DataError.at(self.source, "no rows", "give a line for each row") from None
            if "UTF8" in first:
                raise DataError.at(self.source, "the file is not UTF-8 text", "save it as UTF-8") from None
            kind = {"csv": "CSV", "parquet": "Parquet", "arrow": "Arrow"}[self.kind]
            raise DataError.at(
                self.source, f"not a sound {kind} file ({quote(first[:60])[1:-1]})", "write it again"
            ) from None

    def close(self) -> None:
        """Close a stream's reader."""
        if self._opened is not None:
            self._opened.close()


def is_number(field: Any) -> bool:
    """Whether a field is a number as tables write it: Python's own 1_000 is none."""
    try:
        float(field)
    except (TypeError, ValueError):
        return False
    return "_" not in str(field)


def _is_pipe(path: str | os.PathLike[str]) -> bool:
    return Path(path).exists() and not Path(path).is_file()


def write_table(path: Path, kind: str, X: Any, y: NDArray[Any] | None, names: Names | None) -> None:
    """Rows as a table, the labels first in a column `label`; columns without names are x1, x2, …"""
    arrow = need_pyarrow(str(path))
    n, d = X.shape
    columns = tuple(f"x{j + 1}" for j in range(d)) if names is None else names
    if y is not None and "label" in columns:
        raise DataError.at(str(path), "a feature is called 'label', as the labels are", "rename the feature")
    labels = None if y is None else arrow.array(y.tolist() if y.dtype.kind in "OU" else y)
    numbers = arrow.from_numpy_dtype(X.dtype)
    fields = [] if labels is None else [("label", labels.type)]
    schema = arrow.schema(fields + [(name, numbers) for name in columns])
    step = max(1, min(BATCH, (1 << 20) // max(1, d)))

    def batches() -> Iterator[Any]:
        for begin in range(0, n, step):
            part = X[begin : begin + step]
            dense = np.ascontiguousarray((part if isinstance(part, np.ndarray) else part.toarray()).T)
            first = [] if labels is None else [labels.slice(begin, step)]
            yield arrow.record_batch(first + [arrow.array(column) for column in dense], schema=schema)

    if kind == "csv":
        from pyarrow import csv as arrow_csv

        delimiter = "\t" if {".tsv", ".tab"} & {suffix.lower() for suffix in path.suffixes} else ","
        options = arrow_csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        with written(path) as file, arrow_csv.CSVWriter(file, schema, write_options=options) as writer:
            for batch in batches():
                writer.write_batch(batch)
        return
    with aside(path) as temporary:
        if kind == "parquet":
            import pyarrow.parquet

            with pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
                for batch in batches():
                    writer.write_batch(batch)
        else:
            with arrow.ipc.new_file(os.fspath(temporary), schema) as writer:
                for batch in batches():
                    writer.write_batch(batch)

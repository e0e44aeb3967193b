"""The options that name data, and reading what they name."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import Enum
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from widemargin.cli.screen import note, reading_bar
from widemargin.cli.text import whole
from widemargin.data.errors import quote
from widemargin.data.files import FORMATS, is_svmlight
from widemargin.data.machine import SHARE
from widemargin.data.streams import COMPRESSED

if TYPE_CHECKING:
    from widemargin.data import Dataset, Encoding
    from widemargin.model import LinearModel
    from widemargin.model_kernel import KernelModel

    Model = LinearModel | KernelModel

#: Text is assumed to take as many bytes in memory as on disk; compressed text this many times as many.
UNPACKED = 6

#: What training and its report need.
NEEDED = (
    "widemargin.one_against_rest",
    "numpy.random",
    "widemargin.model",
    "safetensors",
    "rich.table",
    "rich.console",
)


def add_data(parser: argparse.ArgumentParser, name: str = "data", *, what: str = "") -> None:
    """The argument for a data file, and what has to be known to read it."""
    formats = "svmlight text, CSV or TSV (also .gz, .bz2, .zst), Parquet, Arrow, .npz, .npy, or a store"
    parser.add_argument(name, metavar=name.upper(), help=f"{what}{formats}")
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column of the labels in a table: its name or, in a file without names, its number from 0",
    )
    base = group.add_mutually_exclusive_group()
    base.add_argument("--zero-based", action="store_true", default=None, help="svmlight columns count from 0")
    base.add_argument("--one-based", dest="zero_based", action="store_false", help="… from 1; found out if not said")
    group.add_argument("--threads", type=whole(0), default=0, metavar="N", help="threads; 0, the default: one a core")


def reading_options(options: argparse.Namespace, path: str, encoding: Any = None) -> dict[str, Any]:
    """What `data.open` and `data.blocks` are told."""
    label = options.label
    if label is not None and label.isdecimal():
        label = int(label)
    known: dict[str, Any] = {"threads": options.threads}
    if label is not None:
        known["label"] = label
    if options.zero_based is not None and not os.path.isdir(path):
        known["zero_based"] = options.zero_based
    if encoding is not None:
        known["encoding"] = encoding
    return known


def read(
    path: str,
    options: argparse.Namespace,
    *,
    encoding: Any = None,
    as_rows: bool = False,
    needed: Sequence[str] = ("scipy.sparse",),
) -> Dataset:
    """All of a file; modules that will be needed are imported meanwhile, which takes as long as parsing 100 MB."""
    from widemargin import data

    def prepare() -> None:
        for name in needed:
            with suppress(ImportError, RuntimeError):  # who needs it will say so; or Python is about to end
                import_module(name)

    Thread(target=prepare, daemon=True).start()
    with reading_bar(f"reading {Path(path).name}") as progress:
        return data.open(path, **reading_options(options, path, encoding), progress=progress, as_rows=as_rows)


def read_for(model: Model, path: str, options: argparse.Namespace, *, proof: bool = False) -> Dataset:
    """All of a file, its columns those of the model; for a proof there must be no others, whose weights count too.

    Sparse rows for a kernel model keep theirs.
    """
    from widemargin.data import DataError

    remember_base(options, model.zero_based, path)
    found = read(path, options, encoding=encoding_for(encoding_of(model, options.model), path))
    width, columns, kernel = found.X.shape[1], model.columns, hasattr(model, "kernel")
    if proof and width > columns and not kernel:
        raise DataError.at(path, f"{width} columns, the model has {columns}", "give the rows that it was trained on")
    return replace(found, X=fitted(found.X, columns, path, kernel=kernel))


def read_like(
    path: str, options: argparse.Namespace, encoding: Encoding | None, columns: int, *, kernel: bool = False
) -> Dataset:
    """All of a file, its columns as they were in another."""
    found = read(path, options, encoding=encoding_for(encoding, path))
    return replace(found, X=fitted(found.X, columns, path, kernel=kernel))


def remember_base(options: argparse.Namespace, zero_based: bool | None, path: str) -> None:
    """A file without an index 0 does not say from where its columns count; what the model was trained on did."""
    if options.zero_based is None and is_svmlight(path):
        options.zero_based = zero_based


def encoding_of(model: Model, name: str) -> Encoding | None:
    """How the model's columns came from those of a table; None if it was not trained on one."""
    from widemargin.data import Encoding
    from widemargin.model import ModelError

    if model.encoding is None:
        return None
    encoding = Encoding.from_json(model.encoding, source=name)
    if len(encoding.names) != model.columns:
        what = f"its encoding makes {len(encoding.names)} columns, it has weights for {model.columns}"
        raise ModelError(f"{name}: {what}; train it again")
    return encoding


def encoding_for(encoding: Encoding | None, path: str) -> Encoding | None:
    """What a file has to be read with, if it is a table; a store was, and must have been made in the same way."""
    from widemargin.data import DataError
    from widemargin.data.store import encoding_in

    if encoding is None or not os.path.isdir(path):
        return encoding
    if encoding_in(path) != encoding:
        raise DataError.at(path, "its columns are not those that the model was trained on", "give the table itself")
    return None


def fitted(X: Any, columns: int, path: str, *, noted: bool = False, kernel: bool = False) -> Any:
    """Sparse rows with as many columns as the model has: missing ones are 0, those it never saw are left out.

    Which is said, unless it was `noted` before. For a `kernel` they are kept: all support vectors are 0 there, and
    distances from them count.
    """
    from widemargin.data import DataError

    width = X.shape[1]
    if width == columns:
        return X
    X = getattr(X, "X", X)  # all rows of a store
    if hasattr(X, "indptr"):
        if width > columns and kernel:
            return X
        if width > columns:
            if not noted:
                note(f"{path}: the columns beyond {columns:,}, which the model never saw, are left out")
            return X[:, :columns]
        X.resize(X.shape[0], columns)
        return X
    raise DataError.at(path, f"{width} columns, the model has {columns}", "use the columns it was trained on")


class Place(Enum):
    """Where the rows are that are trained on. Their order depends on it, and so do the last bits."""

    MEMORY = "in memory"
    STORE = "in a store, all together"
    PARTS = "in a store, part by part"


@contextmanager
def training_data(options: argparse.Namespace, target: Path, place: Place | None) -> Iterator[tuple[Dataset, Place]]:
    """The rows to train on, and where they are: at this place, or where the memory that is free suggests.

    A store that nobody asked for is removed at the end.
    """
    from widemargin import data

    def placed(found: Dataset) -> tuple[Dataset, Place]:
        rows = found.X if place is None else found.X.divided(place is Place.PARTS)
        return replace(found, X=rows), Place.PARTS if rows.in_parts else Place.STORE

    path = options.data
    if os.path.isdir(path):
        yield placed(read(path, options, needed=NEEDED))
    elif options.cache is not None:
        yield placed(data.open(_cached(path, Path(options.cache or f"{path}.store"), options)))
    elif place is Place.MEMORY or (place is None and not _too_large(path)):
        yield read(path, options, as_rows=True, needed=NEEDED), Place.MEMORY
    else:
        aside = tempfile.mkdtemp(prefix=".widemargin.", dir=target.parent)
        try:
            store(path, Path(aside, "store"), options)
            yield placed(data.open(Path(aside, "store")))
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def store(path: str, target: Path, options: argparse.Namespace, origin: dict[str, Any] | None = None) -> None:
    """Turns a data file into a store."""
    from widemargin import data
    from widemargin.data.store_writer import write_store

    with reading_bar(f"storing {Path(path).name}") as progress:
        write_store(target, data.blocks(path, **reading_options(options, path), progress=progress), origin=origin)


def _cached(path: str, target: Path, options: argparse.Namespace) -> Path:
    """The store of a file, made anew if the file has changed since; no other store is touched."""
    from widemargin.data import DataError
    from widemargin.data.store import is_store, origin_of

    name = os.path.relpath(path, target.parent)  # the two may move together
    origin = fingerprint(path) | {"name": name, "label": options.label, "zero_based": options.zero_based}
    before = origin_of(target) if is_store(target) else {}
    if before is None or before.get("name", name) != name:
        whose = "that was not made by --cache" if before is None else f"of {quote(before['name'])}"
        raise DataError.at(str(target), f"a store {whose}", "choose another name for the cache, or remove it")
    if before != origin:
        store(path, target, options, origin)
    return target


def stem(path: str) -> str:
    """A file's name without the suffixes of its format."""
    name = Path("data" if path == "-" else path)
    while name.suffix.lower() in (*COMPRESSED, *FORMATS, ".store"):
        name = name.with_suffix("")
    return name.name


def fingerprint(path: str) -> dict[str, Any]:
    """What changes when a file does."""
    from widemargin.data import DataError

    if path == "-":
        raise DataError.at("-", "standard input comes only once", "save it to a file for --cache or --checkpoint")
    place = Path(path, "store.json") if os.path.isdir(path) else Path(path)
    about = place.stat()
    return {"bytes": about.st_size, "changed": about.st_mtime_ns}


def _too_large(path: str) -> bool:
    from widemargin.data.machine import free_memory

    if not os.path.isfile(path):
        return False
    size = os.path.getsize(path) * (UNPACKED if Path(path).suffix.lower() in COMPRESSED else 1)
    return size > SHARE * free_memory()

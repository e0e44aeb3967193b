"""examples:
  widemargin convert heart.svm heart.npz
  widemargin convert heart.svm heart.store
  widemargin convert heart.csv heart.svm.gz --label disease

A name without a suffix, or with the suffix .store, becomes a store: a directory that trains at any size.
"""  # the end of --help

from __future__ import annotations

import argparse
from pathlib import Path

from widemargin.cli.reading import add_data, read, store
from widemargin.cli.screen import say


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_data(parser, "input", what="what to read: ")
    parser.add_argument("output", metavar="OUTPUT", help="what to write; the suffix says the format")


def run(options: argparse.Namespace) -> int:
    """Reads and writes; a store block by block."""
    from widemargin import data
    from widemargin.data import DataError

    target = Path(options.output)
    if target.absolute() == Path(options.input).absolute():
        raise DataError.at(options.output, "input and output are the same", "choose another name")
    if target.suffix in ("", ".store"):
        store(options.input, target, options)
    else:
        found = read(options.input, options)
        rows = getattr(found.X, "X", found.X)
        named = target.name.removesuffix(target.suffix if target.suffix in (".gz", ".bz2", ".zst") else "")
        names = (
            found.names if Path(named).suffix in (".csv", ".tsv", ".tab", ".parquet", ".arrow", ".feather") else None
        )
        data.save(target, rows, found.y, names=names)
    say(f"wrote {target}")
    return 0

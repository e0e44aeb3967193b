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
from widemargin.cli.writing import check_place, target_of


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_data(parser, "input", what="what to read: ")
    parser.add_argument("output", metavar="OUTPUT", help="what to write; the suffix says the format")


def run(options: argparse.Namespace) -> int:
    """Reads and writes; a store block by block."""
    from widemargin import data
    from widemargin.data import DataError
    from widemargin.data.files import TABLES, format_to_write

    target = Path(options.output)
    if options.output == "-":
        raise DataError.at("-", "data are not written to standard output", "name a file or a store")
    if target.suffix in ("", ".store"):
        check_place(target, options.input)
        store(options.input, target, options)
    else:
        form = format_to_write(target_of(target, options.input))
        found = read(options.input, options)
        rows = getattr(found.X, "X", found.X)
        names, qid = found.names if form in TABLES else None, found.qid if form == "svmlight" else None
        data.save(target, rows, found.y, names=names, qid=qid)
    say(f"wrote {target}")
    return 0

"""Where results go: what stands in the way is found out before the work, not after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from widemargin.data.errors import DataError, because


def target_of(path: str | Path, *sources: str | None) -> Path:
    """A file that can be written, and is none of those that are read."""
    target = Path(path)
    if target.is_dir():
        raise DataError.at(str(target), "a directory", "name a file")
    if target.exists() and not target.is_file():
        raise DataError.at(str(target), "not a regular file", "name another, or leave it out for standard output")
    check_place(target, *sources)
    return target


def check_place(target: Path, *sources: str | None) -> None:
    """Refuses a name in a directory that is not there or closed, and the names of what is read."""
    from tempfile import TemporaryFile  # slow to import

    if not target.parent.is_dir():
        raise DataError.at(str(target), f"there is no directory {target.parent}", "make it first")
    try:
        TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise DataError.at(
            str(target), f"its directory takes no file: {because(error)[0]}", "write elsewhere"
        ) from error
    for source in sources:
        if source is not None and target.exists() and os.path.exists(source) and os.path.samefile(target, source):
            raise DataError.at(str(target), "input and output are the same", "choose another name")


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """What goes wrong while a file is written is said of that file, not of the one beside it that is to become it."""
    try:
        yield
    except OSError as error:
        raise DataError.at(
            str(target), f"it cannot be written: {because(error)[0]}", "make room, or write elsewhere"
        ) from error

"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A new file beside `path` to write to; it takes that name once it is complete and on the disk.

    On any error nothing is left of it. What is no regular file, such as a pipe or a device, is not replaced.
    """
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "not a regular file, so nothing can take its place", str(path))
    beside = path.with_name(f".{path.name[:100]}.{os.urandom(6).hex()}.part")
    beside.touch(exist_ok=False)
    try:
        yield beside
        _to_disk(beside, os.O_RDWR)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name must outlast a power cut as well
        _to_disk(path.parent, os.O_RDONLY | os.O_DIRECTORY)


def _to_disk(path: Path, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

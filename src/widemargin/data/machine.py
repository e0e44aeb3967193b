"""What this process may use of the machine: memory and cores."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from widemargin.data.errors import DataError

#: Of the free memory, data that are held whole may take this share.
SHARE = 0.5

#: Where the system tells: of memory, of the control groups of this process, and of their limits.
INFO, GROUPS, ROOT = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def free_memory() -> float:
    """Bytes, at most: what the machine has left, or what the process is held to if that is less."""
    limits = _limits_of_groups("memory", new=("memory.max",), old=("memory.limit_in_bytes",))
    groups = (int(most) for most, *_ in limits if most.isdigit())
    return float(min((*_left(), *_limits_of_process(), *groups), default=1 << 62))


def cores_at_hand() -> int:
    """The cores that this process may use, or as many as its share of their time makes up."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _share_of_time()))


@cache
def _share_of_time() -> int:
    """In whole cores; it takes files to tell, and seldom changes."""
    limits = _limits_of_groups("cpu", new=("cpu.max",), old=("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    shares = (int(words[0]) / int(words[1]) for words in limits if len(words) == 2 and words[0].isdigit())
    return math.ceil(min(shares, default=1 << 30))


def count_threads(threads: int) -> int:
    """As many as asked for; for 0, one for each core that this process may use."""
    cores = cores_at_hand()
    if threads < 0:
        raise DataError.at("threads", f"{threads} threads", "give a number of at least 1, or 0 for all cores")
    return min(threads, 4 * cores) or cores


def _left() -> Iterator[int]:
    for line in _lines(INFO):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _limits_of_process() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    yield from (limit for limit in limits if limit > 0)


def _limits_of_groups(wanted: str, *, new: tuple[str, ...], old: tuple[str, ...]) -> Iterator[list[str]]:
    """The words in files of these names, of the groups that this process is in, and of the groups that these are in.

    Of the two versions of control groups, the old one has a tree for each kind of limit.
    """
    for line in _lines(GROUPS):
        _, kinds, path = line.split(":", 2)
        if kinds and wanted not in kinds.split(","):
            continue
        group, names = (ROOT / wanted if kinds else ROOT) / path.lstrip("/"), old if kinds else new
        for place in (group, *group.parents):
            if words := " ".join(text for name in names for text in _lines(place / name)).split():
                yield words


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []

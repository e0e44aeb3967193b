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

#: Where the system tells; control groups are of two versions, which have other names for the same limit.
INFO, GROUPS, ROOT = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
MEMORY, CORES = (["memory.max"], ["memory.limit_in_bytes"]), (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"])


def free_memory() -> float:
    """Bytes, at most: what the machine has left, or what the process is held to if that is less."""
    groups = (int(words[0]) for words in _limits_of_groups("memory", MEMORY) if words[0].isdigit())
    return float(min((*_left(), *_limits_of_process(), *groups), default=1 << 62))


def cores_at_hand() -> int:
    """The cores that this process may use, or as many as its share of their time makes up."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _share_of_time()))


@cache
def _share_of_time() -> int:
    """In whole cores; it takes files to tell, and seldom changes."""
    limits = (words for words in _limits_of_groups("cpu", CORES) if len(words) == 2 and words[0].isdigit())
    return min((math.ceil(int(time) / int(period)) for time, period in limits), default=1 << 30)


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


def _limits_of_groups(wanted: str, names: tuple[list[str], list[str]]) -> Iterator[list[str]]:
    """The words in files of these names, of the groups that this process is in, and of the groups that these are in."""
    for line in _lines(GROUPS):
        _, kinds, path = line.split(":", 2)
        if kinds and wanted not in kinds.split(","):
            continue
        group = ROOT / (wanted if kinds else "") / path.lstrip("/")
        for place in (group, *group.parents):
            words = [word for name in names[bool(kinds)] for line in _lines(place / name) for word in line.split()]
            if words:
                yield words


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []

"""What this process may use of the machine: memory and cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from widemargin.data.errors import DataError

#: Of the free memory, data that are held whole may take this share.
SHARE = 0.5

#: Where the system tells; control groups of both versions, by the name that their limit has.
INFO, GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup")
LIMITS = {
    "": (Path("/sys/fs/cgroup"), "memory.max"),
    "memory": (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
}


def free_memory() -> float:
    """Bytes, at most: what the machine has left, or what the process is held to if that is less."""
    return float(min((*_left(), *_limits_of_process(), *_limits_of_groups()), default=1 << 62))


def cores_at_hand() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def _limits_of_groups() -> Iterator[int]:
    """Of the groups that this process is in, and of the groups that these are in."""
    for line in _lines(GROUPS):
        _, kinds, path = line.split(":", 2)
        root, name = next((LIMITS[kind] for kind in kinds.split(",") if kind in LIMITS), (None, ""))
        if root is None:
            continue
        group = root / path.lstrip("/")
        for place in (group, *group.parents):
            yield from (int(limit) for limit in _lines(place / name) if limit.isdigit())


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []

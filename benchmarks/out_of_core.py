"""A store larger than the memory that training may use, beside the same rows in memory.

python benchmarks/out_of_core.py [GB]

Writes a text-like store of that size (2 GiB unless said otherwise) to a temporary directory and trains on it to a
relative gap of 1e-3 by `widemargin train`, which may use a quarter of it: a control group holds it to that, cached
pages of files included, where one can be made (by root). Then the same rows as arrays in memory. Prints the seconds,
the passes and the largest resident size.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np

from widemargin.cli import main as widemargin
from widemargin.data import Dataset
from widemargin.data.store import open_store
from widemargin.data.store_writer import write_store

BYTES_PER_NONZERO, FEATURES, BLOCK = 12, 47_000, 50_000


def rows(gigabytes: float) -> Iterator[Dataset]:
    """Blocks of text-like rows, all labelled by the same weights, until there are enough."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from demo import text_like  # not above: it imports what training on a store does without

    nonzeros, seed, rng = 0, 0, np.random.default_rng(0)
    weights = rng.standard_normal(FEATURES)
    while nonzeros * BYTES_PER_NONZERO < gigabytes * 2**30:
        X, _ = text_like(BLOCK, seed, FEATURES)
        nonzeros, seed = nonzeros + X.nnz, seed + 1
        yield Dataset(X, np.where((X @ weights > 0) ^ (rng.random(BLOCK) < 0.1), 1, -1))


@contextmanager
def group(limit: int) -> Iterator[Path | None]:
    """A control group of that memory, or None where there can be none."""
    for place, name in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        made = Path("/sys/fs/cgroup", place, f"widemargin-{os.getpid()}")
        try:
            made.mkdir()
            (made / name).write_text(str(limit))
        except OSError:
            if made.is_dir():
                made.rmdir()
            continue
        yield made
        made.rmdir()
        return
    yield None


def train(directory: str, cgroup: str) -> None:
    """Trains in this process: by the command line on the store, or on arrays if the group is "none"."""
    if cgroup == "none":
        from widemargin import LinearSVM

        found = open_store(directory)
        X, y, began = found.X.X.copy(), found.y, time.perf_counter()
        svm = LinearSVM().fit(X, y)
        passes, gap = svm.n_iter_, svm.certificate_.relative_gap
    else:
        if cgroup:
            Path(cgroup, "cgroup.procs").write_text(str(os.getpid()))
        began, printed = time.perf_counter(), io.StringIO()
        with tempfile.TemporaryDirectory() as place, redirect_stdout(printed):
            widemargin(["train", directory, "--tol", "1e-3", "-o", f"{place}/model.safetensors", "--json"])
        result = json.loads(printed.getvalue())
        passes, gap = result["iterations"], result["certificate"]["relative_gap"]
    took = time.perf_counter() - began
    status = Path("/proc/self/status").read_text()  # rusage would begin with what the parent had
    peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 2**20
    print(json.dumps({"seconds": took, "passes": passes, "gap": gap, "peak": peak}))


def forget(directory: Path) -> None:
    """Lets the system drop the files from its cache."""
    for file in directory.iterdir():
        with file.open("rb") as open_file:
            os.posix_fadvise(open_file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main() -> None:
    """Writes the store, then one process for each way."""
    if len(sys.argv) == 3:
        train(*sys.argv[1:])
        return
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    limit, took = int(gigabytes / 4 * 2**30), []
    with tempfile.TemporaryDirectory() as place, group(limit) as cgroup:
        store, began = Path(place, "store"), time.perf_counter()
        write_store(store, rows(gigabytes))
        size = sum(file.stat().st_size for file in store.iterdir())
        print(f"store of {size / 2**30:.2f} GiB, made in {time.perf_counter() - began:.0f} s", flush=True)
        held = f"{limit / 2**30:.2f} allowed" if cgroup else "not held to a limit: no control group"
        for name, where in (("on disk", str(cgroup or "")), ("in memory", "none")):
            forget(store)
            command = [sys.executable, __file__, str(store), where]
            done = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            took.append(done["seconds"])
            print(
                f"  {name:9}  {done['seconds']:6.1f} s  {done['passes']:3} passes  relative gap {done['gap']:.1e}  "
                f"at most {done['peak']:.2f} GiB resident" + (f" ({held})" if name == "on disk" else ""),
                flush=True,
            )
        print(f"  on disk against in memory: {np.divide(*took):.2f} ×")


if __name__ == "__main__":
    main()

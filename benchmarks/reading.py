"""Reading svmlight text: ours on one and two threads, scikit-learn's load_svmlight_file and LIBLINEAR's train.

200 MB like text in a bag of words: 70 non-zeros a row with values like 0.0532, made in a temporary directory and read
once before the clock starts, so that all read from memory. LIBLINEAR's program does not read alone: `train -s 3 -e 10
-c 1e-10` stops at once, but its time holds the start of the program, a first pass over the rows and the writing of a
model. Reading is most of it, and nothing is subtracted. Each reader runs in a process of its own; imports do not count.

python benchmarks/reading.py [MEGABYTES]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

REPEATS = 3

OURS = """
import sys, time
from widemargin.data.svmlight import read_svmlight
begin = time.perf_counter()
rows = read_svmlight(sys.argv[1], threads=int(sys.argv[2]))
print(time.perf_counter() - begin)
"""
SCIKIT_LEARN = """
import sys, time
from sklearn.datasets import load_svmlight_file
begin = time.perf_counter()
rows = load_svmlight_file(sys.argv[1])
print(time.perf_counter() - begin)
"""


def make(path: Path, megabytes: float) -> None:
    """Writes rows of 70 rising indices out of 47,236, few of them frequent, until there are so many bytes."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        while file.tell() < megabytes * 1e6:
            lines = []
            for label in rng.choice([-1, 1], 2000):
                drawn = (47_236 * rng.random(110) ** 3).astype(int)
                index = np.unique(drawn)[:70] + 1
                value = rng.random(len(index)) * 0.2 + 0.005
                lines.append(f"{label:+d} " + " ".join(f"{j}:{x:.4f}" for j, x in zip(index, value, strict=True)))
            file.write("\n".join(lines) + "\n")


def python(code: str, *arguments: str) -> float:
    """The best of the seconds that such a process prints."""
    command = [sys.executable, "-c", code, *arguments]
    return min(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(REPEATS)
    )


def program(*command: str) -> float:
    """The best of the seconds that a program takes."""
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "text.svm"
        make(path, float(sys.argv[1]) if len(sys.argv) > 1 else 200)
        size = len(path.read_bytes()) / 1e6
        results = {f"widemargin, {k} thread{'s'[: k - 1]}": python(OURS, str(path), str(k)) for k in (1, 2)}
        ours = results["widemargin, 2 threads"]
        results["scikit-learn"] = python(SCIKIT_LEARN, str(path))
        train = shutil.which("liblinear-train") or shutil.which("train")
        if train:
            model = str(Path(directory) / "model")
            results["LIBLINEAR's train"] = program(train, "-q", "-s", "3", "-e", "10", "-c", "1e-10", str(path), model)
    print(f"{size:.0f} MB of svmlight text; best of {REPEATS}")
    print(f"{'':<24}{'seconds':>9}{'MB/s':>8}{'× ours on 2':>13}")
    for name, seconds in results.items():
        print(f"{name:<24}{seconds:>9.2f}{size / seconds:>8.0f}{seconds / ours:>13.1f}")
    if not train:
        print("LIBLINEAR's train is not on PATH (Debian: liblinear-tools)")


if __name__ == "__main__":
    main()

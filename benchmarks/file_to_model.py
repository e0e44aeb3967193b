"""From a text file to a model, each with its default accuracy: ours, LIBLINEAR's train and Vowpal Wabbit.

python benchmarks/file_to_model.py [MEGABYTES]

200 MB of svmlight text (text-like rows, a tenth of the labels flipped) in a temporary directory. All minimise
½‖w‖² + Σ max(0, 1 − y w·x), without a bias, so that the objectives can be compared: `widemargin train --no-bias`,
`train -s 3`, and `vw --loss_function hinge --passes 10` with the same penalty, on the same rows in its own format. The
time of the whole command counts; the objective is computed from the model that each one writes. A peer that is not
installed (Debian: liblinear-tools; PyPI: vowpalwabbit) is left out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import text_like  # the path comes first

from widemargin import LinearModel
from widemargin.data import Rows, save

ROWS_PER_MEGABYTE, REPEATS = 1517, 5


def objective(w: np.ndarray, scores: np.ndarray, y: np.ndarray) -> float:
    """½‖w‖² + Σ max(0, 1 − y·score)."""
    return float(w @ w / 2 + np.maximum(0.0, 1 - y * scores).sum())


def seconds(command: list[str], directory: Path) -> float:
    """The best of some runs of a command."""
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        took.append(time.perf_counter() - began)
    return min(took)


def of_model(name: Path, rows: Rows, y: np.ndarray) -> float:
    """The objective of a model that we or LIBLINEAR wrote."""
    model = LinearModel.load(name)
    w = np.zeros(rows.d)
    w[: model.coef.shape[1]] = model.coef[0]
    return objective(w, rows.scores(w), y)


def of_wabbit(vw: list[str], directory: Path, y: np.ndarray) -> float:
    """The objective of Vowpal Wabbit's model: its weights as text, its scores before they are cut to [−1, 1]."""
    show = [*vw, "-t", "-i", "vw.model", "-d", "x.vw", "-r", "scores", "--readable_model", "weights"]
    subprocess.run(show, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    weights = re.findall(r"^\d+:(-?[0-9.]\S*)$", (directory / "weights").read_text(), re.MULTILINE)
    w = np.array(weights, dtype=float)
    scores = np.array(
        [float(line.split()[0].split(":")[-1]) for line in (directory / "scores").read_text().splitlines()]
    )
    return objective(w, scores, y)


def main() -> None:
    """Prints the table."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 200.0
    X, y = text_like(int(ROWS_PER_MEGABYTE * megabytes), 0, 47_000)
    X.data = np.round(X.data, 4)
    rows = Rows(X, 2)
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        save(directory / "x.svm", X, y)
        size = (directory / "x.svm").stat().st_size / 1e6
        results = {}
        command = [sys.executable, "-m", "widemargin", "train", "x.svm", "--no-bias", "-o", "ours.safetensors"]
        results["widemargin train"] = seconds(command, directory), of_model(directory / "ours.safetensors", rows, y)
        train = shutil.which("liblinear-train") or shutil.which("train")
        if train:
            took = seconds([train, "-s", "3", "-q", "x.svm", "theirs.model"], directory)
            results["LIBLINEAR train -s 3"] = took, of_model(directory / "theirs.model", rows, y)
        if find_spec("vowpalwabbit"):
            with (directory / "x.svm").open() as lines, (directory / "x.vw").open("w") as file:
                file.writelines(line.replace(" ", " | ", 1) for line in lines)
            vw = [sys.executable, "-m", "vowpalwabbit", "--quiet", "--noconstant"]
            penalty = ["--l2", repr(1 / len(y)), "--loss_function", "hinge"]
            learn = [
                *vw,
                *penalty,
                "--passes",
                "10",
                "-c",
                "-k",
                "--holdout_off",
                "-b",
                "18",
                "-d",
                "x.vw",
                "-f",
                "vw.model",
            ]
            results["vw, hinge, 10 passes"] = seconds(learn, directory), of_wabbit(vw, directory, y)
    ours, lowest = results["widemargin train"][0], min(value for _, value in results.values())
    print(f"{size:.0f} MB of svmlight text, {X.shape[0]:,} rows; best of {REPEATS}")
    print(f"{'':<24}{'seconds':>9}{'× ours':>9}{'objective':>14}{'above the lowest':>19}")
    for name, (took, value) in results.items():
        print(f"{name:<24}{took:>9.2f}{took / ours:>9.1f}{value:>14.2f}{value / lowest - 1:>19.1e}")


if __name__ == "__main__":
    main()

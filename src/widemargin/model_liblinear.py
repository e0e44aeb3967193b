"""Models in LIBLINEAR's text format, read and written.

    solver_type L2R_L1LOSS_SVC_DUAL
    nr_class 2
    label 1 -1
    nr_feature 3
    bias 1
    w
    0.5
    …

A line of weights per feature, with one column per class in the order of `label`; two classes have a single column,
whose positive side is the first label. If bias ≥ 0 there is one more line at the end, for a feature that is always
`bias`. (LIBLINEAR 2.x, linear.cpp: save_model, load_model, predict_values. MCSVM_CS has two columns for two classes, of
which predictions use the first.)
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from widemargin.model_files import LIBLINEAR_WORDS, ModelError, model_file

if TYPE_CHECKING:
    from widemargin.model import LinearModel

#: The solver that we write for a loss.
SOLVER_OF = {"hinge": "L2R_L1LOSS_SVC_DUAL", "squared_hinge": "L2R_L2LOSS_SVC_DUAL", "logistic": "L2R_LR"}
#: The loss of every classifier among LIBLINEAR's solvers; Crammer and Singer's is none of ours.
LOSS_OF = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "MCSVM_CS": None,
}
REGRESSIONS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
#: Lines of the head are at most this long: room for the labels of 80,000 classes.
LONGEST_LINE = 1 << 20
#: LIBLINEAR keeps labels as C's int.
LABELS = range(-(2**31), 2**31)


def save(model: LinearModel, path: Path) -> None:
    """Write the weights, the biases and the classes, which must be whole numbers; the format has no room for more."""
    labels = check(model.loss, model.classes, path)
    assert model.loss is not None
    head = {
        "solver_type": SOLVER_OF[model.loss],
        "nr_class": len(labels),
        "label": " ".join(map(str, labels[::-1] if len(labels) == 2 else labels)),
        "nr_feature": model.coef.shape[1],
        "bias": 1 if model.intercept.any() else -1,
    }
    lines = [model.coef.T, model.intercept[None]] if model.intercept.any() else [model.coef.T]
    with model_file(path) as file:
        file.write("".join(f"{word} {value}\n" for word, value in head.items()).encode() + b"w\n")
        form = b"%.17g " * len(model.coef) + b"\n"
        for weights in lines:
            for line in weights:
                file.write(form % tuple(line.tolist()))


def check(loss: str | None, classes: NDArray[Any], path: Path) -> list[int]:
    """The labels of a model that the format has room for; an error if it has none."""
    if loss not in SOLVER_OF:
        raise ModelError(
            f"{path}: LIBLINEAR has no solver for a model with loss={loss!r}; save as safetensors, or name one "
            f"of {', '.join(map(repr, SOLVER_OF))} by dataclasses.replace(model, loss=…)"
        )
    return _labels(classes, path)


def _labels(classes: NDArray[Any], path: Path) -> list[int]:
    """The classes as C's int."""
    numbers = classes.dtype.kind in "iuf"
    for label in classes.tolist():
        if not numbers or label != label // 1 or int(label) not in LABELS:
            raise ModelError(
                f"{path}: the class {label!r} is no label for LIBLINEAR, which has whole numbers of 32 bits; number "
                "the classes before you train, or save as safetensors"
            )
    return [int(label) for label in classes.tolist()]


def load(path: Path) -> dict[str, Any]:
    """The fields of the model: the bias times its weight is the intercept, the classes ascend.

    Of two classes the second is the positive one, as everywhere here; where the first label is the smaller one, that
    takes a change of sign. (Where scores are equal, as for an empty row without a bias, LIBLINEAR's answer depends on
    the order of its labels, ours on that of the classes.)
    """
    with path.open("rb") as file:
        lines = _Lines(path, file)
        head = _head(lines)
        solver = _solver(head, lines)
        labels = _read_labels(head, lines)
        d = _whole(head, "nr_feature", lines)
        if d < 1:
            lines.fail(f"nr_feature is {d}; a model has at least one feature", "nr_feature", head)
        bias = _bias(head, lines)
        width = 1 if len(labels) == 2 and solver != "MCSVM_CS" else len(labels)
        weights = _weights(lines, d + (bias >= 0), width)
        if bias > 0 and np.abs(weights[:, d]).max() > sys.float_info.max / max(bias, 1):
            lines.fail("bias times its weight is beyond any number; train the model again", "bias", head)
    if len(labels) == 2:  # Crammer and Singer's second column is the first with its sign changed
        weights = weights[:1] if labels[0] > labels[1] else -weights[:1]
    elif labels != sorted(labels):
        weights = weights[np.argsort(labels)]
    return {
        "coef": weights[:, :d],
        "intercept": weights[:, d] * bias if bias >= 0 else np.zeros(len(weights)),
        "classes": np.sort(np.array(labels, dtype=np.int64)),
        "loss": LOSS_OF[solver],
    }


class _Lines:
    """The lines of a file, counted, and never one that is too long to be right."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file, self.number = path, file, 0

    def next(self, longest: int = LONGEST_LINE) -> bytes:
        """The next line, empty at the end of the file."""
        line = self.file.readline(longest)
        self.number += 1
        if len(line) == longest and not line.endswith(b"\n"):
            self.fail(f"a line of more than {longest:,} bytes; this is no model of LIBLINEAR, or a damaged one")
        return line

    def left(self) -> int:
        """How many bytes follow."""
        return self.path.stat().st_size - self.file.tell()

    def fail(self, what: str, word: str = "", head: _Head | None = None) -> NoReturn:
        """Raise for the line of that word of the head, or for the line last read."""
        number = head[word][0] if head is not None else self.number
        raise ModelError(f"{self.path}:{number}: {what}")


#: Each word of the head: the line it stands on, and what follows it there.
_Head = dict[str, tuple[int, list[bytes]]]


def _head(lines: _Lines) -> _Head:
    """All lines above the weights."""
    head: _Head = {}
    while True:
        line = lines.next()
        if not line:
            lines.fail("the file ends before its weights, which stand below a line 'w'; copy or save it again")
        word, *values = line.split() or [b""]
        name = word.decode("ascii", "replace")
        if not word:
            continue
        if name not in LIBLINEAR_WORDS:
            lines.fail(f"{name[:40]!r} is no word of LIBLINEAR's; expected {', '.join(LIBLINEAR_WORDS)}")
        if name in head:
            lines.fail(f"{name} stands here and on line {head[name][0]}; keep one of them")
        head[name] = lines.number, values
        if name == "w":
            break
    for needed in ("solver_type", "nr_class", "label", "nr_feature", "bias"):
        if needed == "label" and head["solver_type"][1][:1] not in [[name.encode()] for name in LOSS_OF]:
            continue  # regression has none, and gets an error of its own
        if needed not in head:
            lines.fail(f"no line {needed} above the weights; copy or save the model again")
    return head


def _only(head: _Head, word: str, lines: _Lines) -> str:
    values = head[word][1]
    if len(values) != 1:
        lines.fail(f"{word} has {len(values)} values; it must have one", word, head)
    return values[0].decode("ascii", "replace")


def _whole(head: _Head, word: str, lines: _Lines) -> int:
    text = _only(head, word, lines)
    if not re.fullmatch(r"[0-9]{1,19}", text):
        lines.fail(f"{word} is {text[:40]!r}; it must be a whole number", word, head)
    return int(text)


def _solver(head: _Head, lines: _Lines) -> str:
    """The solver, if it is one for classification."""
    name = _only(head, "solver_type", lines)
    if name in REGRESSIONS:
        lines.fail(f"{name} is a regression, which has no classes; train a classifier (-s 0 to 7)", "solver_type", head)
    if name == "ONECLASS_SVM":
        lines.fail(
            "ONECLASS_SVM looks for outliers and has no classes; train a classifier (-s 0 to 7)", "solver_type", head
        )
    if name not in LOSS_OF:
        lines.fail(f"unknown solver {name[:40]!r}; expected one of {', '.join(LOSS_OF)}", "solver_type", head)
    return name


def _read_labels(head: _Head, lines: _Lines) -> list[int]:
    count, texts = _whole(head, "nr_class", lines), head["label"][1]
    if count != len(texts):
        lines.fail(f"{len(texts)} labels, but nr_class is {count}; copy or save the model again", "label", head)
    if count < 2:
        lines.fail(f"nr_class is {count}; a classifier has two classes or more", "nr_class", head)
    labels = []
    for text in texts:
        if not re.fullmatch(rb"[+-]?[0-9]{1,10}", text) or int(text) not in LABELS:
            shown = text[:40].decode("ascii", "replace")
            lines.fail(f"the label {shown!r} is not a whole number of 32 bits; number the classes", "label", head)
        labels.append(int(text))
    if len(set(labels)) < count:
        lines.fail("a label stands twice; every class needs its own", "label", head)
    return labels


def _bias(head: _Head, lines: _Lines) -> float:
    text = _only(head, "bias", lines)
    try:
        bias = float(text)
    except ValueError:
        bias = math.nan
    if not math.isfinite(bias):
        lines.fail(f"bias is {text[:40]!r}, not a finite number; it is -1 for none, and mostly 1", "bias", head)
    return bias


def _weights(lines: _Lines, height: int, width: int) -> NDArray[np.float64]:
    """The lines below 'w' as columns: no more is allocated than the rest of the file can fill."""
    if height * width * 2 > lines.left() + 1:
        lines.fail(
            f"{height:,} × {width:,} weights should follow, but only {lines.left():,} bytes do; the file is cut short, "
            "or nr_feature or nr_class is wrong"
        )
    weights = np.empty((width, height))
    longest = 64 * width + 64
    for row in range(height):
        line = lines.next(longest)
        texts = line.split()
        if len(texts) != width:
            lines.fail(
                f"{len(texts)} weights where {width} should be; the file is cut short or damaged: copy or save it again"
            )
        try:
            numbers = [] if b"_" in line else list(map(float, texts))  # 1_000 is a number to Python alone
        except ValueError:
            numbers = []
        if not numbers or not all(map(math.isfinite, numbers)):
            lines.fail("a weight that is not a finite number; train the model again")
        weights[:, row] = numbers
    while line := lines.next(longest):
        if line.strip():
            lines.fail(
                f"more than the {height:,} lines of weights that nr_feature and bias ask for; save the model again"
            )
    return weights

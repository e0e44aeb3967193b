"""Kernel models in LIBSVM's text format, read and written.

    svm_type c_svc
    kernel_type rbf
    gamma 0.5
    nr_class 2
    total_sv 3
    rho 0.25
    label 1 -1
    nr_sv 2 1
    SV
    0.5 1:0.1 3:2
    …

A line per support vector, grouped by class in the order of `label`, and in front of it its coefficients, one less than
classes: a support vector of class i has that of the pair (i, j) in column j − 1 if i < j, else in column j. For every
pair, in the order (0, 1), (0, 2), …, Σ coef·k − rho > 0 speaks for the first of its labels. The number of
features is not said. svm-train writes values with 8 digits. (LIBSVM 3, svm.cpp: svm_save_model, svm_load_model,
svm_predict_values.)
"""

from __future__ import annotations

import io
import math
import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from widemargin.data import DataError, Rows
from widemargin.data.errors import printable
from widemargin.data.rows import as_csr
from widemargin.data.svmlight import read_svmlight
from widemargin.kernels import Kernel
from widemargin.model_files import LIBSVM_WORDS, ModelError, model_file

if TYPE_CHECKING:
    from widemargin.model_kernel import KernelModel

Floats = NDArray[np.float64]

#: LIBSVM's names of our kernels; it has no others, but for one that is given as a matrix.
NAME_OF = {"linear": "linear", "poly": "polynomial", "rbf": "rbf", "sigmoid": "sigmoid"}
KERNEL_OF = {theirs: ours for ours, theirs in NAME_OF.items()}
#: The parameters that a kernel has in the head of a file.
PARAMETERS = {
    "linear": (),
    "poly": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}
WORDS = (*LIBSVM_WORDS, "nr_class", "rho", "label", "prob_density_marks")
NEEDED = ("kernel_type", "nr_class", "total_sv", "rho", "label", "nr_sv")
#: Lines of the head are at most this long: room for the rho of 1,000 classes.
LONGEST_LINE = 1 << 24
#: LIBSVM keeps labels and indices as C's int.
LABELS, LARGEST_INDEX = range(-(2**31), 2**31), 2**31 - 1


def save(model: KernelModel, path: Path) -> None:
    """Write kernel, support vectors, coefficients, biases and classes; the format has no room for more."""
    labels = check(model.kernel.name, model.classes, path)
    coef, bias = model.dual_coef, model.intercept
    order = np.arange(len(labels)) if model.tie_order is None else np.array(model.tie_order)
    if len(labels) == 2:  # the larger label first: then a score of 0 is the other one's, as it is here
        order = np.array([1, 0])
        coef, bias = -coef, -bias
    coef, bias, counts, places = reordered(coef, bias, model.n_support, order)
    kernel = model.kernel
    numbers = {
        "degree": str(int(kernel.degree)),
        "gamma": repr(float(kernel.gamma)),
        "coef0": repr(float(kernel.coef0)),
    }
    head = {
        "svm_type": "c_svc",
        "kernel_type": NAME_OF[kernel.name],
        **{word: numbers[word] for word in PARAMETERS[kernel.name]},
        "nr_class": len(labels),
        "total_sv": len(places),
        "rho": " ".join(map(repr, (0.0 - bias).tolist())),
        "label": " ".join(str(labels[k]) for k in order),
        "nr_sv": " ".join(map(str, counts.tolist())),
    }
    rows = as_csr(model.support_vectors)[places]
    first = 0 if model.zero_based else 1
    with model_file(path) as file:
        file.write("".join(f"{word} {value}\n" for word, value in head.items()).encode() + b"SV\n")
        for i, (begin, end) in enumerate(zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)):
            pairs = zip((rows.indices[begin:end] + first).tolist(), rows.data[begin:end].tolist(), strict=True)
            words = [*map(repr, coef[:, i].tolist()), *(f"{j}:{x!r}" for j, x in pairs)]
            file.write(" ".join(words).encode() + b" \n")


def check(kernel: str, classes: NDArray[Any], path: Path) -> list[int]:
    """The labels of a model that the format has room for; an error if it has none."""
    if kernel not in NAME_OF:
        raise ModelError(
            f"{path}: LIBSVM has no kernel {kernel!r}; save as safetensors, or train with one of "
            f"{', '.join(map(repr, NAME_OF))}"
        )
    for label in classes.tolist():
        if classes.dtype.kind not in "iuf" or label != label // 1 or int(label) not in LABELS:
            raise ModelError(
                f"{path}: the class {label!r} is no label for LIBSVM, which has whole numbers of 32 bits; number the "
                "classes before you train, or save as safetensors"
            )
    return [int(label) for label in classes.tolist()]


def reordered(
    coef: Floats, bias: Floats, counts: NDArray[np.int64], order: NDArray[np.intp]
) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.intp]]:
    """Coefficients, biases and numbers of support vectors for the classes in another order, class a being order[a]
    before, and the place that each support vector had. A pair whose classes change places changes its sign.
    """
    k, starts = len(counts), np.append(0, np.cumsum(counts))
    blocks = [np.arange(starts[c], starts[c + 1]) for c in order]
    places, ends = np.concatenate(blocks), np.append(0, np.cumsum(counts[order]))
    pair = {both: at for at, both in enumerate(combinations(range(k), 2))}
    new_coef, new_bias = np.zeros_like(coef), np.zeros_like(bias)
    for (a, b), at in pair.items():
        i, j = int(order[a]), int(order[b])
        sign = 1.0 if i < j else -1.0
        new_bias[at] = sign * bias[pair[min(i, j), max(i, j)]]
        new_coef[b - 1, ends[a] : ends[a + 1]] = sign * coef[j - 1 if i < j else j, blocks[a]]
        new_coef[a, ends[b] : ends[b + 1]] = sign * coef[i - 1 if j < i else i, blocks[b]]
    return new_coef, new_bias, counts[order], places


def load(path: Path) -> dict[str, Any]:
    """The fields of the model; the classes ascend, and of two a positive score speaks for the second."""
    with path.open("rb") as file:
        head = _Head(path, file)
        kernel = _kernel(head)
        labels = _labels(head)
        k = len(labels)
        counts = np.array(head.whole_numbers("nr_sv", k), dtype=np.int64)
        total = head.whole_numbers("total_sv", 1)[0]
        if int(counts.sum()) != total or total < 1:
            head.fail(f"nr_sv adds up to {int(counts.sum()):,}, total_sv is {total:,}; copy or save it again", "nr_sv")
        bias = 0.0 - np.array(head.numbers("rho", k * (k - 1) // 2))
        coef, rows, zero_based = _vectors(head, file, k, total)
    order = np.argsort(labels)
    coef, bias, counts, places = reordered(coef, bias, counts, order)
    sign = -1.0 if k == 2 else 1.0
    return {
        "support_vectors": rows[places],
        "dual_coef": sign * coef,
        "intercept": sign * bias,
        "n_support": counts,
        "classes": np.sort(np.array(labels, dtype=np.int64)),
        "kernel": kernel,
        "zero_based": zero_based,
        "tie_order": None if k == 2 or labels == sorted(labels) else tuple(np.argsort(order).tolist()),
    }


class _Head:
    """The lines above the support vectors: each word, the line it stands on, and what follows it there."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.lines = path, 0
        self.said: dict[str, tuple[int, list[bytes]]] = {}
        while "SV" not in self.said:
            line = file.readline(LONGEST_LINE)
            self.lines += 1
            if not line:
                self.fail("the file ends before its support vectors, below a line 'SV'; copy or save it again")
            if len(line) == LONGEST_LINE:
                self.fail(f"a line of more than {LONGEST_LINE:,} bytes; this is no model of LIBSVM, or a damaged one")
            if not (words := line.split()):
                continue
            name = words[0].decode("ascii", "replace")
            if name not in WORDS:
                self.fail(f"'{printable(name)}' is no word of LIBSVM's; expected {', '.join(WORDS)}")
            if name in self.said:
                self.fail(f"{name} stands here and on line {self.said[name][0]}; keep one of them")
            self.said[name] = self.lines, words[1:]
        svm = self.text("svm_type") if "svm_type" in self.said else ""
        if svm not in ("c_svc", "nu_svc"):
            what = f"svm_type is '{printable(svm)}', which has no classes" if svm else "no line svm_type"
            self.fail(f"{what}; train a classifier (-s 0 or 1)", "svm_type" if svm else "")
        for needed in NEEDED:
            if needed not in self.said:
                self.fail(f"no line {needed} above the support vectors; copy or save the model again")

    def fail(self, what: str, word: str = "") -> NoReturn:
        """Raise for the line of that word, or for the line last read."""
        raise ModelError(f"{self.path}:{self.said[word][0] if word else self.lines}: {what}")

    def text(self, word: str) -> str:
        """The only value of a line."""
        values = self.said[word][1]
        if len(values) != 1:
            self.fail(f"{word} has {len(values)} values; it must have one", word)
        return values[0].decode("ascii", "replace")

    def whole_numbers(self, word: str, count: int) -> list[int]:
        """So many whole numbers, none negative."""
        values = self.said[word][1]
        if len(values) != count or not all(re.fullmatch(rb"[0-9]{1,15}", value) for value in values):
            self.fail(
                f"{word} must be {count:,} whole number{'s' if count > 1 else ''} ≥ 0; save the model again", word
            )
        return [int(value) for value in values]

    def numbers(self, word: str, count: int) -> list[float]:
        """So many finite numbers."""
        found = finite(self.said[word][1])
        if found is None or len(found) != count:
            self.fail(f"{word} must be {count:,} finite number{'s' if count > 1 else ''}; save the model again", word)
        return found


def finite(texts: list[bytes]) -> list[float] | None:
    """The numbers that they are; None if one of them is none, or not finite."""
    try:
        numbers = list(map(float, texts))
    except ValueError:
        return None
    # 1_000 is a number to Python alone
    return numbers if all(map(math.isfinite, numbers)) and not any(b"_" in text for text in texts) else None


def _kernel(head: _Head) -> Kernel:
    theirs = head.text("kernel_type")
    if theirs == "precomputed":
        head.fail("a precomputed kernel, whose values are not in the file; train with -t 0 to 3", "kernel_type")
    if theirs not in KERNEL_OF:
        head.fail(f"unknown kernel '{printable(theirs)}'; expected {', '.join(KERNEL_OF)}", "kernel_type")
    name, numbers = KERNEL_OF[theirs], {}
    for word in PARAMETERS[name]:
        if word not in head.said:
            head.fail(f"no line {word}, which the {theirs} kernel needs; copy or save the model again")
        found: float = head.whole_numbers(word, 1)[0] if word == "degree" else head.numbers(word, 1)[0]
        numbers[word] = found
    try:
        return Kernel(name, **numbers)  # type: ignore[arg-type]  # degree is whole
    except (ValueError, OverflowError) as error:
        head.fail(f"{printable(str(error), 100)}; train the model again", "kernel_type")


def _labels(head: _Head) -> list[int]:
    count, texts = head.whole_numbers("nr_class", 1)[0], head.said["label"][1]
    if count < 2:
        head.fail(f"nr_class is {count}; a classifier has two classes or more", "nr_class")
    if count != len(texts):
        head.fail(f"{len(texts)} labels, but nr_class is {count}; copy or save the model again", "label")
    labels = []
    for text in texts:
        if not re.fullmatch(rb"[+-]?[0-9]{1,10}", text) or int(text) not in LABELS:
            shown = printable(text.decode("ascii", "replace"))
            head.fail(f"the label '{shown}' is not a whole number of 32 bits; number the classes", "label")
        labels.append(int(text))
    if len(set(labels)) < count:
        head.fail("a label stands twice; every class needs its own", "label")
    return labels


def _vectors(head: _Head, file: BinaryIO, k: int, total: int) -> tuple[Floats, Any, bool]:
    """Coefficients and support vectors, and whether their indices count from 0.

    The last coefficient of a line and what follows is a line of svmlight, which the compiled parser reads.
    """
    first, rest = [], io.BytesIO()
    above = head.lines
    for line in file:
        head.lines += 1
        *words, tail = line.split(None, k - 2) or [b"\n"]
        numbers = finite(words)
        if line.strip() and (len(words) != k - 2 or numbers is None):
            head.fail(f"a support vector begins with {k - 1} finite numbers, its coefficients; copy or save it again")
        if line.strip():
            first.append(numbers)
        rest.write(tail if tail.endswith(b"\n") else tail + b"\n")
    rest.seek(0)
    if len(first) != total:
        head.fail(f"{len(first):,} support vectors, but total_sv is {total:,}; the file is cut short or damaged")
    try:
        parsed = read_svmlight(rest, threads=1)
    except DataError as error:
        head.lines = above + (error.line or 0)
        head.fail(f"{error.what}; copy or save the model again")
    if parsed.X.shape[0] != total or parsed.X.shape[1] > LARGEST_INDEX or parsed.qid is not None:
        head.fail("a support vector that is not `index:value …` with indices of 32 bits; copy or save the model again")
    rows = Rows(parsed.X).X
    if not rows.shape[1]:  # all support vectors are 0
        rows.resize(total, 1)
    coef = np.column_stack([np.array(first, dtype=np.float64).reshape(total, k - 2), parsed.y])
    return np.ascontiguousarray(coef.T), rows, parsed.zero_based

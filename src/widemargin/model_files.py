"""What files of models have in common: their error, what they are by their first bytes, and how they are written."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from widemargin.whole_files import written_aside

#: So many bytes tell one kind of file from another.
HEAD = 64
#: The words that a line of the head of a LIBLINEAR model may begin with.
LIBLINEAR_WORDS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho", "w")
#: Those of LIBSVM that LIBLINEAR does not have.
LIBSVM_WORDS = ("svm_type", "kernel_type", "degree", "gamma", "coef0", "total_sv", "nr_sv", "probA", "probB", "SV")
#: How files that are often mistaken for models begin, and what they are.
STRANGERS = (
    (rb"\x80[\x01-\x05]", "a pickle, which could run any code; load it where it was made, and save it from there"),
    (rb"\x93NUMPY", "a NumPy array; save a model with LinearModel.save"),
    (rb"PK\x03\x04", "a zip archive, such as .npz or skops; save a model with LinearModel.save"),
    (rb"\x1f\x8b|BZh|\x28\xb5\x2f\xfd|\x78[\x01\x5e\x9c\xda]", "a compressed file; decompress it first"),
    (rb"PAR1|ARROW1", "a table, not a model; train on it first"),
    (rb"[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s+([0-9]+:|qid:)", "svmlight data, not a model; train on it first"),
)


class ModelError(ValueError):
    """A file that is no model, or a model that does not fit into a file: `file: what is wrong; what to do`."""


def kind(path: Path) -> str:
    """One of "safetensors", "liblinear" or "libsvm", by the first bytes; else an error that says what it is."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ModelError(f"{path}: a directory, not a model; give the file itself")
    if not stat.S_ISREG(mode):
        raise ModelError(f"{path}: not a regular file; copy the model to one first")
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not head:
        raise ModelError(f"{path}: an empty file; save the model again")
    if head[8:9] == b"{":  # after the length of the header, whose bytes may be any
        return "safetensors"
    first = head.split(maxsplit=1)[0] if head.strip() else b""
    if first in [word.encode() for word in LIBLINEAR_WORDS]:
        return "liblinear"
    if first in [word.encode() for word in LIBSVM_WORDS]:
        return "libsvm"
    for beginning, what in STRANGERS:
        if re.match(beginning, head):
            raise ModelError(f"{path}: {what}")
    raise ModelError(
        f"{path}: neither a safetensors file nor a model of LIBLINEAR or LIBSVM; save one with LinearModel.save"
    )


@contextmanager
def model_file(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the name `path` once it is complete."""
    if path.exists() and not path.is_file():
        raise ModelError(f"{path}: not a regular file, so no model can take its place; choose another name")
    with written_aside(path) as beside, beside.open("wb") as file:
        yield file

"""Models as one safetensors file: the arrays as they are in memory, and all else as JSON.

The arrays of a linear model are `coef` of shape (1 or classes, features) and `intercept`, both float64. The metadata
has one entry, "widemargin", whose text is JSON:

    {"format": 1, "version": "0.1.0", "classes": {"type": "int", "values": [0, 1]}, "feature_names": null,
     "encoding": null, "loss": "hinge", "C": 1.0, "certificate": {…}}

The arrays of a kernel model are `dual_coef` of shape (classes − 1, support vectors), `intercept` with a number
per pair of classes, both float64, and `n_support`, int64, with a number per class. The support vectors are
`support_vectors`, of shape (support vectors, features), or CSR in `data`, `indices` and `indptr`; float32 or float64,
indices int32 or int64. Its JSON has no loss, but

    "kernel": {"name": "rbf", "gamma": 0.5, "degree": 3, "coef0": 0.0}, "columns": 13, "break_ties": false,
    "tie_order": null

One entry, since the order of several is left to chance, and equal models should be equal files. Numbers that JSON does
not have are the texts "inf", "-inf" and "nan". Loading runs no code, and looks at every size before it makes room.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data import Rows
from widemargin.data.errors import printable
from widemargin.data.rows import csr_of
from widemargin.kernels import Kernel
from widemargin.model_files import ModelError, model_file

if TYPE_CHECKING:
    from widemargin.model import LinearModel
    from widemargin.model_kernel import KernelModel

#: The version of the format; files of a later one are refused.
FORMAT = 1
#: The longest header that safetensors reads.
LONGEST_HEADER = 100_000_000
#: The types of classes, and what JSON makes of them.
TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}


def save(model: LinearModel | KernelModel, path: Path) -> None:
    """Write the whole model; equal models make equal files."""
    from widemargin import __version__

    package = _package()
    kernel = getattr(model, "kernel", None)
    try:
        text = json.dumps(
            {
                "format": FORMAT,
                "version": __version__,
                "classes": _typed(model.classes, path),
                "feature_names": model.feature_names,
                "encoding": model.encoding,
                **({"loss": model.loss} if kernel is None else _about_kernel(model)),
                "C": plain_number(model.C),
                "certificate": model.certificate,
                "zero_based": model.zero_based,
            },
            allow_nan=False,
        )
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"{path}: the encoding or the certificate is not plain JSON ({error}); use dicts, lists, texts and finite "
            "numbers"
        ) from None
    names = ("coef", "intercept") if kernel is None else ("dual_coef", "intercept")
    arrays = {name: np.ascontiguousarray(getattr(model, name), dtype="<f8") for name in names}
    if kernel is not None:
        arrays |= _kernel_arrays(model)
    # Once more as JSON, this text is the header, but for a few hundred bytes around it.
    if len(json.dumps(text)) > LONGEST_HEADER - 1000:
        raise ModelError(
            f"{path}: names and metadata take more than the {LONGEST_HEADER:,} bytes that safetensors allows; leave "
            "the feature names out, or use shorter ones"
        )
    content = package.numpy.save(arrays, {"widemargin": text})
    with model_file(path) as file:
        file.write(content)


def _about_kernel(model: Any) -> dict[str, Any]:
    """What only kernel models have, as JSON."""
    kernel = model.kernel
    numbers = {"gamma": float(kernel.gamma), "degree": int(kernel.degree), "coef0": float(kernel.coef0)}
    return {
        "kernel": {"name": kernel.name, **numbers},
        "columns": model.columns,
        "break_ties": bool(model.break_ties),
        "tie_order": model.tie_order,
    }


def _kernel_arrays(model: Any) -> dict[str, NDArray[Any]]:
    """The support vectors and how many of them each class has."""
    counts = {"n_support": np.ascontiguousarray(model.n_support, dtype="<i8")}
    X = model.support_vectors
    kind = "<f4" if X.dtype == np.float32 else "<f8"
    if isinstance(X, np.ndarray):
        return counts | {"support_vectors": np.ascontiguousarray(X, dtype=kind)}
    index = "<i4" if max(X.nnz, X.shape[1]) < 1 << 31 else "<i8"
    return counts | {
        "data": np.ascontiguousarray(X.data, dtype=kind),
        "indices": np.ascontiguousarray(X.indices, dtype=index),
        "indptr": np.ascontiguousarray(X.indptr, dtype=index),
    }


def load(path: Path) -> dict[str, Any]:
    """The fields of the model, each of the right type and size; with a "kernel" if it is a kernel model."""
    package = _package()
    _check_length(path)
    try:
        with package.safe_open(path, framework="numpy") as file:
            fields = _fields(path, file.metadata())
            if "kernel" in fields:
                return fields | _support_vectors(path, file, len(fields["classes"]), fields.pop("columns"))
            heights = 1 if len(fields["classes"]) == 2 else len(fields["classes"])
            names = sorted(file.keys())
            if names != ["coef", "intercept"]:
                shown = printable(", ".join(names[:5]), 100)
                raise ModelError(f"{path}: has the arrays '{shown}'; a linear model has 'coef' and 'intercept' only")
            _check_array(path, "coef", file.get_slice("coef"), [heights, None])
            _check_array(path, "intercept", file.get_slice("intercept"), [heights])
            fields |= {name: file.get_tensor(name) for name in names}
    except package.SafetensorError as error:
        why = printable(str(error).removeprefix("Error while deserializing header: "), 100)
        raise ModelError(f"{path}: a damaged safetensors file ({why}); copy or save it again") from None
    return fields


def _support_vectors(path: Path, file: Any, k: int, columns: int) -> dict[str, Any]:
    """The arrays of a kernel model of k classes."""
    names = set(file.keys())
    sparse = names == {"dual_coef", "intercept", "n_support", "data", "indices", "indptr"}
    if not sparse and names != {"dual_coef", "intercept", "n_support", "support_vectors"}:
        shown = printable(", ".join(sorted(names)[:7]), 100)
        raise ModelError(
            f"{path}: has the arrays '{shown}'; a kernel model has 'dual_coef', 'intercept', 'n_support' and "
            "'support_vectors', or 'data', 'indices' and 'indptr' in place of the last"
        )
    _check_array(path, "n_support", file.get_slice("n_support"), [k], ("I64",))
    n_support = file.get_tensor("n_support")
    if n_support.min() < 0 or not 0 < (count := sum(n_support.tolist())) < 1 << 62:
        raise ModelError(f"{path}: its n_support are no numbers of support vectors; save the model again")
    _check_array(path, "dual_coef", file.get_slice("dual_coef"), [k - 1, count])
    _check_array(path, "intercept", file.get_slice("intercept"), [k * (k - 1) // 2])
    kinds, places = ("F64", "F32"), ("I32", "I64")
    if sparse:
        stored = file.get_slice("data").get_shape()
        _check_array(path, "data", file.get_slice("data"), [None], kinds, empty=True)
        _check_array(path, "indices", file.get_slice("indices"), stored, places, empty=True)
        _check_array(path, "indptr", file.get_slice("indptr"), [count + 1], places)
        values, indices, starts = (file.get_tensor(name) for name in ("data", "indices", "indptr"))
        vectors = csr_of(values, indices, starts, columns)
    else:
        _check_array(path, "support_vectors", file.get_slice("support_vectors"), [count, columns], kinds)
        vectors = file.get_tensor("support_vectors")
    try:
        vectors = Rows(vectors).X  # looks at every index
    except ValueError as error:
        raise ModelError(f"{path}: its support vectors are damaged ({error}); copy or save it again") from None
    return {
        "support_vectors": vectors,
        "n_support": n_support,
        **{name: file.get_tensor(name) for name in ("dual_coef", "intercept")},
    }


def _check_length(path: Path) -> None:
    """The first eight bytes are the length of the header; most damaged files end before it does."""
    with path.open("rb") as file:
        claimed = int.from_bytes(file.read(8), "little")
    size = path.stat().st_size
    if claimed > size - 8:
        raise ModelError(
            f"{path}: a header of {claimed:,} bytes in a file of {size:,}, so it is cut short or damaged; copy or save "
            "it again"
        )


def _package() -> ModuleType:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise ImportError(
            "files of models need safetensors: pip install 'widemargin[cli]', or use format='liblinear'"
        ) from None
    return safetensors


def _check_array(
    path: Path,
    name: str,
    stored: Any,
    wanted: Sequence[int | None],
    kinds: tuple[str, ...] = ("F64",),
    *,
    empty: bool = False,
) -> None:
    """Type and shape, before anything is read."""
    shape, dtype = stored.get_shape(), stored.get_dtype()
    if dtype not in kinds:
        raise ModelError(
            f"{path}: {name} is of type {dtype}, not {' or '.join(kinds)}; save the model again with LinearModel.save"
        )
    fits = len(shape) == len(wanted) and all(want in (None, have) for have, want in zip(shape, wanted, strict=True))
    if not fits or (0 in shape and not empty):
        words = " × ".join("features" if want is None else str(want) for want in wanted)
        raise ModelError(
            f"{path}: {name} has shape {tuple(shape)}, but its classes ask for {words}; the file was not written by "
            "LinearModel.save: save the model again"
        )


def _fields(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    """What the JSON says, checked."""
    text = (metadata or {}).get("widemargin")
    if text is None:
        raise ModelError(
            f"{path}: safetensors, but not a model of widemargin (no metadata of that name); save one with "
            "LinearModel.save"
        )
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelError(f"{path}: its metadata is not JSON ({why[:80]}); copy or save it again") from None
    content = content if isinstance(content, dict) else {}
    version = content.get("format")
    if type(version) is not int or version < 1:
        raise ModelError(f"{path}: its metadata has no format version; copy or save it again")
    if version > FORMAT:
        raise ModelError(
            f"{path}: of format {version}, this version of widemargin reads up to {FORMAT}; pip install --upgrade "
            "widemargin, or save it with the older one"
        )
    names = content.get("feature_names")
    if not (names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))):
        raise ModelError(f"{path}: its feature_names are not a list of texts; save the model again")
    for key in ("encoding", "certificate"):
        if not isinstance(content.get(key), dict | None):
            raise ModelError(f"{path}: its {key} is not a JSON object; save the model again")
    _check_proof(path, content.get("certificate") or {})
    if content.get("zero_based") not in (None, True, False):
        raise ModelError(f"{path}: its zero_based is neither true nor false; save the model again")
    return {
        "classes": _untyped(path, content.get("classes")),
        "feature_names": None if names is None else tuple(names),
        "encoding": content.get("encoding"),
        **(_kernel_fields(path, content) if "kernel" in content else {"loss": _loss(path, content.get("loss"))}),
        "C": _strength(path, content.get("C")),
        "certificate": content.get("certificate"),
        "zero_based": content.get("zero_based"),
    }


def _loss(path: Path, loss: object) -> str | None:
    if not isinstance(loss, str | None):
        raise ModelError(f"{path}: its loss is not a text; save the model again")
    return loss


def _kernel_fields(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """The kernel, the number of columns and how ties are broken."""
    said = content.get("kernel")
    known = {"name": (str,), "gamma": (int, float), "degree": (int,), "coef0": (int, float)}
    if not isinstance(said, dict) or said.keys() != known.keys() or any(type(said[k]) not in known[k] for k in known):
        raise ModelError(f"{path}: its kernel is not a name with gamma, degree and coef0; save the model again")
    try:
        kernel = Kernel(said["name"], float(said["gamma"]), said["degree"], float(said["coef0"]))
    except (ValueError, OverflowError) as error:
        raise ModelError(f"{path}: no such kernel ({printable(str(error), 100)}); save the model again") from None
    columns, ties = content.get("columns"), content.get("break_ties", False)
    if type(columns) is not int or not 0 < columns < 1 << 31:
        raise ModelError(f"{path}: its columns are not a number from 1 to 2³¹ − 1; save the model again")
    if not isinstance(ties, bool):
        raise ModelError(f"{path}: its break_ties is neither true nor false; save the model again")
    order = content.get("tie_order")
    if not (order is None or (isinstance(order, list) and all(type(place) is int for place in order))):
        raise ModelError(f"{path}: its tie_order is not a list of places; save the model again")
    return {
        "kernel": kernel,
        "columns": columns,
        "break_ties": ties,
        "tie_order": None if order is None else tuple(order),
    }


def _check_proof(path: Path, said: dict[str, Any]) -> None:
    """What a certificate says of the problem and of the gap is what `certificate_summary` makes of it, or missing."""
    each, weights = said.get("each", []), said.get("class_weight")
    sound = isinstance(each, list) and all(isinstance(one, dict) for one in each)
    numbers = [said[name] for name in ("tol", "gap", "relative_gap") if name in said]
    numbers += [one[name] for one in each for name in ("primal", "rows") if name in one] if sound else []
    pairs = weights if isinstance(weights, list) else []
    sound &= all(isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], list | dict) for pair in pairs)
    numbers += [pair[1] for pair in pairs] if sound else []
    sound &= all(
        type(number) is float or (type(number) is int and abs(number) < 1 << 62) or number in ("inf", "-inf", "nan")
        for number in numbers
    )
    sound &= isinstance(weights, list | None) or weights == "balanced"
    if not sound or not isinstance(said.get("fit_intercept", True), bool):
        raise ModelError(f"{path}: its certificate is not one of ours; save the model again")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _strength(path: Path, C: object) -> float | None:
    if C is None:
        return None
    if C == "inf":
        return math.inf
    if isinstance(C, bool) or not isinstance(C, int | float) or not 0 < C <= sys.float_info.max:
        raise ModelError(f"{path}: its C is not a number > 0; save the model again")
    return float(C)


def plain_number(number: float | None) -> float | str | None:
    """A number as JSON has it, or the text of one that JSON does not have."""
    if number is None:
        return None
    number = float(number)
    return number if math.isfinite(number) else str(number)


def _typed(classes: NDArray[Any], path: Path) -> dict[str, Any]:
    """The classes with the name of their type, which JSON's own types would not keep apart."""
    values = classes.tolist()
    kinds = {"i": "int", "u": "int", "f": "float", "U": "str", "b": "bool"}
    name = kinds.get(classes.dtype.kind, "str" if all(isinstance(value, str) for value in values) else "")
    if not name or (name == "int" and max(values) > np.iinfo(np.int64).max):
        raise ModelError(
            f"{path}: classes of type {classes.dtype} cannot be saved; use integers of 64 bits, floats, texts or "
            "booleans"
        )
    return {"type": name, "values": values}


def _untyped(path: Path, content: object) -> NDArray[Any]:
    name, values = (content.get("type"), content.get("values")) if isinstance(content, dict) else (None, None)
    if not isinstance(name, str) or name not in TYPES or not isinstance(values, list):
        raise ModelError(f"{path}: its classes are not given as a type and values; save the model again")
    if not all(type(value) in TYPES[name] for value in values):
        raise ModelError(f"{path}: its classes are not all of type {name}; save the model again")
    if len(values) < 2:
        raise ModelError(f"{path}: {len(values)} classes; a classifier has two or more: save the model again")
    if name == "str":
        return _texts(values)
    try:
        return np.array(values, dtype={"int": np.int64, "float": np.float64, "bool": np.bool_}[name])
    except OverflowError:
        raise ModelError(f"{path}: a class is beyond 64 bits; use smaller numbers for classes") from None


def _texts(values: list[str]) -> NDArray[Any]:
    """An array of texts; of Python's own where one long name would make room for all as long, or NumPy trim an end."""
    longest, total = max(map(len, values)), sum(map(len, values))
    wasteful = longest * len(values) > 4 * total + 1000
    return np.array(values, dtype=object if wasteful or any(value.endswith("\0") for value in values) else np.str_)

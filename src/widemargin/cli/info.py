"""examples:
widemargin info heart.svm
widemargin info heart.safetensors
"""  # the end of --help

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from widemargin.cli.reading import add_data, read
from widemargin.cli.screen import say, show, show_json, show_table
from widemargin.cli.text import text_of

if TYPE_CHECKING:
    from widemargin.model_kernel import KernelModel


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_data(parser, "file", what="a model, or data: ")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(options: argparse.Namespace) -> int:
    """Tells a model from data, and describes it."""
    return _about_model(options) if _is_model(options.file) else _about_data(options)


def _is_model(path: str) -> bool:
    from widemargin.model import ModelError
    from widemargin.model_files import kind

    if os.path.isdir(path) or path == "-":
        return False
    if Path(path).suffix == ".safetensors":  # what is wrong with it is then said of a model
        return True
    try:
        return kind(Path(path)) in ("safetensors", "liblinear", "libsvm")
    except ModelError:
        return False


def _about_model(options: argparse.Namespace) -> int:
    import numpy as np

    from widemargin.model_kernel import KernelModel, load_model

    model = load_model(options.file)
    said = model.certificate or {}
    about = {
        "classes": model.classes.tolist(),
        "columns": model.columns,
        "loss": model.loss,
        "C": None if model.C is None else model.C if np.isfinite(model.C) else "inf",
        "relative_gap": said.get("relative_gap"),
        "tol": said.get("tol"),
        "named_columns": model.feature_names is not None,
    }
    if isinstance(model, KernelModel):
        about |= _about_kernel(model)
    if options.json:
        show_json({"model": options.file, **about, "certificate": said or None})
        return 0
    facts: list[tuple[str, Any]] = [
        ("classes", ", ".join(map(text_of, about["classes"]))),
        ("columns", about["columns"]),
        *([("kernel", str(model.kernel))] if isinstance(model, KernelModel) else []),
        ("loss", about["loss"] or "not known"),
        ("C", "not known" if about["C"] is None else about["C"]),
    ]
    if said.get("relative_gap") is not None and said.get("tol") is not None:
        facts.append(("relative gap", f"{float(said['relative_gap']):.1e} (asked for {float(said['tol']):.1e})"))
    show(f"Model {options.file}", facts)
    say()
    if isinstance(model, KernelModel):
        labels, total = list(map(text_of, about["classes"])), int(model.n_support.sum())
        lines = [
            (label, count, f"{100 * count / total:.2f} %")
            for label, count in zip(labels, model.n_support.tolist(), strict=True)
        ]
        show_table(f"{total:,} support vectors", ("class", "support vectors", "share"), lines)
        return 0
    names, heaviest = model.feature_names, []
    each = [text_of(label) for label in model.classes.tolist()][-len(model.coef) :]
    for label, w in zip(each, model.coef, strict=True):
        top = np.argsort(-np.abs(w))[:5]
        heaviest.append((label, *(f"{names[j] if names else j + 1}: {w[j]:.3g}" for j in top)))
    show_table("The heaviest columns of each class", ("class", *[""] * (len(heaviest[0]) - 1)), heaviest)
    return 0


def _about_kernel(model: KernelModel) -> dict[str, Any]:
    """What only kernel models have."""
    return {
        "kernel": {"name": model.kernel.name, **model.kernel.parameters},
        "support_vectors": model.n_support.tolist(),
        "pairs": len(model.pairs),
    }


def _about_data(options: argparse.Namespace) -> int:
    import numpy as np

    found = read(options.file, options)
    rows, columns = found.X.shape
    nonzeros = getattr(found.X, "nonzeros", None) or getattr(found.X, "nnz", None)
    if nonzeros is None:
        nonzeros = int(np.count_nonzero(found.X))
    about: dict[str, Any] = {
        "rows": rows,
        "columns": columns,
        "nonzeros": int(nonzeros),
        "type": str(found.X.dtype),
        "parts": len(found.X.parts) if hasattr(found.X, "parts") else None,
    }
    labels: list[tuple[Any, int]] = []
    if found.y is not None:
        values, counts = np.unique(found.y, return_counts=True)
        labels = list(zip(values.tolist(), counts.tolist(), strict=True))
    if options.json:
        show_json({"data": options.file, **about, "labels": [[name, count] for name, count in labels]})
        return 0
    per_row = f"{nonzeros / rows:.1f} per row, {100 * nonzeros / max(1, rows * columns):.3g} % of all"
    facts = [("rows", rows), ("columns", columns), ("non-zeros", f"{nonzeros:,} ({per_row})"), ("type", about["type"])]
    if about["parts"]:
        facts.append(("parts of the store", about["parts"]))
    if found.names is not None:
        shown = ", ".join(found.names[:8]) + (" …" if len(found.names) > 8 else "")
        facts.append(("names", shown))
    show(f"Data {options.file}", facts)
    say()
    if not labels:
        say("No labels.")
    elif len(labels) <= 50:
        lines = [(text_of(name), count, f"{100 * count / rows:.2f} %") for name, count in labels]
        show_table("Labels", ("label", "rows", "share"), lines)
    else:
        say(f"{len(labels):,} different labels: numbers to be predicted, perhaps, rather than classes.")
    return 0

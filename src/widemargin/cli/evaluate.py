"""examples:
widemargin evaluate heart.safetensors heart.test.svm
widemargin evaluate heart.safetensors heart.test.svm --json
"""  # the end of --help

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from widemargin.cli.reading import add_data, read_for
from widemargin.cli.screen import say, show, show_json, show_table
from widemargin.cli.text import text_of

if TYPE_CHECKING:
    from widemargin.data import Dataset
    from widemargin.evaluation import Evaluation
    from widemargin.model import LinearModel
    from widemargin.model_kernel import KernelModel


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("model", metavar="MODEL", help="a file that train, LIBLINEAR or LIBSVM wrote")
    add_data(parser, what="rows with labels: ")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(options: argparse.Namespace) -> int:
    """Predicts and compares."""
    from widemargin.model_kernel import load_model

    model = load_model(options.model)
    found = evaluated(model, read_for(model, options.data, options), options.data, options.threads)
    if options.json:
        show_json(found.to_json())
        return 0
    facts = [
        ("rows", f"{found.rows:,}"),
        ("right", f"{found.right:,} ({100 * found.accuracy:.2f} %; the most frequent class alone: "
         f"{100 * found.baseline:.2f} %)"),
        ("precision", found.precision),
        ("recall", found.recall),
        ("F1", found.f1),
        ("ROC AUC", found.roc_auc),
        ("log loss", found.log_loss),
    ]  # fmt: skip
    show("Evaluation", [(name, value) for name, value in facts if value is not None])
    for label, count in found.unknown.items():
        say(f"{count:,} rows have the label {label}, which the model does not know: counted as mistakes.")
    names = list(map(text_of, found.classes))
    if len(names) > 2:
        say()
        lines = [(text_of(one.name), one.rows, *map(_share, (one.precision, one.recall, one.f1))) for one in found.each]
        show_table("By class", ("class", "rows", "precision", "recall", "F1"), lines)
    say()
    counts = [(name, *line) for name, line in zip(names, found.confusion, strict=True)]
    show_table("Rows of a class (down) by what they were taken for (across)", ("", *names), counts)
    return 0


def evaluated(model: LinearModel | KernelModel, data: Dataset, path: str, threads: int = 0) -> Evaluation:
    """The model's predictions held against the labels of rows that have its columns."""
    from widemargin.data import Rows
    from widemargin.data.machine import count_threads
    from widemargin.evaluation import evaluate

    check_known(data.y, model.classes, path)
    assert data.y is not None
    many = count_threads(threads)
    scores = model.scores(data.X.with_threads(many) if isinstance(data.X, Rows) else Rows(data.X, many))
    chances = model.probabilities(scores) if model.loss in ("logistic", "multinomial") else None
    return evaluate(data.y, model.choose(scores), scores, chances, classes=model.classes)


def check_known(y: Any, classes: Any, path: str) -> None:
    """Refuses rows without labels, and labels of which the model knows none."""
    from widemargin.data import DataError

    if y is None:
        raise DataError.at(path, "no labels to compare with", "give a file that has them, or say --label COLUMN")
    here, known = set(y.tolist()), classes.tolist()
    if not here & set(known):
        shown = [", ".join(text_of(name) for name in names[:6]) for names in (sorted(here), known)]
        raise DataError.at(path, f"its labels are {shown[0]}, the model knows {shown[1]}", "write them alike")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"

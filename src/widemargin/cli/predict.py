"""examples:
widemargin predict heart.safetensors new.svm
widemargin predict heart.safetensors new.svm --scores -o scores.tsv
cat new.svm | widemargin predict heart.safetensors - --proba > chances.tsv
"""  # the end of --help

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from widemargin.cli.reading import add_data, encoding_for, encoding_of, fitted, reading_options, remember_base
from widemargin.cli.screen import note, reading_bar
from widemargin.cli.text import text_of
from widemargin.cli.writing import target_of, writing
from widemargin.whole_files import written_aside


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("model", metavar="MODEL", help="a file that train, LIBLINEAR or LIBSVM wrote")
    add_data(parser, what="rows, or - for standard input: ")
    parser.add_argument("-o", "--output", metavar="OUT", help="where to write; standard output if not said")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--scores", action="store_true", help="the class and its scores: w·x + b or, with a kernel, Σ α·k + b"
    )
    more.add_argument("--proba", action="store_true", help="the class and the chance of each; logistic models")


def run(options: argparse.Namespace) -> int:
    """Predicts block by block, in constant memory; of a store, the lines wait to be put in the order of its input."""
    import numpy as np

    from widemargin import data
    from widemargin.data import Rows
    from widemargin.data.machine import count_threads
    from widemargin.data.store import order_of
    from widemargin.model import ModelError
    from widemargin.model_kernel import KernelModel, load_model

    target = None if options.output in (None, "-") else target_of(options.output, options.model, options.data)
    model = load_model(options.model)
    kernel, threads = isinstance(model, KernelModel), count_threads(options.threads)
    if options.proba and model.loss not in ("logistic", "multinomial"):
        what = f"a model of the {model.loss} loss has scores but no probabilities"
        raise ModelError(f"{options.model}: {what}; use --scores, or train with --loss logistic")
    known, right, rows = set(model.classes.tolist()), 0, 0
    labelled = False
    encoding = encoding_for(encoding_of(model, options.model), options.data)
    remember_base(options, model.zero_based, options.data)
    order = order_of(options.data) if os.path.isdir(options.data) else None
    with reading_bar("predicting") as progress, output(target) as out:
        waiting: list[str] = []
        width, beyond = model.columns, False
        for block in data.blocks(options.data, **reading_options(options, options.data, encoding), progress=progress):
            if not rows and (options.scores or options.proba):
                two = len(model.classes) == 2 and not options.proba
                out.write("\t".join(["label", *(["score"] if two else map(text_of, model.classes.tolist()))]) + "\n")
            scores = model.scores(Rows(fitted(block.X, width, options.data, noted=beyond, kernel=kernel), threads))
            beyond = beyond or block.X.shape[1] > width
            chosen = model.choose(scores)
            columns = [list(map(text_of, chosen.tolist()))]
            if options.scores or options.proba:
                numbers = model.probabilities(scores) if options.proba else scores.reshape(len(scores), -1)
                columns += [list(map(repr, column)) for column in numbers.T.tolist()]
            lines = ("\t".join(line) + "\n" for line in zip(*columns, strict=True))
            out.writelines(lines) if order is None else waiting.extend(lines)
            rows += len(chosen)
            if block.y is not None:
                labelled = labelled or bool(known & set(np.unique(block.y).tolist()))
                right += int((chosen == block.y).sum())
        if order is not None:  # the rows of a store are shuffled; predictions stand as the input did
            out.writelines(waiting[k] for k in np.argsort(order).tolist())
    if labelled and (target is not None or not sys.stdout.isatty()):
        note(f"{right:,} of {rows:,} rows have the label that the file gives them ({100 * right / rows:.2f} %)")
    return 0


@contextmanager
def output(target: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that has its name only once it is complete."""
    if target is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with writing(target), written_aside(target) as beside, beside.open("w", encoding="utf-8") as file:
        yield file

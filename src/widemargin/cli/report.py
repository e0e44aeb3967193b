"""examples:
widemargin report heart.safetensors heart.svm
widemargin report heart.safetensors heart.test.svm -o heart.html
"""  # the end of --help

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

from widemargin.cli.proving import is_the_one_stated, problem_of, prove, prove_kernel, was_trained_on
from widemargin.cli.reading import add_data, read_for
from widemargin.cli.screen import say
from widemargin.cli.writing import target_of, writing

PAGES = (".html", ".htm")


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("model", metavar="MODEL", help="a file that train, LIBLINEAR or LIBSVM wrote")
    add_data(parser, what="rows with labels: ")
    parser.add_argument("-o", "--output", default="report.html", help="the page: .html or .htm; report.html")
    parser.add_argument(
        "--no-proof",
        action="store_true",
        help="leave out the proof: it takes a fit to the rows of the training or, with a kernel, all their scores",
    )


def run(options: argparse.Namespace) -> int:
    """Evaluates the model on the rows, proves it on them, writes the page."""
    import matplotlib as mpl

    mpl.use("Agg")
    from widemargin.data import DataError
    from widemargin.model import MULTINOMIAL
    from widemargin.model_kernel import KernelModel, load_model
    from widemargin.report import write_report

    target = target_of(options.output, options.model, options.data)
    if target.suffix.lower() not in PAGES:
        raise DataError.at(str(target), f"no page ends in '{target.suffix}'", f"use {' or '.join(PAGES)}")
    model = load_model(options.model)
    found = read_for(model, options.data, options)
    if found.y is None:
        raise DataError.at(options.data, "no labels", "give a file that has them, or say --label COLUMN")
    proof, problem = None, None
    if not options.no_proof and model.C is not None and model.loss not in (None, MULTINOMIAL):
        if isinstance(model, KernelModel):
            with suppress(ValueError):  # support vectors that are none of the rows: then these are not its training's
                proof = prove_kernel(model, found, threads=options.threads)
                proof = proof if is_the_one_stated(proof, model) else None
        elif was_trained_on(model, found, problem := problem_of(model, options.model)):
            proof = prove(model, found, problem, tol=1e-3, threads=options.threads)
    with writing(target):
        write_report(
            target,
            model,
            getattr(found.X, "X", found.X),
            found.y,
            names=model.feature_names,
            source=Path(options.data).name,
            model_name=Path(options.model).name,
            certificate=proof,
            parameters=problem,
        )
    say(f"wrote {target}")
    return 0

"""examples:
widemargin certify heart.safetensors heart.svm
widemargin certify liblinear.model heart.svm -C 1 --tol 1e-4
widemargin certify rbf.safetensors heart.svm
widemargin certify libsvm.model heart.svm -C 10
"""  # the end of --help

from __future__ import annotations

import argparse
from math import inf
from typing import Any

from widemargin.cli import REACHED, SHORT
from widemargin.cli.proving import problem_of, prove, prove_kernel
from widemargin.cli.reading import add_data, read_for
from widemargin.cli.screen import say, show_json
from widemargin.cli.text import positive, text_of
from widemargin.cli.train import about, class_weight


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("model", metavar="MODEL", help="a file that train, LIBLINEAR or LIBSVM wrote")
    add_data(parser, what="the rows it was trained on: ")
    parser.add_argument("-C", "--C", type=positive, metavar="C", help="strength of the loss, if not the model's own")
    parser.add_argument("--class-weight", metavar="W", help="weights of classes, as of train, if not the model's own")
    parser.add_argument(
        "--tol", type=positive, help="exit code 0 if the relative gap is at most this; what train was asked"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(options: argparse.Namespace) -> int:
    """Computes the proof anew and says whether it will do."""
    from widemargin.data import DataError
    from widemargin.model import certificate_summary
    from widemargin.model_kernel import KernelModel, load_model

    model = load_model(options.model)
    kernel = isinstance(model, KernelModel)
    problem = problem_of(model, options.model, options.C)
    tol = options.tol if options.tol is not None else float((model.certificate or {}).get("tol", 1e-3))
    found = read_for(model, options.data, options, proof=True)
    if found.y is None:
        raise DataError.at(options.data, "no labels", "give the file that the model was trained on")
    _check_classes(model.classes.tolist(), found.y, options.data)
    if options.class_weight is not None:
        problem["class_weight"] = class_weight(options.class_weight, found.y, options.data)
    if isinstance(model, KernelModel):
        with about(options.data):
            proof = prove_kernel(
                model, found, C=problem["C"], class_weight=problem["class_weight"], threads=options.threads
            )
    else:
        proof = prove(model, found, problem, tol=tol, threads=options.threads)
    reached = proof.relative_gap <= tol
    if options.json:
        names = getattr(proof, "classes", model.classes)
        show_json({**certificate_summary(proof, names, tol=tol), "reached": bool(reached)})
        return REACHED if reached else SHORT
    classes = ", ".join(map(text_of, model.classes.tolist()))
    what = f"kernel {model.kernel}" if isinstance(model, KernelModel) else f"{model.loss} loss"
    say(f"{options.model} on {options.data}: {what}, C = {problem['C']:g}, classes {classes}\n")
    say(str(proof))
    say()
    if proof.relative_gap == inf:
        say(f"Nothing is proved of it, and the relative gap is NOT within the {tol:.1e} asked for.")
        return SHORT
    verdict = "proved" if reached else f"NOT within the {tol:.1e} asked for"
    share = proof.relative_gap / (1 + proof.relative_gap)  # of the objective
    which = "function of this kernel" if kernel else "weights"
    say(f"No {which} can lower the objective by more than {share:.1e} of it: {verdict}.")
    return REACHED if reached else SHORT


def _check_classes(known: list[Any], y: Any, path: str) -> None:
    """Refuses rows of other classes than the model's: their proof would be that of another problem."""
    from widemargin.data import DataError
    from widemargin.data.labels import distinct

    there = distinct(y).tolist()
    strange, missing = ([one for one in some if one not in rest] for some, rest in ((there, known), (known, there)))
    if strange or missing:
        what = "the model knows no class" if strange else "no rows of class"
        label = text_of((strange or missing)[0])
        raise DataError.at(path, f"{what} {label}", "give the rows that the model was trained on")

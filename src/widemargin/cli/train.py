"""examples:
widemargin train heart.svm
widemargin train heart.svm -C 0.1 --loss logistic --test heart.test.svm -o heart.safetensors
widemargin train heart.csv --label disease --class-weight balanced
widemargin train heart.svm --cache --checkpoint state --every 30
widemargin train heart.svm --cache --checkpoint state --resume
"""  # the end of --help

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from widemargin.cli.reading import add_data, fingerprint, read_for, stem, training_data
from widemargin.cli.screen import note, say, show, show_json, show_table
from widemargin.cli.text import text_of

if TYPE_CHECKING:
    from widemargin.data import Dataset, Rows
    from widemargin.model import LinearModel
    from widemargin.training import Fit


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_data(parser, what="rows to train on: ")
    parser.add_argument("-o", "--output", metavar="MODEL", help="the model's file; DATA's name with .safetensors")
    parser.add_argument("--format", choices=("safetensors", "liblinear"), default="safetensors", help="of the model")
    parser.add_argument("--test", metavar="DATA", help="rows to evaluate the model on")
    group = parser.add_argument_group("the problem: ½‖w‖² + C Σ φ(y(w·x + b))")
    group.add_argument("-C", type=float, default=1.0, metavar="C", help="strength of the loss, 1; inf: the hard margin")
    losses = ("hinge", "squared_hinge", "logistic", "squared")
    group.add_argument("--loss", choices=losses, default="hinge", help="φ, the hinge")
    group.add_argument("--no-bias", action="store_true", help="b = 0")
    group.add_argument("--class-weight", metavar="W", help="'balanced', or as in 1:2,-1:0.5; multiplies C")
    group = parser.add_argument_group("the solution")
    group.add_argument("--tol", type=float, default=1e-3, help="relative duality gap to prove, 0.001")
    group.add_argument("--solver", default="auto", help="auto, dual_cd, interior_point, smo, pegasos, …")
    group.add_argument("--max-iter", type=int, metavar="N", help="passes or steps at most")
    group.add_argument("--seed", type=int, default=0, help="of the order in which rows are visited")
    group = parser.add_argument_group("large data, long runs")
    group.add_argument("--cache", nargs="?", const="", metavar="DIR", help="keep the rows as a store, DATA.store")
    group.add_argument("--checkpoint", metavar="DIR", help="save the state there, to go on after a stop")
    group.add_argument("--every", type=float, default=60.0, metavar="SECONDS", help="how often, 60")
    group.add_argument("--resume", action="store_true", help="go on from the state, if there is one")
    parser.add_argument("--json", action="store_true", help="the report as one line of JSON")


def run(options: argparse.Namespace) -> int:
    """Trains, writes the model, reports."""
    from widemargin.checkpoint import Stopped
    from widemargin.data import DataError, Rows
    from widemargin.one_against_rest import OneAgainstRest, certificate_of, count_threads

    target, kept, began = _target(options), _checkpoint(options), time.perf_counter()
    with _signals(kept) as training, training_data(options) as found:
        if found.y is None:
            raise DataError.at(options.data, "no labels", "give a file that has them, or say --label COLUMN")
        read_in = time.perf_counter() - began
        task = OneAgainstRest(
            options.C,
            options.loss,
            not options.no_bias,
            _class_weight(options.class_weight, found.y),
            options.solver,
            options.tol,
            options.max_iter,
        )
        task.check()
        threads = count_threads(options.threads or None)
        rows = found.X.with_threads(threads) if isinstance(found.X, Rows) else Rows(found.X, threads)
        classes, problems = task.problems(rows, found.y, np.ones(rows.n))
        training.append(True)
        began = time.perf_counter()
        try:
            fits = task.fit(
                problems,
                classes,
                seed=options.seed,
                threads=threads,
                verbose=int(sys.stderr.isatty()),
                resumed=None if kept is None else kept.load(),
                keep=None if kept is None else kept.visit,
            )
            if any(fit.interrupted for fit in fits):
                raise KeyboardInterrupt
        except Stopped:
            note(f"stopped; the state is saved in {options.checkpoint}: go on with --resume")
            return 130
        except KeyboardInterrupt:
            note("interrupted; nothing was written" + ("" if kept is None else f", the last state is in {kept.file}"))
            return 130
        trained_in = time.perf_counter() - began
        model = _model(options, found, fits, classes, certificate_of(fits, classes))
        model.save(target, format=options.format)
        if kept is not None:
            kept.clear()
        right = int((model.choose(model.scores(rows)) == found.y).sum())
    report = _Report(options, rows, fits, model, target, (read_in, trained_in), right)
    tested = None
    if options.test is not None:
        from widemargin.cli.evaluate import evaluated

        tested = evaluated(model, read_for(model, options.test, options), options.test)
    if options.json:
        show_json({**report.as_json(), "test": None if tested is None else tested.to_json()})
    else:
        report.show(tested)
    return 0 if report.reached else 1


def _model(options: argparse.Namespace, found: Dataset, fits: list[Fit], classes: Any, proof: Any) -> LinearModel:
    """The model, with the problem and the proof."""
    from widemargin.model import LinearModel, certificate_summary

    weight = _class_weight(options.class_weight, found.y)
    return LinearModel(
        np.array([fit.w for fit in fits]),
        np.array([fit.b for fit in fits]),
        classes,
        feature_names=found.names,
        encoding=None if found.encoding is None else found.encoding.to_json(),
        loss=options.loss,
        C=options.C,
        certificate={
            **certificate_summary(proof, classes, tol=options.tol),
            "fit_intercept": not options.no_bias,
            "class_weight": [list(pair) for pair in weight.items()] if isinstance(weight, dict) else weight,
        },
    )


def _target(options: argparse.Namespace) -> Path:
    """Where the model goes; found out before the work, not after it."""
    from widemargin.model import ModelError

    suffix = ".model" if options.format == "liblinear" else ".safetensors"
    target = Path(options.output or f"{stem(options.data)}{suffix}")
    if target.is_dir():
        raise ModelError(f"{target}: a directory; name the model's file with -o")
    if not target.absolute().parent.is_dir():
        raise ModelError(f"{target}: there is no such directory; make it first")
    return target


def _checkpoint(options: argparse.Namespace) -> Any:
    from widemargin import __version__
    from widemargin.checkpoint import Checkpoint, CheckpointError

    if options.checkpoint is None:
        if options.resume:
            raise CheckpointError("--resume goes on from a state; say where it is with --checkpoint DIR")
        return None
    if not options.every > 0:
        raise CheckpointError(f"--every {options.every:g}: seconds between two states must be more than 0")
    same = ("C", "loss", "no_bias", "class_weight", "tol", "solver", "max_iter", "seed")
    run = {name: getattr(options, name) for name in same} | {"version": __version__, **fingerprint(options.data)}
    kept = Checkpoint(options.checkpoint, run, every=options.every)
    if kept.file.exists() and not options.resume:
        raise CheckpointError(f"{kept.file}: an earlier run left its state; go on with --resume, or remove it")
    return kept


@contextmanager
def _signals(kept: Any) -> Iterator[list[bool]]:
    """While training, a first Ctrl-C or SIGTERM asks for the state to be saved; others stop at once."""
    training: list[bool] = []

    def stop(*_: object) -> None:
        if kept is None or kept.stopping or not training:
            raise KeyboardInterrupt
        kept.stopping = True
        note("stopping after this pass; once more stops at once")

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield training
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _class_weight(text: str | None, y: Any) -> Any:
    """'balanced', or a weight per class, named as in the data."""
    if text is None or text == "balanced":
        return text
    names = {text_of(label): label for label in set(y.tolist())}
    weights = {}
    for pair in text.split(","):
        name, _, weight = pair.rpartition(":")
        try:
            weights[names[name]] = float(weight)
        except (KeyError, ValueError):
            raise ValueError(f"--class-weight {text}: {pair!r} is not CLASS:WEIGHT with a class of the data") from None
    return weights


class _Report:
    """What a newcomer wants to know, in words."""

    def __init__(
        self,
        options: argparse.Namespace,
        rows: Rows,
        fits: list[Fit],
        model: LinearModel,
        target: Path,
        seconds: tuple[float, float],
        right: int,
    ) -> None:
        self.options, self.model, self.target, self.right = options, model, target, right
        self.rows, self.columns, (self.read_in, self.trained_in) = rows.n, rows.d, seconds
        self.each = [fit.certificate for fit in fits]
        self.iterations = max(fit.iterations for fit in fits)
        self.gap = max(one.relative_gap for one in self.each)
        self.reached = bool(self.gap <= options.tol)

    def as_json(self) -> dict[str, Any]:
        """Numbers for scripts."""
        options = self.options
        return {
            "model": str(self.target),
            "rows": self.rows,
            "columns": self.columns,
            "classes": self.model.classes.tolist(),
            "C": "inf" if math.isinf(options.C) else options.C,
            "loss": options.loss,
            "solver": options.solver,
            "iterations": self.iterations,
            "seconds": {"reading": self.read_in, "training": self.trained_in},
            "training_accuracy": self.right / self.rows,
            "reached": self.reached,
            "certificate": self.model.certificate,
        }

    def show(self, tested: Any) -> None:
        """Tables and sentences."""
        gap, tol = self.gap, self.options.tol
        names = [text_of(name) for name in self.model.classes.tolist()]
        shown = ", ".join(names[:6]) + (f" … ({len(names)} in all)" if len(names) > 6 else "")
        facts: list[tuple[str, Any]] = [
            ("data", f"{self.options.data}: {self.rows:,} rows, {self.columns:,} columns, classes {shown}"),
            (
                "problem",
                f"{self.options.loss} loss, C = {self.options.C:g}{', no bias' if self.options.no_bias else ''}",
            ),
            (
                "time",
                f"{self.read_in:.2f} s to read, {self.trained_in:.2f} s to train ({self.iterations:,} iterations)",
            ),
            ("right on these rows", f"{self.right:,} of {self.rows:,} ({100 * self.right / self.rows:.2f} %)"),
        ]
        if tested is not None:
            share = f"{tested.right:,} of {tested.rows:,} ({100 * tested.accuracy:.2f} %)"
            facts.append(("right on the test rows", share))
        facts.append(("model", str(self.target)))
        show("Trained", facts)
        say()
        lines = [
            (
                name,
                one.primal,
                one.dual,
                f"{one.relative_gap:.1e}",
                f"{one.width:.4g}",
                len(one.support),
                one.misclassified,
            )
            for name, one in zip(names[-len(self.each) :], self.each, strict=True)
        ]
        heads = (
            "class",
            "objective",
            "lower bound",
            "relative gap",
            "margin width",
            "support vectors",
            "misclassified",
        )
        show_table("Proof", heads, lines)
        say()
        if self.reached:
            say(f"No weights can lower the objective by more than {gap:.1e} of it: proved, as asked for ({tol:.0e}).")
        else:
            say(
                f"NOT as good as asked for: the relative gap is {gap:.1e}, not {tol:.1e}. Scale the columns, raise "
                "--max-iter, or ask for a larger --tol."
            )

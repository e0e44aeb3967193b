"""examples:
widemargin train heart.svm
widemargin train heart.svm -C 0.1 --loss logistic --test heart.test.svm -o heart.safetensors
widemargin train heart.csv --label disease --class-weight balanced
widemargin train heart.svm --kernel rbf --gamma 0.1 -C 10
widemargin train heart.svm --kernel poly --degree 2 --coef0 1 --format libsvm -o heart.model
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
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from widemargin.cli import INTERRUPTED, REACHED, SHORT, handled
from widemargin.cli.reading import Place, add_data, fingerprint, read_like, remember_base, stem, training_data
from widemargin.cli.screen import note, say, show, show_json, show_table
from widemargin.cli.text import gamma, number, positive, text_of, whole
from widemargin.cli.writing import target_of, writing

if TYPE_CHECKING:
    from widemargin.data import Dataset, Rows
    from widemargin.model import LinearModel
    from widemargin.one_against_rest import OneAgainstRest
    from widemargin.training import Fit

#: The kernels that KernelSVM has by name; written out, since the options are read before NumPy is imported.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "chi2", "cosine", "additive_chi2")
#: Vectors as long as w that a fit holds at once, at least.
VECTORS = 4


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_data(parser, what="rows to train on: ")
    parser.add_argument("-o", "--output", metavar="MODEL", help="the model's file; DATA's name with .safetensors")
    formats = ("safetensors", "liblinear", "libsvm")
    parser.add_argument(
        "--format",
        choices=formats,
        default="safetensors",
        help="of the model; libsvm is for --kernel, liblinear without",
    )
    parser.add_argument("--test", metavar="DATA", help="rows to evaluate the model on")
    group = parser.add_argument_group("the problem: ½‖w‖² + C Σ φ(y(w·x + b))")
    group.add_argument(
        "-C", "--C", type=positive, default=1.0, metavar="C", help="strength of the loss, 1; inf: the hard margin"
    )
    losses = ("hinge", "squared_hinge", "logistic", "squared")
    group.add_argument("--loss", choices=losses, default="hinge", help="φ, the hinge")
    group.add_argument("--no-bias", action="store_true", help="b = 0")
    group.add_argument("--class-weight", metavar="W", help="'balanced', or as in 1:2,-1:0.5; multiplies C")
    group = parser.add_argument_group("a kernel: x·x′ replaced by k(x, x′), classes in pairs")
    group.add_argument("--kernel", choices=KERNELS, help="train a kernel machine, KernelSVM")
    group.add_argument(
        "--gamma",
        type=gamma,
        metavar="G",
        help="γ of k: a number, scale: 1/(columns · Var X), or auto: 1/columns; scale",
    )
    group.add_argument("--degree", type=whole(0, (1 << 31) - 1), metavar="D", help="of poly, (γ x·x′ + coef0)^D; 3")
    group.add_argument("--coef0", type=number, metavar="R", help="of poly and sigmoid, tanh(γ x·x′ + R); 0")
    group.add_argument("--cache-size", type=positive, metavar="MB", help="memory for rows of the kernel matrix")
    group = parser.add_argument_group("the solution")
    group.add_argument("--tol", type=positive, help="relative duality gap to prove, 0.0001; with --kernel 0.001")
    group.add_argument("--solver", default="auto", help="auto, dual_cd, interior_point, smo, pegasos, …")
    group.add_argument("--max-iter", type=whole(1), metavar="N", help="passes or steps at most")
    group.add_argument(
        "--seed", type=whole(0, (1 << 32) - 1), default=None, help="of the order in which rows are visited"
    )
    group = parser.add_argument_group("large data, long runs")
    group.add_argument("--cache", nargs="?", const="", metavar="DIR", help="keep the rows as a store, DATA.store")
    group.add_argument("--checkpoint", metavar="DIR", help="save the state there, to go on after a stop")
    group.add_argument("--every", type=positive, default=None, metavar="SECONDS", help="how often, 60")
    group.add_argument("--resume", action="store_true", help="go on from the state, if there is one")
    parser.add_argument("--json", action="store_true", help="the report as one line of JSON")


def run(options: argparse.Namespace) -> int:
    """Trains, writes the model, reports."""
    if options.kernel is not None:
        from widemargin.cli.train_kernel import run_kernel

        return run_kernel(options)
    _refuse_kernel_options(options)
    options.tol = 1e-4 if options.tol is None else options.tol
    target = target_for(options)
    _check_solver(options)
    began = time.perf_counter()
    with (
        checkpoint_for(options) as (kept, state, place),
        until_stopped(kept) as training,
        training_data(options, target, place) as (found, place),
    ):
        if kept is not None:
            kept.run["rows"] = place.value
        read_in = time.perf_counter() - began
        import numpy as np  # this and these were imported while the rows were read

        from widemargin import model_liblinear
        from widemargin.checkpoint import Stopped
        from widemargin.data import Rows
        from widemargin.one_against_rest import OneAgainstRest, count_threads

        y, labels = labels_of(options.data, found.y)
        if options.format == "liblinear":
            model_liblinear.check(options.loss, labels, target)
        tested = None
        if options.test is not None:  # its mistakes are found before the training, not after it
            from widemargin.cli.evaluate import check_known

            remember_base(options, found.zero_based, options.test)
            tested = read_like(options.test, options, found.encoding, found.X.shape[1])
            check_known(tested.y, labels, options.test)
        task = OneAgainstRest(
            options.C,
            options.loss,
            not options.no_bias,
            class_weight(options.class_weight, y, options.data),
            options.solver,
            options.tol,
            options.max_iter,
        )
        task.check()
        threads = count_threads(options.threads or None)
        rows = found.X.with_threads(threads) if isinstance(found.X, Rows) else Rows(found.X, threads)
        _check_columns(options.data, rows.d)
        began = time.perf_counter()
        try:
            with about(options.data):
                classes, problems = task.problems(rows, y, np.ones(rows.n))
                training.append(True)
                fits = task.fit(
                    problems,
                    classes,
                    seed=_draw(options.seed),
                    threads=threads,
                    verbose=int(sys.stderr.isatty()),
                    resumed=state,
                    keep=None if kept is None else kept.visit,
                )
            if any(fit.interrupted for fit in fits):
                raise KeyboardInterrupt
        except Stopped:
            note(f"stopped; the state is saved in {options.checkpoint}: go on with --resume")
            return INTERRUPTED
        except KeyboardInterrupt:
            saved = kept is not None and kept.file.exists()
            note("interrupted; no model was written" + (f", the last state is in {kept.file}" if saved else ""))
            return INTERRUPTED
        trained_in = time.perf_counter() - began
        model = _model(task, found, fits, classes)
        with writing(target):
            model.save(target, format=options.format)
        if kept is not None:
            kept.clear()
        one = fits[0].certificate
        right = one.right if len(fits) == 1 else int((model.choose(model.scores(rows)) == y).sum())
    report = _Report(options, rows, fits, model, target, (read_in, trained_in), right)
    test = None
    if tested is not None:
        from widemargin.cli.evaluate import evaluated

        test = evaluated(model, tested, options.test, options.threads)
    if options.json:
        show_json({**report.as_json(), "test": None if test is None else test.to_json()})
    else:
        report.show(test)
    return REACHED if report.reached else SHORT


def _draw(seed: int | None) -> int:
    """What an estimator makes of that `random_state`."""
    import numpy as np

    return 0 if seed is None else int(np.random.RandomState(seed).randint(np.iinfo(np.int32).max))


def _model(task: OneAgainstRest, found: Dataset, fits: list[Fit], classes: Any) -> LinearModel:
    """The model, with the problem and the proof."""
    import numpy as np

    from widemargin.model import LinearModel, certificate_summary
    from widemargin.one_against_rest import certificate_of

    weight = task.class_weight
    return LinearModel(
        np.array([fit.w for fit in fits]),
        np.array([fit.b for fit in fits]),
        classes,
        feature_names=found.names,
        encoding=None if found.encoding is None else found.encoding.to_json(),
        loss=task.loss,
        C=task.C,
        zero_based=found.zero_based,
        certificate={
            **certificate_summary(certificate_of(fits, classes), classes, tol=task.tol),
            "fit_intercept": task.fit_intercept,
            "class_weight": [list(pair) for pair in weight.items()] if isinstance(weight, dict) else weight,
        },
    )


def _refuse_kernel_options(options: argparse.Namespace) -> None:
    """What only a kernel machine has."""
    for name in ("gamma", "degree", "coef0", "cache_size"):
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is for kernel machines; say which with --kernel, or leave {option} out")
    if options.format == "libsvm":
        raise ValueError(
            "--format libsvm is for kernel machines; use --format liblinear, or --kernel linear to train one"
        )


def target_for(options: argparse.Namespace) -> Path:
    """Where the model goes."""
    for package in (["safetensors"] if options.format == "safetensors" else []) + ([] if options.json else ["rich"]):
        import_module(package)  # without it, the work would be for nothing
    suffix = ".safetensors" if options.format == "safetensors" else ".model"
    return target_of(options.output or f"{stem(options.data)}{suffix}", options.data, options.test)


def _check_solver(options: argparse.Namespace) -> None:
    """Refuses one that is unknown, or not for this loss."""
    if options.solver == "auto":  # for all of them
        return
    from widemargin.solvers import SOLVERS

    able = [
        name
        for name, method in SOLVERS.items()
        if options.loss in method.losses and (method.hard or math.isfinite(options.C))
    ]
    if options.solver not in able:
        what = "not one for these options" if options.solver in SOLVERS else "there is none of that name"
        raise ValueError(
            f"--solver {options.solver}: {what}; for --loss {options.loss} -C {options.C:g} use {', '.join(able)}"
        )


def labels_of(path: str, y: Any) -> tuple[Any, Any]:
    """The labels and the classes; labels that are missing, all the same, or numbers to be predicted are refused."""
    from widemargin.data import DataError
    from widemargin.data.labels import distinct

    if y is None:
        raise DataError.at(path, "no labels", "give a file that has them, or say --label COLUMN")
    classes = distinct(y)
    if len(classes) < 2:
        what = f"only one class, {text_of(classes.tolist()[0])}"
        raise DataError.at(path, what, "give rows of two classes or more")
    if classes.dtype.kind == "f" and (classes % 1).any():
        what = f"the label {text_of(classes[(classes % 1).astype(bool)][0].item())} is no class but a quantity"
        raise DataError.at(path, what, "give whole numbers or names as labels")
    return y, classes


@contextmanager
def about(path: str) -> Iterator[None]:
    """What is wrong with the rows is said with the name of their file, and without the names of Python's objects."""
    from widemargin.certificate import InseparableError, SeparableError
    from widemargin.checkpoint import CheckpointError
    from widemargin.data import DataError

    try:
        yield
    except (CheckpointError, DataError):
        raise
    except (InseparableError, SeparableError) as error:
        one = getattr(error, "__notes__", [""])[0].removeprefix("This is for ").rstrip(".") or "the classes"
        hard = f"-C inf asks for a hyperplane that separates {one}, and there is none"
        smooth = f"-C inf asks for the maximum likelihood, and there is none, as a hyperplane separates {one}"
        raise DataError.at(path, hard if isinstance(error, InseparableError) else smooth, "use a finite C") from error
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


@contextmanager
def checkpoint_for(options: argparse.Namespace) -> Iterator[tuple[Any, Any, Place | None]]:
    """Where the state is kept, the one to go on from, and where its rows were.

    Of a run that ends before its first state, no directory is left.
    """
    from widemargin import __version__

    if options.checkpoint is None:
        if options.resume:
            raise ValueError("--resume goes on from a state; say where it is with --checkpoint DIR")
        if options.every is not None:
            raise ValueError("--every says how often a state is saved; say where with --checkpoint DIR")
        yield None, None, None
        return
    from widemargin.checkpoint import Checkpoint, CheckpointError

    same = ["C", "loss", "no_bias", "class_weight", "tol", "solver", "max_iter", "seed", "label", "zero_based"]
    same += ["kernel", "gamma", "degree", "coef0", "cache_size"]
    run = {name: getattr(options, name) for name in same} | {"version": __version__, **fingerprint(options.data)}
    place = Path(options.checkpoint)
    made = [one for one in (place, *place.parents) if not one.exists()]
    try:
        kept = Checkpoint(place, run, every=60.0 if options.every is None else options.every)
        before = kept.described() or {}
        rows: Place | None = None
        with suppress(ValueError):
            rows = Place(before.get("rows"))  # there again, however much memory is free this time
        if rows is not None:
            run["rows"] = (rows if options.cache is None or rows is not Place.MEMORY else Place.STORE).value
        if kept.file.exists() and not options.resume:
            raise CheckpointError(f"{kept.file}: an earlier run left its state; go on with --resume, or remove it")
        yield kept, kept.load(), rows
    finally:
        with suppress(OSError):  # if they are not empty
            for directory in made:
                directory.rmdir()


@contextmanager
def until_stopped(kept: Any) -> Iterator[list[bool]]:
    """While training, a first Ctrl-C or SIGTERM asks for the state to be saved; others stop at once."""
    training: list[bool] = []

    def stop(*_: object) -> None:
        if kept is None or kept.stopping or not training:
            raise KeyboardInterrupt
        kept.stopping = True
        note("stopping after this pass; once more stops at once")

    with handled(stop, signal.SIGINT, signal.SIGTERM):
        yield training


def _check_columns(path: str, columns: int) -> None:
    """Refuses more columns than there is memory for their weights."""
    from widemargin.data import DataError
    from widemargin.data.machine import free_memory

    takes = 8.0 * columns * VECTORS
    if takes > free_memory():
        what = f"{columns:,} columns, whose weights alone would take {takes / 1e9:,.0f} GB"
        raise DataError.at(path, what, "number the columns without gaps, or hash them to fewer")


def class_weight(text: str | None, y: Any, path: str) -> Any:
    """'balanced', or a weight per class, named as in the data."""
    if text is None or text == "balanced":
        return text
    names = {text_of(label): label for label in set(y.tolist())}
    weights = {}
    for pair in text.split(","):
        name, colon, weight = pair.rpartition(":")
        known = ", ".join(sorted(names)[:8])
        if colon and name not in names:
            raise ValueError(f"--class-weight {text}: there is no class {name!r}; the classes of {path} are {known}")
        try:
            weights[names[name]] = positive(weight)
        except (KeyError, argparse.ArgumentTypeError):
            raise ValueError(
                f"--class-weight {text}: {pair!r} is not CLASS:WEIGHT with a weight > 0; "
                f"the classes of {path} are {known}"
            ) from None
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
        gap, tol, options = self.gap, self.options.tol, self.options
        problem = f"{options.loss} loss, C = {options.C:g}{', no bias' if options.no_bias else ''}"
        if options.class_weight is not None:
            problem += f", class weights {options.class_weight}"
        steps = f"{self.iterations:,} iteration{'s' if self.iterations != 1 else ''}"
        names = [text_of(name) for name in self.model.classes.tolist()]
        shown = ", ".join(names[:6]) + (f" … ({len(names)} in all)" if len(names) > 6 else "")
        facts: list[tuple[str, Any]] = [
            ("data", f"{options.data}: {self.rows:,} rows, {self.columns:,} columns, classes {shown}"),
            ("problem", problem),
            ("time", f"{self.read_in:.2f} s to read, {self.trained_in:.2f} s to train ({steps})"),
            ("right on these rows", f"{self.right:,} of {self.rows:,} ({100 * self.right / self.rows:.2f} %)"),
        ]
        if tested is not None:
            share = f"{tested.right:,} of {tested.rows:,} ({100 * tested.accuracy:.2f} %)"
            facts.append(("right on the test rows", share))
            facts += [("unknown in the test rows", f"{many:,} × {label}") for label, many in tested.unknown.items()]
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

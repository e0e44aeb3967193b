"""`widemargin train --kernel`: a kernel machine, its file and its report."""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from widemargin.cli import INTERRUPTED, REACHED, SHORT
from widemargin.cli.reading import read, read_like, remember_base
from widemargin.cli.screen import note, say, show, show_json, show_table
from widemargin.cli.text import text_of
from widemargin.cli.train import about, checkpoint_for, class_weight, labels_of, target_for, until_stopped
from widemargin.cli.writing import writing

if TYPE_CHECKING:
    from widemargin.data import Dataset
    from widemargin.model_kernel import KernelModel

#: What training and its report need, imported while the rows are read.
NEEDED = ("widemargin.estimators", "widemargin.model_kernel", "safetensors", "rich.table", "rich.console")
#: As many pairs of classes are listed at most, those with the widest gaps.
MOST_PAIRS = 20
#: The relative gap that is proved unless told otherwise, as in KernelSVM.
TOL = 1e-3


def run_kernel(options: argparse.Namespace) -> int:
    """Trains, writes the model, reports."""
    _check_options(options)
    options.tol = TOL if options.tol is None else options.tol
    target = target_for(options)
    began = time.perf_counter()
    with checkpoint_for(options) as (kept, state, _), until_stopped(kept) as training:
        return _run(options, target, began, kept, state, training)


def _run(options: argparse.Namespace, target: Path, began: float, kept: Any, state: Any, training: list[bool]) -> int:
    """The same, from the reading on."""
    found = read(options.data, options, needed=NEEDED)
    read_in = time.perf_counter() - began

    from widemargin import model_libsvm
    from widemargin.checkpoint import Stopped
    from widemargin.estimators import IndefiniteKernelWarning

    X = getattr(found.X, "X", found.X)  # of a store, all of its rows
    y, labels = labels_of(options.data, found.y)
    if options.format == "libsvm":
        model_libsvm.check(options.kernel, labels, target)
    tested = None
    if options.test is not None:  # its mistakes are found before the training, not after it
        from widemargin.cli.evaluate import check_known

        remember_base(options, found.zero_based, options.test)
        tested = read_like(options.test, options, found.encoding, X.shape[1], kernel=True)
        check_known(tested.y, labels, options.test)
    clf = _estimator(options, y)
    began = time.perf_counter()
    try:
        with about(options.data), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")  # that the gap is wider than asked for is in the report
            training.append(True)
            clf._fit(X, y, resumed=state, keep=None if kept is None else kept.visit)
    except Stopped:
        note(f"stopped; the state is saved in {options.checkpoint}: go on with --resume")
        return INTERRUPTED
    except KeyboardInterrupt:
        saved = kept is not None and kept.file.exists()
        note("interrupted; no model was written" + (f", the last state is in {kept.file}" if saved else ""))
        return INTERRUPTED
    trained_in = time.perf_counter() - began
    model = _model(clf, found, options)
    with writing(target):
        model.save(target, format=options.format)
    if kept is not None:
        kept.clear()

    from widemargin.cli.evaluate import evaluated

    proof = clf.certificate_
    several = hasattr(proof, "each")
    right = evaluated(model, replace(found, X=X), options.data, options.threads).right if several else proof.right
    test = None if tested is None else evaluated(model, tested, options.test, options.threads)
    report = _Report(options, clf, model, target, (read_in, trained_in), (*X.shape, right))
    report.remarks = [str(one.message) for one in caught if issubclass(one.category, IndefiniteKernelWarning)]
    if options.json:
        show_json({**report.as_json(), "test": None if test is None else test.to_json()})
    else:
        report.show(test)
    return REACHED if report.reached else SHORT


def _check_options(options: argparse.Namespace) -> None:
    """Refuses what makes no sense with a kernel, or with this one."""
    from widemargin.kernels.functions import PARAMETERS

    for name in ("gamma", "degree", "coef0"):
        if getattr(options, name) is not None and name not in PARAMETERS.get(options.kernel, ()):
            able = ", ".join(kernel for kernel, has in PARAMETERS.items() if name in has)
            raise ValueError(f"--{name}: the {options.kernel} kernel has none; leave it out, or use --kernel {able}")
    if options.loss != "hinge":
        raise ValueError(
            f"--loss {options.loss} is for linear models; with --kernel the loss is the hinge: leave it out"
        )
    if options.solver not in ("auto", "smo"):
        from widemargin.solvers import SOLVERS

        if options.solver in SOLVERS:
            raise ValueError(f"--solver {options.solver} is for linear models; with --kernel use auto or smo")
    if options.no_bias:
        raise ValueError("--no-bias is for linear models; a kernel machine has a bias: leave it out")
    if options.format == "liblinear":
        raise ValueError("--format liblinear is for linear models; with --kernel use --format libsvm or safetensors")
    if options.cache is not None:
        raise ValueError("--cache keeps rows on disk, and --kernel trains in memory; leave it out")


def _estimator(options: argparse.Namespace, y: Any) -> Any:
    from widemargin import KernelSVM

    given = {name: getattr(options, name) for name in ("gamma", "degree", "coef0", "cache_size")}
    return KernelSVM(
        options.C,
        kernel=options.kernel,
        class_weight=class_weight(options.class_weight, y, options.data),
        tol=options.tol,
        solver=options.solver,
        max_iter=options.max_iter,
        n_jobs=options.threads or None,
        random_state=options.seed,
        verbose=int(sys.stderr.isatty()),
        **{name: value for name, value in given.items() if value is not None},
    )


def _model(clf: Any, found: Dataset, options: argparse.Namespace) -> KernelModel:
    """The model, with the problem and the proof."""
    from widemargin.model_kernel import KernelModel

    model, weight = KernelModel.from_estimator(clf), clf.class_weight
    return replace(
        model,
        feature_names=found.names,
        encoding=None if found.encoding is None else found.encoding.to_json(),
        C=options.C,
        zero_based=found.zero_based,
        certificate={
            **(model.certificate or {}),
            "class_weight": [list(pair) for pair in weight.items()] if isinstance(weight, dict) else weight,
        },
    )


class _Report:
    """What a newcomer wants to know, in words."""

    #: Why nothing is proved, if that is so.
    remarks: Sequence[str] = ()

    def __init__(
        self,
        options: argparse.Namespace,
        clf: Any,
        model: KernelModel,
        target: Path,
        seconds: tuple[float, float],
        counts: tuple[int, int, int],
    ) -> None:
        self.options, self.model, self.target, self.proof = options, model, target, clf.certificate_
        (self.read_in, self.trained_in), (self.rows, self.columns, self.right) = seconds, counts
        self.iterations = int(max(clf.n_iter_) if hasattr(clf.n_iter_, "__len__") else clf.n_iter_)
        self.reached = bool(self.proof.relative_gap <= options.tol)

    def as_json(self) -> dict[str, Any]:
        """Numbers for scripts."""
        options, kernel = self.options, self.model.kernel
        return {
            "model": str(self.target),
            "rows": self.rows,
            "columns": self.columns,
            "classes": self.model.classes.tolist(),
            "C": "inf" if math.isinf(options.C) else options.C,
            "loss": "hinge",
            "kernel": {"name": kernel.name, **kernel.parameters},
            "support_vectors": int(self.model.n_support.sum()),
            "solver": options.solver,
            "iterations": self.iterations,
            "seconds": {"reading": self.read_in, "training": self.trained_in},
            "training_accuracy": self.right / self.rows,
            "reached": self.reached,
            "certificate": self.model.certificate,
            "remarks": [*self.remarks],
        }

    def show(self, tested: Any) -> None:
        """Tables and sentences."""
        options, model = self.options, self.model
        problem = f"kernel {model.kernel}, C = {options.C:g}"
        if options.class_weight is not None:
            problem += f", class weights {options.class_weight}"
        steps = f"{self.iterations:,} iteration{'s' if self.iterations != 1 else ''}"
        names = [text_of(name) for name in model.classes.tolist()]
        shown = ", ".join(names[:6]) + (f" … ({len(names)} in all)" if len(names) > 6 else "")
        count = int(model.n_support.sum())
        facts: list[tuple[str, Any]] = [
            ("data", f"{options.data}: {self.rows:,} rows, {self.columns:,} columns, classes {shown}"),
            ("problem", problem),
            ("time", f"{self.read_in:.2f} s to read, {self.trained_in:.2f} s to train ({steps})"),
            ("support vectors", f"{count:,} of {self.rows:,} rows ({100 * count / self.rows:.2f} %)"),
            ("right on these rows", f"{self.right:,} of {self.rows:,} ({100 * self.right / self.rows:.2f} %)"),
        ]
        if tested is not None:
            share = f"{tested.right:,} of {tested.rows:,} ({100 * tested.accuracy:.2f} %)"
            facts.append(("right on the test rows", share))
            facts += [("unknown in the test rows", f"{many:,} × {label}") for label, many in tested.unknown.items()]
        facts.append(("model", str(self.target)))
        show("Trained", facts)
        say()
        self._show_proof(names)
        say()
        gap, tol = self.proof.relative_gap, options.tol
        if self.reached:
            say(
                f"No function of this kernel can lower the objective by more than {gap:.1e} of it: proved, as asked "
                f"for ({tol:.0e})."
            )
        elif self.remarks:
            say(f"NOTHING is proved: {self.remarks[0]}.")
        else:
            say(
                f"NOT as good as asked for: the relative gap is {gap:.1e}, not {tol:.1e}. Scale the columns, raise "
                "--max-iter, or ask for a larger --tol."
            )

    def _show_proof(self, names: list[str]) -> None:
        """A line for each pair of classes; of many pairs, those with the widest gaps."""
        each = getattr(self.proof, "each", (self.proof,))
        pairs = [f"{names[i]} vs {names[j]}" for i, j in self.model.pairs]
        listed = list(zip(pairs, each, strict=True))
        if len(listed) > MOST_PAIRS:
            listed = sorted(listed, key=lambda pair: -pair[1].relative_gap)[:MOST_PAIRS]
        lines = [
            (
                pair,
                one.primal,
                one.dual if math.isfinite(one.rounding) else "–",  # of a kernel that is none
                f"{one.relative_gap:.1e}",
                f"{one.width:.4g}",
                len(one.support),
                one.misclassified,
            )
            for pair, one in listed
        ]
        heads = ("pair", "objective", "lower bound", "relative gap", "margin width", "support vectors", "misclassified")
        which = f": the {MOST_PAIRS} widest gaps of {len(pairs):,} pairs" if len(listed) < len(pairs) else ""
        show_table(f"Proof{which}", heads, lines)

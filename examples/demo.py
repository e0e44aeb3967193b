"""Fits with their proofs, some beside scikit-learn's: measured data, text-like data, and the lecture's examples."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from joblib import cpu_count
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer
from sklearn.svm import LinearSVC

from widemargin import InseparableError, LinearSVM, certify
from widemargin.plots import ConvergenceDisplay, HullDisplay, MarginDisplay, kernels_figure, share_legend
from widemargin.plots.demo import shapes

FEATURES = 40_000
SHARP = "LinearSVM(tol=1e-8)"


def main() -> None:
    """Run the four parts and say which pictures they drew."""
    example = "example: python examples/demo.py --rows 50000 --output pictures"
    parser = argparse.ArgumentParser(description=__doc__, epilog=example)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of the text-like data (default: %(default)s)")
    parser.add_argument("--output", type=Path, default="demo", help="folder of the pictures (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.rows < 100:
        parser.error(f"--rows {arguments.rows}: give at least 100")
    plt.switch_backend("Agg")  # pictures go to files, on machines without a screen too
    arguments.output.mkdir(parents=True, exist_ok=True)
    figures = {
        "breast-cancer": breast_cancer(),
        "text": text(arguments.rows),
        "lecture": lecture(),
        "kernels": kernels(),
    }
    print("\nPictures")
    for name, figure in figures.items():
        path = arguments.output / f"{name}.png"
        figure.savefig(path, dpi=150)
        print(f"  {path}")


def breast_cancer() -> Any:
    """Data whose columns differ a thousandfold in scale: what a solver's silence hides."""
    heading("1. Breast cancer: 569 rows, 30 columns as they are; hinge loss, C = 1")
    data = load_breast_cancer()
    X, y = data.data, data.target_names[data.target]
    ours, seconds, _ = timed(LinearSVM(), X, y)
    theirs, their_seconds, warning = timed(LinearSVC(loss="hinge", random_state=0), X, y)
    mine, other = ours.certificate_, certify(X, y, theirs.coef_, theirs.intercept_)
    table(
        ("", "LinearSVM", "LinearSVC"),
        ("primal", f"{mine.primal:.6f}", f"{other.primal:.6f}"),
        ("dual, at most the minimum", f"{mine.dual:.6f}", f"{other.dual:.6f}"),
        ("relative gap", f"{mine.relative_gap:.1e}", f"{other.relative_gap:.1e}"),
        ("margin width", f"{mine.width:.4f}", f"{other.width:.4f}"),
        ("support vectors", f"{len(mine.support)}", "–"),
        ("worst KKT miss", f"{mine.kkt_violation:.1e}", f"{other.kkt_violation:.1e}"),
        ("inside the margin or beyond", f"{mine.violations}", f"{other.violations}"),
        ("misclassified", f"{mine.misclassified}", f"{other.misclassified}"),
        ("training accuracy", f"{ours.score(X, y):.1%}", f"{theirs.score(X, y):.1%}"),
        ("seconds", f"{seconds:.3f}", f"{their_seconds:.3f}"),
    )
    with_ones = np.column_stack([X, np.ones(len(X))])
    own = certify(with_ones, y, np.column_stack([theirs.coef_, theirs.intercept_]), fit_intercept=False)
    print(
        f"LinearSVC stopped after {theirs.n_iter_:,} passes, {other.relative_gap:.0%} above the minimum; "
        f"what it says about that:\n  {warning or 'nothing'}\n"
        f"It penalises the bias too; by that objective of its own it is {own.relative_gap:.0%} above the minimum."
    )
    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    for ax, clf in zip(axes, (ours, theirs), strict=True):
        MarginDisplay.from_estimator(clf, X, y, ax=ax)
        for marks in [one for one in ax.collections if str(one.get_label()).startswith("beyond")]:
            marks.remove()  # they are about a wider frame than the one below
        beyond = int((abs(clf.decision_function(X)) > 5).sum())
        ax.set(title=f"{type(clf).__name__} ({beyond} rows lie beyond ±5)", xlim=(-5, 5), ylim=(-1000, 1400))
    share_legend(axes, figure, loc="outside lower center", ncols=4)
    return figure


def text(rows: int) -> Any:
    """Many sparse rows: how long the proof takes."""
    heading(f"2. Text-like data: {rows:,} rows, {FEATURES:,} columns, a tenth of the labels wrong; hinge loss, C = 1")
    X, y = text_like(rows, seed=0)
    ours, seconds, _ = timed(LinearSVM(verbose=1), X, y)
    sharp, sharp_seconds, _ = timed(LinearSVM(tol=1e-8, verbose=1), X, y)
    theirs, their_seconds, _ = timed(LinearSVC(loss="hinge", random_state=0), X, y)
    their_gap = certify(X, y, theirs.coef_, theirs.intercept_).relative_gap
    table(
        ("", "seconds", "relative gap", "training accuracy"),
        ("LinearSVM", f"{seconds:.2f}", f"{ours.certificate_.relative_gap:.1e}", f"{ours.score(X, y):.1%}"),
        (SHARP, f"{sharp_seconds:.2f}", f"{sharp.certificate_.relative_gap:.1e}", f"{sharp.score(X, y):.1%}"),
        ("LinearSVC", f"{their_seconds:.2f}", f"{their_gap:.1e}", f"{theirs.score(X, y):.1%}"),
    )
    print(
        f"LinearSVC, on one core, took {their_seconds / sharp_seconds:.1f} times the seconds of {SHARP}, "
        f"on {cpu_count()}.\nIts gap is for the problem with an unpenalised bias, by certify; it penalises its own."
    )
    display = ConvergenceDisplay.from_estimators({"LinearSVM": ours, SHARP: sharp})
    display.ax_.plot(their_seconds, their_gap, "k*", markersize=11, label="LinearSVC, when done")
    display.ax_.set_title(f"{rows:,} text-like rows")
    share_legend([display.ax_], display.figure_, loc="outside lower center", ncols=2)
    return display.figure_


def text_like(rows: int, seed: int, features: int = FEATURES, words: int = 70) -> tuple[csr_array, np.ndarray]:
    """Rows like tf-idf of texts: some of many words each, drawn by Zipf's law, scaled to length 1."""
    rng = np.random.default_rng(seed)
    starts = np.append(0, rng.poisson(words, rows).cumsum()).astype(np.int32)
    drawn = (features + 1.0) ** rng.random(starts[-1])  # its whole part k has a chance of about 1 / (k log d)
    X = csr_array((np.ones(len(drawn)), drawn.astype(np.int32) - 1, starts), shape=(rows, features))
    X.sum_duplicates()
    rarity = 1 + np.log((1 + rows) / (1 + np.bincount(X.indices, minlength=features)))
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    X.data /= np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])).repeat(np.diff(X.indptr))
    scores = X @ rng.standard_normal(features)
    return X, np.where((scores > np.median(scores)) ^ (rng.random(rows) < 0.1), 1, -1)


def lecture() -> Any:
    """The examples whose answers are known in closed form."""
    heading("3. The lecture's examples: (1, 1)+ (1, −1)+ (−1, 1)− (−1, −1)− and one more")
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    lines = [("one more", "C", "w", "b", "gap")]
    cases = [((-0.1, -0.1), 1.0), (None, 1e10), ((-0.01, -0.01), 1e10), ((-2.0, 0.0), 1.0), ((-2.0, 0.0), np.inf)]
    for ax, (more, C) in zip(axes.flat, cases, strict=False):
        X = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1), *([more] if more else [])], dtype=float)
        y = np.array([1, 1, -1, -1, 1])[: len(X)]
        name = f"{point(more)}+" if more else "none"
        try:
            svm = LinearSVM(C).fit(X, y)
        except InseparableError as proof:
            lines.append((name, f"{C:g}", "–", "–", "–"))
            positive = mean(X[proof.positive], proof.positive_weights)
            negative = mean(X[proof.negative], proof.negative_weights)
            reason = f"C = {C:g}: no line separates the classes, for {positive} = {negative} = {point(proof.point)}."
            HullDisplay.from_data(X, y, proof=proof, ax=ax)
        else:
            w, b = svm.coef_[0].round(6) + 0.0, svm.intercept_[0].round(6) + 0.0  # + 0.0 turns −0 into 0
            lines.append((name, f"{C:g}", f"({w[0]:.6f}, {w[1]:.6f})", f"{b:.6f}", f"{svm.certificate_.gap:.1g}"))
            MarginDisplay.from_estimator(svm, X, y, ax=ax)
        ax.set(xlim=(-2.4, 1.6), ylim=(-1.5, 1.5), aspect="equal")
        ax.set_title(f"C = {C:g}, one more: {name}", fontsize="medium")
    table(*lines)
    print(reason)
    axes.flat[-1].set_axis_off()
    share_legend(axes.flat[:-1], axes.flat[-1], loc="center")
    return figure


def kernels() -> Any:
    """What a kernel does where no line separates the classes."""
    heading("4. Kernels: classes that no line separates, 120 rows each")
    lines = [("", "LinearSVM accuracy", "KernelSVM accuracy", "support vectors", "relative gap", "seconds")]
    for name, (svm, X, y) in shapes().items():
        _, seconds, _ = timed(svm, X, y)
        numbers = f"{len(svm.support_)}", f"{svm.certificate_.relative_gap:.1e}", f"{seconds:.3f}"
        lines.append((name, f"{LinearSVM().fit(X, y).score(X, y):.1%}", f"{svm.score(X, y):.1%}", *numbers))
    table(*lines)
    return kernels_figure()


def timed(clf: Any, X: Any, y: Any) -> tuple[Any, float, str]:
    """The classifier fitted, the seconds it took, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        clf.fit(X, y)
        return clf, time.perf_counter() - begin, " ".join(str(one.message) for one in caught)


def point(x: Any) -> str:
    """(x₁, x₂)"""
    return f"({x[0]:.3g}, {x[1]:.3g})"


def mean(points: Any, weights: Any) -> str:
    """Σ weight · point"""
    return " + ".join(f"{weight:.3g}·{point(x)}" for x, weight in zip(points, weights, strict=True))


def heading(title: str) -> None:
    """A line with a rule under it."""
    print(f"\n{title}\n{'─' * len(title)}", flush=True)


def table(*lines: tuple[str, ...]) -> None:
    """Columns side by side, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        print("  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]), flush=True)


if __name__ == "__main__":
    main()

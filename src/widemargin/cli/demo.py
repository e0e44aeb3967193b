"""examples:
widemargin demo
widemargin demo 0.1
widemargin demo 1e10 -o margin.svg
"""  # the end of --help

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from widemargin.cli.screen import say, show_table
from widemargin.cli.text import positive
from widemargin.cli.writing import target_of, writing

PICTURES = (".png", ".svg", ".pdf")


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("C", type=positive, nargs="?", help="strength of the loss; 1e10, 0.1 and 0.01 if not said")
    parser.add_argument("-o", "--output", default="demo.png", help="the picture: .png, .svg or .pdf; demo.png")


def run(options: argparse.Namespace) -> int:
    """Fits the notes' points, prints the numbers, draws the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from widemargin import LinearSVM
    from widemargin.plots.demo import clouds, margins_figure
    from widemargin.whole_files import written_aside

    strengths = [1e10, 0.1, 0.01] if options.C is None else [options.C]
    if (suffix := Path(options.output).suffix.lower()) not in PICTURES:
        raise ValueError(f"{options.output}: no picture ends in '{suffix}'; use one of {', '.join(PICTURES)}")
    target = target_of(options.output)
    X, y = clouds()
    fits = [LinearSVM(C, tol=1e-9).fit(X, y) for C in strengths]
    lines: list[tuple[Any, ...]] = []
    for C, svm in zip(strengths, fits, strict=True):
        proof: Any = svm.certificate_
        w, b = svm.coef_[0], svm.intercept_[0]
        numbers = (round(float(one), 4) for one in (*w, b, proof.width))
        lines.append((f"{C:g}", *numbers, len(proof.support), proof.misclassified, f"{proof.relative_gap:.1e}"))
    heads = ("C", "w₁", "w₂", "b", "margin width", "support vectors", "misclassified", "relative gap")
    show_table("The notes' two clouds", heads, lines)
    figure = margins_figure(fits, X, y)
    with writing(target), written_aside(target) as beside:
        figure.savefig(beside, format=suffix[1:], dpi=150)
    say(f"\nThe larger C, the fewer points may lie inside the margin, and the narrower it is. Picture: {target}")
    return 0

"""REPORT: one page about one model, for a person who never saw the tool: how good it is, and whether to trust it.

The page is a single HTML file that asks nothing of the network. Every word that comes from data or names goes through
`escaped`, which escapes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.certificate import Certificate, Certificates
from widemargin.plots.look import pyplot
from widemargin.report.first_screen import first_screen
from widemargin.report.markup import escaped
from widemargin.report.sections import (
    certificate_part,
    evaluation_part,
    features_part,
    kernel_part,
    pictures_part,
    settings_part,
    violations_part,
)
from widemargin.report.subject import subject_of
from widemargin.whole_files import written_aside

__all__ = ["report", "write_report"]


def write_report(
    path: str | os.PathLike[str],
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    source: str = "",
    model_name: str = "",
    certificate: Certificate | Certificates | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Write the page of `report` to a file: whole, or not at all."""
    page = report(
        model,
        X,
        y,
        names=names,
        source=source,
        model_name=model_name,
        certificate=certificate,
        parameters=parameters,
    )
    target = Path(path)
    with written_aside(target) as beside:
        beside.write_text(page, encoding="utf-8")


def report(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    source: str = "",
    model_name: str = "",
    certificate: Certificate | Certificates | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> str:
    """A page about a model and some rows with their labels: evaluation, certificate, pictures, features, worst rows.

    Of a kernel machine, which has no weights of features, the kernel and the support vectors are shown in their place.

    Parameters
    ----------
    model : fitted estimator, LinearModel or KernelModel
        An estimator with a ``certificate_`` that was fitted to these rows brings its proof.
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        The rows to judge it by.
    y : array of shape (n_samples,)
        Labels; those that the model does not know count as mistakes.
    names : names of the features, optional
        Without them, the estimator's own, or numbers from 1.
    source, model_name : str
        What the data and the model are called.
    certificate : Certificate or Certificates, optional
        The proof of a model that does not bring its own, computed on these rows.
    parameters : mapping, optional
        C, loss, fit_intercept and class_weight of the problem that `certificate` is about, as ``LinearSVM`` takes them:
        with them the optimality of every row is drawn.

    Returns
    -------
    HTML.

    Examples
    --------
    >>> from widemargin import LinearSVM
    >>> from widemargin.report import report
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.1, -0.1]], [1, 1, 0, 0, 1]
    >>> "Of 5 rows, 4 are classified rightly (80.0\u00a0%)" in report(LinearSVM().fit(X, y), X, y)
    True

    """
    pyplot()  # the error that names the extra, before any work is done
    subject = subject_of(model, X, np.asarray(y), names, certificate, parameters)
    title = model_name or type(model).__name__
    parts = [
        first_screen(subject, title, source),
        evaluation_part(subject.evaluation),
        certificate_part(subject),
        pictures_part(subject),
        kernel_part(subject) if subject.coef is None else features_part(subject),
        violations_part(subject),
        settings_part(subject),
    ]
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    style = files("widemargin.report").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}: report</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n<footer>Written by widemargin. This page is complete in itself: it loads nothing and sends nothing."
        "</footer>\n</body>\n</html>\n"
    )

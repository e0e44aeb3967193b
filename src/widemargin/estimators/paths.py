"""Models for many strengths C, each begun where the last one ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from widemargin.certificate import Certificate, Certificates
from widemargin.estimators.certified_classifier import CertifiedClassifier, Solution
from widemargin.estimators.linear_svm import LinearSVM
from widemargin.solvers import Start

#: Two solutions point to a third that is at most this many times as far as they are from each other.
FAR = 3.0


@dataclass(frozen=True)
class Path(Sequence[CertifiedClassifier]):
    """Fitted classifiers in the order of their `Cs`; printing it shows how margin and support vectors change."""

    Cs: tuple[float, ...]
    models: tuple[CertifiedClassifier, ...]

    @property
    def certificates(self) -> tuple[Certificate | Certificates, ...]:
        """The proof of each model."""
        return tuple(model.certificate_ for model in self.models)

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # as Sequence declares it, int or slice
        return self.models[index]

    def __str__(self) -> str:
        lines = [("C", "primal", "relative gap", "margin width", "support vectors")]
        for C, model in zip(self.Cs, self.models, strict=True):
            proofs = model.certificate_
            each = list(proofs) if isinstance(proofs, Certificates) else [proofs]
            primal, width = sum(one.primal for one in each), min(one.width for one in each)
            gap = f"{proofs.relative_gap:.1e}"
            lines.append((f"{C:g}", f"{primal:.6g}", gap, f"{width:.4g}", f"{len(model.support_):,}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
        )


def path(
    X: Any,
    y: ArrayLike,
    Cs: float | Iterable[float] = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3),
    *,
    estimator: CertifiedClassifier | None = None,
    sample_weight: ArrayLike | None = None,
) -> Path:
    """A model and its certificate for every C, at a fraction of the cost of as many fits.

    Models are trained from the smallest C to the largest; each begins where the two before it point.

    Parameters
    ----------
    X, y, sample_weight : arrays
        As in ``LinearSVM.fit``.
    Cs : numbers > 0, default=0.001, 0.01, … 1000
        In any order; the models come back in the same. One C will do.
    estimator : LinearSVM or LogisticRegression, default=LinearSVM()
        Loss, bias, tol and all else; it is not changed.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = path(scale(X), y, [0.01, 1, 100])
    >>> [len(model.support_) for model in found], max(one.relative_gap for one in found.certificates) <= 1e-3
    ([118, 40, 31], True)

    """
    given = list(Cs) if isinstance(Cs, Iterable) else [Cs]
    if not given or not all(isinstance(C, Real) and not np.isnan(float(C)) for C in given):
        raise ValueError(f"Cs={given}; give at least one C > 0, and numbers only")
    wanted = tuple(map(float, given))
    if estimator is not None and "C" not in estimator.get_params():
        raise ValueError(f"estimator={estimator!r} has no C; use LinearSVM or LogisticRegression")
    current = clone(LinearSVM() if estimator is None else estimator)
    models: dict[float, CertifiedClassifier] = {}
    ends: list[list[Solution]] = []
    first = min(wanted)
    classes, problems = current.set_params(C=first).problems(X, y, sample_weight)
    for C in sorted(set(wanted)):
        current.set_params(C=C)
        if np.isfinite(C) and C / first * float(problems[0].c.max()) < np.inf:
            starts = [_continued(one, C) for one in zip(*ends, strict=True)] if ends else None
            current.solve([replace(problem, c=C / first * problem.c) for problem in problems], classes, starts)
            ends = [*ends[-1:], current.solutions(problems)]
        else:  # the hard margin, or an error that says that C is too large
            current.fit(X, y, sample_weight)
        models[C] = copy(current)
    return Path(wanted, tuple(models[C] for C in wanted))


def _continued(before: Sequence[Solution], C: float) -> Start:
    """Where the last two solutions of a class point: with the hinge, α is a polygon in C, and so are w and b."""
    first, last = before[0], before[-1]
    reach = (C - last.C) / (last.C - first.C) if last.C > first.C else np.inf
    if reach > FAR:
        return Start(C / last.C * last.alpha, last.b, last.w, hopeful=False)
    alpha, b = last.alpha + reach * (last.alpha - first.alpha), last.b + reach * (last.b - first.b)
    return Start(alpha, b, last.w + reach * (last.w - first.w), hopeful=False)

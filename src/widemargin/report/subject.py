"""What a report is about: a model, some rows, and what the one says of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import Certificate, Certificates
from widemargin.data import Rows
from widemargin.evaluation import Evaluation, evaluate
from widemargin.model import LinearModel
from widemargin.report.markup import escaped

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Weights:
    """A bare model with the attributes of a fitted estimator."""

    model: Any
    certificate: Certificate | Certificates | None

    @property
    def classes_(self) -> NDArray[Any]:
        return np.asarray(self.model.classes)

    @property
    def coef_(self) -> Floats:
        return np.atleast_2d(self.model.coef)

    @property
    def intercept_(self) -> Floats:
        return np.ravel(self.model.intercept)

    def decision_function(self, X: Any) -> Floats:
        ready = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        if ready.dtype not in (np.float32, np.float64):
            ready = ready.astype(np.float64)
        return LinearModel(self.coef_, self.intercept_, self.classes_).scores(Rows(ready))


class _Certified(_Weights):
    """A bare model whose certificate is known: its support vectors are too."""

    @property
    def certificate_(self) -> Certificate | Certificates | None:
        return self.certificate

    @property
    def support_(self) -> NDArray[np.intp]:
        return each_of(self.certificate)[0].support

    @property
    def loss(self) -> str:
        known = getattr(self.model, "loss", None)
        return known or ("hinge" if each_of(self.certificate)[0].kkt[0].demand != "–" else "logistic")


@dataclass(frozen=True)
class Subject:
    """The model, the rows, and what the one says of the other."""

    clf: Any
    X: Any
    y: NDArray[Any]
    coef: Floats
    names: Sequence[str] | None
    scores: Floats
    predicted: NDArray[Any]
    evaluation: Evaluation
    certificate: Certificate | Certificates | None
    #: Whether the certificate is about these rows, so that the model was trained on them or judged by them.
    proved_here: bool

    def feature(self, k: int) -> str:
        """What a feature is called, as HTML."""
        return escaped(self.names[k]) if self.names is not None else f"feature {k + 1:,}"


def subject_of(model: Any, X: Any, y: NDArray[Any], names: Any, certificate: Any) -> Subject:
    """Ask the model about the rows, or say what is wrong with either."""
    clf = model
    if not hasattr(model, "coef_"):
        if not all(hasattr(model, attribute) for attribute in ("coef", "intercept", "classes")):
            raise TypeError(f"model is a {type(model).__name__}; give a fitted linear classifier or a LinearModel")
        clf = _Weights(model, None) if certificate is None else _Certified(model, certificate)
    proof = certificate if certificate is not None else getattr(clf, "certificate_", None)
    coef = np.atleast_2d(clf.coef_.toarray() if hasattr(clf.coef_, "toarray") else np.asarray(clf.coef_))
    names = getattr(clf, "feature_names_in_", None) if names is None else names
    if names is not None and len(names) != coef.shape[1]:
        raise ValueError(f"names has {len(names)} names; the model has {coef.shape[1]} features")
    scores = np.asarray(clf.decision_function(X), dtype=np.float64)
    if len(scores) != len(y):
        raise ValueError(f"X has {len(scores)} rows and y has {len(y)} labels")
    classes = np.asarray(clf.classes_)
    predicted = classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
    chances = clf.predict_proba(X) if hasattr(clf, "predict_proba") else None
    if isinstance(model, LinearModel) and model.loss in ("logistic", "multinomial"):
        chances = model.probabilities(scores)
    evaluation = evaluate(y, predicted, scores, chances, classes=classes)
    return Subject(clf, X, y, coef, names, scores, predicted, evaluation, proof, _is_about(proof, y, scores, classes))


def _is_about(proof: Any, y: NDArray[Any], scores: Floats, classes: NDArray[Any]) -> bool:
    """Whether these rows have the slacks that the certificate counted."""
    if proof is None:
        return False
    columns = scores[:, None] if scores.ndim == 1 else scores
    for one, column, target in zip(each_of(proof), columns.T, classes[-columns.shape[1] :], strict=True):
        if len(one.alpha) != len(y):
            return False
        slack = np.maximum(0.0, 1 - np.where(y == target, column, -column)).sum()
        if one.rows == len(y) and abs(slack - one.slack) > 1e-6 * (1 + one.slack):
            return False
    return True


def each_of(proof: Any) -> tuple[Certificate, ...]:
    """The certificates of all classes, or the only one."""
    return tuple(proof) if isinstance(proof, Certificates) else (proof,)

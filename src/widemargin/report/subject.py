"""What a report is about: a model, some rows, and what the one says of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import Certificate, Certificates
from widemargin.estimators import LinearSVM
from widemargin.evaluation import Evaluation, evaluate
from widemargin.model import LinearModel
from widemargin.model_kernel import KernelModel, one_vs_rest_scores
from widemargin.plots.kkt import OtherProblemError
from widemargin.plots.pairs import in_pairs, scores_of
from widemargin.plots.sides import dense, is_about, walkable
from widemargin.problem import Problem
from widemargin.report.markup import escaped

Floats = NDArray[np.float64]

#: A proof found anew is as sharp as this.
SHARP = 1e-3
#: Slacks of the same rows add up to the same, but for this share.
SAME_SLACK = 1e-6


@dataclass(frozen=True)
class _Weights:
    """A bare model with the attributes of a fitted estimator."""

    model: Any

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
        return LinearModel(self.coef_, self.intercept_, self.classes_).scores(walkable(X))


@dataclass(frozen=True)
class _Certified(_Weights):
    """A bare model whose certificate is known: its support vectors are too."""

    certificate_: Certificate | Certificates
    #: Those of LinearSVM for the problem that the certificate is about, if they are known.
    parameters: Mapping[str, Any] | None

    @property
    def support_(self) -> NDArray[np.intp]:
        return each_of(self.certificate_)[0].support

    @property
    def loss(self) -> str | None:
        return self.parameters["loss"] if self.parameters is not None else getattr(self.model, "loss", None)

    def problems(self, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], list[Problem]]:
        if self.parameters is None:
            raise OtherProblemError("the problem of this certificate is not known")
        return LinearSVM(**self.parameters).problems(X, y, sample_weight)


class _KernelMachine:
    """A bare kernel model with the attributes of a fitted estimator."""

    decision_function_shape = "ovr"

    def __init__(self, model: KernelModel, X: Any, y: NDArray[Any], certificate: Any) -> None:
        self.model, self.kernel, self.break_ties = model, model.kernel.name, model.break_ties
        self.classes_, self.intercept_, self.n_support_ = model.classes, model.intercept, model.n_support
        self.support_vectors_, self.dual_coef_ = model.support_vectors, model.dual_coef
        self.n_features_in_ = int(np.shape(X)[1])  # sparse rows may have more columns than the support vectors
        try:
            self.support_ = model.find_support(walkable(X).X, y)
        except ValueError:  # not the rows of its training
            self.support_ = np.empty(0, dtype=np.intp)
        if certificate is not None:
            self.certificate_ = certificate

    def decision_function(self, X: Any) -> Floats:
        if self.decision_function_shape == "ovo" and len(self.classes_) > 2:
            return self.model.pair_scores(walkable(X))
        return self.model.scores(walkable(X))


@dataclass(frozen=True)
class Subject:
    """The model, the rows, and what the one says of the other."""

    clf: Any
    X: Any
    y: NDArray[Any]
    #: None where the score is no linear function of the features.
    coef: Floats | None
    #: How many features there are.
    features: int
    names: Sequence[str] | None
    scores: Floats
    predicted: NDArray[Any]
    evaluation: Evaluation
    certificate: Certificate | Certificates | None
    #: Whether the certificate is about these rows.
    proved_here: bool
    #: Whether the model is known to have been trained on these rows.
    trained_here: bool

    @property
    def gap(self) -> float | None:
        """The share of the objective that the gap is, at most 1; infinite where nothing is proved.

        It is that of the certificate; without one, what the model's file says that its training reached.
        """
        said = getattr(getattr(self.clf, "model", None), "certificate", None) or {}
        if self.certificate is None and "relative_gap" not in said:
            return None
        relative = float(said["relative_gap"] if self.certificate is None else self.certificate.relative_gap)
        return relative / (1 + relative) if np.isfinite(relative) else relative

    @property
    def indefinite(self) -> bool:
        """Whether nothing is proved of a kernel machine because its kernel is not positive semidefinite."""
        return self.coef is None and any(np.isinf(one.rounding) for one in each_of(self.certificate or ()))

    @property
    def in_pairs(self) -> bool:
        """Whether several classes are told apart in pairs, not each from the rest."""
        return bool(in_pairs(self.clf))

    def feature(self, k: int) -> str:
        """What a feature is called, as HTML."""
        return escaped(self.names[k]) if self.names is not None else f"feature {k + 1:,}"


def subject_of(
    model: Any, X: Any, y: NDArray[Any], names: Any, certificate: Any, parameters: Mapping[str, Any] | None
) -> Subject:
    """Ask the model about the rows, or say what is wrong with either."""
    if isinstance(model, KernelModel) or (
        hasattr(model, "support_vectors_") and (in_pairs(model) or not hasattr(model, "coef_"))
    ):
        return _kernel_subject(model, X, y, names, certificate)
    clf = model
    if not hasattr(model, "coef_"):
        if not all(hasattr(model, attribute) for attribute in ("coef", "intercept", "classes")):
            raise TypeError(f"model is a {type(model).__name__}; give a fitted linear classifier or kernel machine")
        clf = _Weights(model) if certificate is None else _Certified(model, certificate, parameters)
    proof = certificate if certificate is not None else getattr(clf, "certificate_", None)
    coef = np.atleast_2d(dense(clf.coef_))
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
    here = proof is not None and _is_about(proof, coef, X, y, scores, classes)
    trained = here and _came_with(model, proof)
    return Subject(clf, X, y, coef, coef.shape[1], names, scores, predicted, evaluation, proof, here, trained)


def _kernel_subject(model: Any, X: Any, y: NDArray[Any], names: Any, certificate: Any) -> Subject:
    """The same of a kernel machine, a bare model or a fitted estimator."""
    clf = _KernelMachine(model, X, y, certificate) if isinstance(model, KernelModel) else model
    proof = certificate if certificate is not None else getattr(clf, "certificate_", None)
    features, classes = int(clf.n_features_in_), np.asarray(clf.classes_)
    names = getattr(clf, "feature_names_in_", None) if names is None else names
    if names is not None and len(names) != features:
        raise ValueError(f"names has {len(names)} names; the model has {features} features")
    pairwise = scores_of(clf, X)
    if len(pairwise) != len(y):
        raise ValueError(f"X has {len(pairwise)} rows and y has {len(y)} labels")
    scores = pairwise if len(classes) == 2 else one_vs_rest_scores(pairwise, len(classes))
    predicted = model.choose(scores) if isinstance(model, KernelModel) else np.asarray(model.predict(X))
    evaluation = evaluate(y, predicted, scores, None, classes=classes)
    here = proof is not None and _is_about_pairs(proof, pairwise, y, classes)
    trained = here and _came_with(model, proof)
    return Subject(clf, X, y, None, features, names, scores, predicted, evaluation, proof, here, trained)


def _is_about_pairs(proof: Any, scores: Floats, y: NDArray[Any], classes: NDArray[Any]) -> bool:
    """Whether the certificate of every pair has the rows of its two classes, and the slacks that these have."""
    columns = scores[:, None] if scores.ndim == 1 else scores
    pairs = [(1, 0)] if len(classes) == 2 else list(combinations(range(len(classes)), 2))
    for one, column, (first, second) in zip(each_of(proof), columns.T, pairs, strict=True):
        positive, negative = y == classes[first], y == classes[second]
        slack = np.maximum(0.0, 1 - column[positive]).sum() + np.maximum(0.0, 1 + column[negative]).sum()
        if len(one.alpha) not in (int((positive | negative).sum()), len(y)):
            return False
        if abs(slack - one.slack) > SAME_SLACK * (1 + one.slack) and one.rows == int((positive | negative).sum()):
            return False
    return True


def _is_about(proof: Any, coef: Floats, X: Any, y: NDArray[Any], scores: Floats, classes: NDArray[Any]) -> bool:
    """Whether the certificate of every class is about these rows."""
    rows, columns = walkable(X), scores[:, None] if scores.ndim == 1 else scores
    ends = zip(each_of(proof), coef, columns.T, classes[-columns.shape[1] :], strict=True)
    return all(is_about(one, w, rows, np.where(y == target, 1.0, -1.0), column) for one, w, column, target in ends)


def _came_with(model: Any, proof: Any) -> bool:
    """Whether the proof is that of the model's training: its own, or one that agrees with what its file states."""
    if getattr(model, "certificate_", None) is proof:
        return True
    stated, each = (getattr(model, "certificate", None) or {}).get("each", []), each_of(proof)
    return len(stated) == len(each) and all(_agree(one, said) for one, said in zip(each, stated, strict=True))


def _agree(proof: Certificate, said: Mapping[str, Any]) -> bool:
    """Whether the objective is the one stated, and leaves no more to gain than was stated."""
    primal, gap = float(said.get("primal", "nan")), float(said.get("relative_gap", "nan"))
    return abs(proof.primal - primal) <= 1e-6 * abs(primal) and proof.relative_gap <= gap + SHARP


def each_of(proof: Any) -> tuple[Certificate, ...]:
    """The certificates of all classes, or the only one."""
    return (proof,) if isinstance(proof, Certificate) else tuple(proof)

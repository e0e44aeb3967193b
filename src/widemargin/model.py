"""MODEL: weights, biases and classes, what they say of rows, and their way into files and back.

A fitted estimator is known here by its attributes alone, so that others' classifiers can be kept beside ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from widemargin import model_liblinear, model_safetensors
from widemargin.data import Rows
from widemargin.losses import LOSSES, sigmoid
from widemargin.model_files import ModelError, kind
from widemargin.model_safetensors import plain_number

__all__ = ["LinearModel", "ModelError", "certificate_summary"]

Floats = NDArray[np.float64]

#: The formats of `LinearModel.save`.
FORMATS = {"safetensors": model_safetensors, "liblinear": model_liblinear}
#: All classes at once, −log softmax: scikit-learn's LogisticRegression with three classes or more. We do not train it.
MULTINOMIAL = "multinomial"
#: scikit-learn's names for our losses; those of ours that it shares are the same.
SKLEARN_LOSSES = {"log_loss": "logistic", "squared_error": "squared", **{name: name for name in LOSSES}}


@dataclass(frozen=True, eq=False)
class LinearModel:
    """One row of `coef` per class, or a single one that tells `classes[1]` from `classes[0]`; classes ascend.

    What else is known about it goes with it into its file, and comes back.

    Examples
    --------
    >>> import tempfile
    >>> from widemargin import LinearModel, LogisticRegression
    >>> clf = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model = LinearModel.from_estimator(clf)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/answer.safetensors")
    ...     again = LinearModel.load(f"{folder}/answer.safetensors")
    >>> again.loss, again.C, again.classes.tolist(), again.certificate["relative_gap"] <= again.certificate["tol"]
    ('logistic', 1.0, ['no', 'yes'], True)
    >>> again.to_sklearn().predict([[0.5], [2.5]]).tolist()
    ['no', 'yes']

    """

    coef: Floats
    intercept: Floats
    classes: NDArray[Any]
    #: A name for each column of `coef`.
    feature_names: tuple[str, ...] | None = None
    #: How raw columns become features, as plain JSON; whoever reads the data knows what it says.
    encoding: dict[str, Any] | None = None
    #: A name out of `widemargin.losses.LOSSES`, or "multinomial"; None if it is neither, or not known.
    loss: str | None = None
    C: float | None = None
    #: What `certificate_summary` says of the proof; None if there was none.
    certificate: dict[str, Any] | None = None
    #: Whether the svmlight text that it was trained on counts columns from 0; None if there was none.
    zero_based: bool | None = None

    @classmethod
    def from_estimator(cls, clf: Any, *, encoding: dict[str, Any] | None = None) -> Self:
        """The model of a fitted linear classifier, ours or scikit-learn's.

        It needs `classes_`, `coef_` and `intercept_`, one row of weights per class or a single one for two. Loss and C
        are taken over where they mean the same here: `C` of LinearSVC, SVC and LogisticRegression does, if the penalty
        is ½‖w‖² (LinearSVC adds the bias to it).
        """
        name = type(clf).__name__
        missing = [needed for needed in ("classes_", "coef_", "intercept_") if not hasattr(clf, needed)]
        if missing:
            raise ValueError(
                f"{name} has no {missing[0]}; fit it first, and give the linear classifier itself: the last step of a "
                "pipeline, the best_estimator_ of a search"
            )
        classes, weights = np.asarray(clf.classes_), clf.coef_
        if hasattr(clf, "kernel") and len(classes) > 2:
            raise ValueError(
                f"{name} compares its {len(classes)} classes in pairs; use LinearSVM, one against the rest"
            )
        coef = np.array(weights.toarray() if hasattr(weights, "toarray") else weights, dtype=np.float64, ndmin=2)
        intercept = np.array(np.broadcast_to(np.ravel(clf.intercept_), len(coef)), dtype=np.float64)
        names, proof = getattr(clf, "feature_names_in_", None), getattr(clf, "certificate_", None)
        C = _strength_of(clf)
        model = cls(
            coef,
            intercept,
            classes,
            feature_names=None if names is None else tuple(map(str, names)),
            encoding=encoding,
            loss=_loss_of(clf),
            C=None if C is None else float(C),
            certificate=None if proof is None else _stated(clf, proof, classes),
        )
        complaint = model.complaint()
        if complaint:
            raise ValueError(f"{name}: {complaint}")
        return model

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn classifier that gives the same scores and predictions, and probabilities if it has any.

        LogisticRegression for the logistic loss of two classes and the multinomial one, SGDClassifier for the logistic
        loss of more (LogisticRegression would take the softmax of scores that were trained one against the rest), the
        squared and the perceptron's, LinearSVC otherwise.
        """
        from sklearn.linear_model import LogisticRegression, SGDClassifier
        from sklearn.svm import LinearSVC

        switches: dict[str, Any] = {"fit_intercept": bool(self.intercept.any())}
        strength = {} if self.C is None else {"C": self.C}
        if self.loss == MULTINOMIAL or (self.loss == "logistic" and len(self.coef) == 1):
            clf = LogisticRegression(**switches, **strength)
        elif self.loss in ("logistic", "squared", "perceptron"):
            theirs = {"logistic": "log_loss", "squared": "squared_error"}
            clf = SGDClassifier(loss=theirs.get(self.loss, self.loss), **switches)
        else:
            clf = LinearSVC(loss=self.loss or "squared_hinge", **switches, **strength)
        clf.coef_, clf.intercept_, clf.classes_ = self.coef.copy(), self.intercept.copy(), self.classes.copy()
        clf.n_features_in_ = self.coef.shape[1]
        if self.feature_names is not None:
            clf.feature_names_in_ = np.array(self.feature_names, dtype=object)
        return clf

    @property
    def columns(self) -> int:
        """How many features it was trained on."""
        return int(self.coef.shape[1])

    def scores(self, rows: Rows) -> Floats:
        """w·x + b: of shape (n,) for two classes, (n, classes) for more."""
        columns = [rows.scores(w) + b for w, b in zip(self.coef, self.intercept, strict=True)]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def choose(self, scores: Floats) -> NDArray[Any]:
        """The class that each row's scores speak for: the side of the hyperplane, or the highest score."""
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[chosen])

    def probabilities(self, scores: Floats) -> Floats:
        """P(class | x) of shape (n, classes), from `scores`.

        For the logistic loss σ(score), of several classes scaled to sum to 1; for the multinomial one the softmax. No
        other loss has any.
        """
        if self.loss not in ("logistic", MULTINOMIAL):
            raise ValueError(
                f"a model with loss={self.loss!r} has scores but no probabilities; train with loss='logistic', or use "
                "its scores"
            )
        if scores.ndim == 1:
            return np.column_stack([sigmoid(-scores), sigmoid(scores)])
        if self.loss == MULTINOMIAL:
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            return np.asarray(chances / chances.sum(axis=1, keepdims=True))
        chances = sigmoid(scores)
        total = chances.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(chances, total, out=np.full_like(chances, 1 / chances.shape[1]), where=total > 0))

    def save(self, path: str | os.PathLike[str], *, format: str = "safetensors") -> None:
        """Write the model to one file, which has its name only once it is complete.

        Parameters
        ----------
        path : str or path
            The file; one of that name is replaced.
        format : {"safetensors", "liblinear"}, default="safetensors"
            "safetensors" keeps every bit and all that is known (it needs ``pip install 'widemargin[cli]'``).
            "liblinear" is LIBLINEAR's text: weights of 17 digits, biases, classes that are whole numbers, and one of
            the losses hinge, squared hinge and logistic; names, encoding, C and certificate are left out.

        """
        if format not in FORMATS:
            raise ValueError(f"format={format!r}; choose from {', '.join(map(repr, FORMATS))}")
        complaint = self.complaint()
        if complaint:
            raise ModelError(f"{os.fspath(path)}: not written: {complaint}")
        FORMATS[format].save(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model from a file that `save` or LIBLINEAR wrote; which of them is seen from its content.

        No code is run, and no room made that the file does not fill. A file that is no model, a damaged or a hostile
        one raises a `ModelError` that says what is wrong with it.
        """
        form = kind(Path(path))
        fields = FORMATS[form].load(Path(path)) if form in FORMATS else None
        if fields is None or "kernel" in fields:
            what = "a model of LIBSVM" if fields is None else "a kernel model"
            raise ModelError(
                f"{os.fspath(path)}: {what}, which has support vectors instead of weights; load it with "
                "KernelModel.load"
            )
        model = cls(**fields)
        complaint = model.complaint()
        if complaint:
            raise ModelError(f"{os.fspath(path)}: {complaint}")
        return model

    def complaint(self) -> str:
        """What is wrong with the model and what to do, empty if all is well."""
        classes, height = self.classes, 1 if len(self.classes) == 2 else len(self.classes)
        if classes.ndim != 1 or len(classes) < 2:
            return f"classes of shape {classes.shape}; a classifier has two or more"
        if self.coef.ndim != 2 or len(self.coef) != height or self.coef.shape[1] == 0:
            return f"weights of shape {self.coef.shape} for {len(classes)} classes; they ask for {height} × features"
        if self.intercept.shape != (height,):
            return f"biases of shape {self.intercept.shape} for {len(classes)} classes; they ask for {height}"
        if not np.isfinite(self.coef).all() or not np.isfinite(self.intercept).all():
            return "a weight or a bias is NaN or infinite; train the model again"
        if not ascend(classes):
            return "the classes are not in ascending order, each once; order them, and the weights with them"
        if self.feature_names is not None and len(self.feature_names) != self.coef.shape[1]:
            return (
                f"{len(self.feature_names):,} feature names for {self.coef.shape[1]:,} weights; name every feature "
                "once, or none"
            )
        if self.loss not in (None, MULTINOMIAL, *LOSSES):
            return f"unknown loss {str(self.loss)[:40]!r}; choose from {', '.join(map(repr, LOSSES))}, or None"
        if self.loss == MULTINOMIAL and height == 1:
            return "the loss 'multinomial' is for three classes or more; of two it is 'logistic'"
        return ""


def ascend(classes: NDArray[Any]) -> bool:
    """Whether they are in ascending order, each once."""
    try:
        return bool(np.all(classes[:-1] < classes[1:])) and bool(np.all(classes == classes))
    except TypeError:  # of several types
        return False


def _loss_of(clf: Any) -> str | None:
    """The loss by our name; None for one that we do not have."""
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.svm import SVC

    if isinstance(clf, LogisticRegression):
        how, several = getattr(clf, "multi_class", "auto"), len(clf.classes_) > 2
        if how == MULTINOMIAL and not several:
            raise ValueError(
                "LogisticRegression(multi_class='multinomial') of two classes has probabilities of its own; leave "
                "multi_class out"
            )
        return MULTINOMIAL if several and how != "ovr" and clf.solver != "liblinear" else "logistic"
    if isinstance(clf, RidgeClassifier):
        return "squared"
    if isinstance(clf, SVC):
        return "hinge"
    loss = getattr(clf, "loss", None) if getattr(clf, "multi_class", "ovr") == "ovr" else None  # Crammer and Singer's
    return SKLEARN_LOSSES.get(loss) if isinstance(loss, str) else None


def _strength_of(clf: Any) -> float | None:
    """C of the last fit, where it stands in front of the loss and ½‖w‖² is the penalty."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC, LinearSVC

    squared = getattr(clf, "penalty", "l2") in ("l2", "deprecated") and not getattr(clf, "l1_ratio", None)
    if isinstance(clf, LogisticRegression | LinearSVC | SVC) and squared and _loss_of(clf):
        return getattr(clf, "C", None)
    return getattr(clf, "_fitted_C", None)


def _stated(clf: Any, proof: Any, classes: NDArray[Any]) -> dict[str, Any]:
    """What the proof says, and of which problem it is."""
    stated, weight = certificate_summary(proof, classes, tol=float(clf.tol)), getattr(clf, "class_weight", None)
    stated["fit_intercept"] = bool(getattr(clf, "fit_intercept", True))
    if isinstance(weight, dict):
        weight = [[np.asarray(name).item(), float(one)] for name, one in weight.items()]
    return stated if weight is None else stated | {"class_weight": weight}


def certificate_summary(proof: Any, classes: Iterable[Any], *, tol: float) -> dict[str, Any]:
    """A `Certificate` or `Certificates` in plain JSON: all but the dual point, which is as long as the data.

    `each` has an entry per class, of two classes only for the second; `tol` is the relative gap that was asked for.
    Numbers that JSON does not have are the texts "inf" and "nan".
    """
    proofs, names = getattr(proof, "each", (proof,)), np.asarray(classes).tolist()
    return {
        "tol": plain_number(tol),
        "gap": plain_number(proof.gap),
        "relative_gap": plain_number(proof.relative_gap),
        "each": [
            {
                "class": plain_number(name) if isinstance(name, float) else name,
                **{part: plain_number(getattr(one, part)) for part in ("primal", "dual", "gap", "relative_gap")},
                **{part: plain_number(getattr(one, part)) for part in ("rounding", "stationarity", "width", "slack")},
                "rows": int(one.rows),
                "support_vectors": len(one.support),
                "violations": int(one.violations),
                "misclassified": int(one.misclassified),
                "kkt": [
                    {"name": at.name, "demand": at.demand, "count": int(at.count), "worst": plain_number(at.worst)}
                    for at in one.kkt
                ],
            }
            for name, one in zip(names[-len(proofs) :], proofs, strict=True)
        ],
    }

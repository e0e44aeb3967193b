"""The proof of a model, from its file and the data alone."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from widemargin.cli.screen import note

if TYPE_CHECKING:
    from widemargin.certificate import Certificate, Certificates
    from widemargin.data import Dataset
    from widemargin.model import LinearModel
    from widemargin.model_kernel import KernelModel


def problem_of(model: LinearModel | KernelModel, name: str, C: float | None = None) -> dict[str, Any]:
    """What the model says it solves: C, loss, bias, class weights. Nothing else that it says of itself is believed."""
    from widemargin.model import ModelError

    said, strength = model.certificate or {}, C if C is not None else model.C
    if strength is None:
        raise ModelError(f"{name}: says no C; say it with -C")
    if model.loss is None or model.loss == "multinomial":
        raise ModelError(f"{name}: trained with a loss that is not ours; certify hinge, logistic or squared models")
    weight = said.get("class_weight")
    return {
        "C": strength,
        "loss": model.loss,
        "fit_intercept": bool(said.get("fit_intercept", model.intercept.any())),
        "class_weight": dict(weight) if isinstance(weight, list) else weight,
    }


def prove(
    model: LinearModel, found: Dataset, problem: dict[str, Any], *, tol: float, threads: int
) -> Certificate | Certificates:
    """A dual point of our own, found anew, against the model's weights."""
    from sklearn.exceptions import ConvergenceWarning

    from widemargin import certify

    assert found.y is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        how: dict[str, Any] = {**problem, "tol": min(tol / 10, 1e-4), "verbose": int(sys.stderr.isatty())}
        proof = certify(found.X, found.y, model.coef, model.intercept, **how, n_jobs=threads or None)
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            note(str(warning.message))
    return proof


def prove_kernel(
    model: KernelModel, found: Dataset, *, C: float | None = None, class_weight: Any = None, threads: int = 0
) -> Certificate | Certificates:
    """The proof of the model's own α, whose support vectors are found among the rows."""
    from widemargin import certify
    from widemargin.estimators import IndefiniteKernelWarning

    assert found.y is not None
    if class_weight is not None:
        pairs = [list(pair) for pair in class_weight.items()] if isinstance(class_weight, dict) else class_weight
        model = replace(model, certificate={**(model.certificate or {}), "class_weight": pairs})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IndefiniteKernelWarning)
        proof = certify(model, getattr(found.X, "X", found.X), found.y, C=C, n_jobs=threads or None)
    for warning in caught:
        if issubclass(warning.category, IndefiniteKernelWarning):
            note(str(warning.message))
    return proof


def is_the_one_stated(proof: Certificate | Certificates, model: KernelModel) -> bool:
    """Whether the model's file, if it names objectives, names these: then the rows are those of its training."""
    said, each = (model.certificate or {}).get("each"), getattr(proof, "each", (proof,))
    if not said:
        return True
    pairs = [(one.primal, float(entry.get("primal", "nan"))) for one, entry in zip(each, said, strict=False)]
    return len(said) == len(each) and all(abs(primal - value) <= 1e-6 * abs(value) for primal, value in pairs)


def was_trained_on(model: LinearModel, found: Dataset, problem: dict[str, Any]) -> bool:
    """Whether the model's file names the objective that these rows give: then they are those of its training."""
    from widemargin import LinearSVM

    said = (model.certificate or {}).get("each")
    if not said or found.y is None or found.X.shape[0] != said[0].get("rows"):
        return False
    _, problems = LinearSVM(**problem).problems(found.X, found.y)
    if len(problems) != len(said):
        return False
    stated = [float(entry.get("primal", "nan")) for entry in said]
    ends = zip(problems, model.coef, model.intercept, stated, strict=True)
    return all(abs(one.primal(w, one.margins(w, float(b))) - value) <= 1e-6 * abs(value) for one, w, b, value in ends)

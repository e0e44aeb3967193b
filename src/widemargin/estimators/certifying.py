"""A certificate for anybody's weights, and for fitted estimators of anybody's."""

from __future__ import annotations

import warnings
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from widemargin.certificate import Certificate, Certificates
from widemargin.certificate import certify as certify_point
from widemargin.estimators.certifying_kernels import certify_kernel_machine, is_kernel_machine
from widemargin.estimators.linear_svm import LinearSVM
from widemargin.model import MULTINOMIAL, LinearModel
from widemargin.model_kernel import KernelModel
from widemargin.problem import strength


@overload
def certify(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    C: float | None = None,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate | Certificates: ...


@overload
def certify(
    X: Any,
    y: ArrayLike,
    coef: ArrayLike,
    intercept: ArrayLike = 0.0,
    *,
    C: float = 1.0,
    loss: str = "hinge",
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate | Certificates: ...


def certify(*given: Any, **named: Any) -> Certificate | Certificates:  # noqa: D417  # its two forms have parameters
    """How far a fitted estimator, or any weights, are from the optimum of their problem, with the proof.

    ``certify(estimator, X, y, sample_weight=None)`` judges a fitted classifier by the parameters that it was given:

    - kernel machines, SVC of scikit-learn and of sklearnex, KernelSVM and KernelModel, by
      ½‖f‖² + Σ cᵢ max(0, 1 − yᵢ(f(xᵢ) + b)) in their kernel's own space, pair by pair of classes. Objective and bound
      are those of the machine's own α, made feasible, and b; no fit is made. An estimator knows its support vectors by
      their row numbers: X, y and sample_weight must be those of its training, in the same order. A KernelModel finds
      its own among the rows.
    - linear ones, LinearSVM, LogisticRegression, LinearModel, and scikit-learn's LinearSVC, LogisticRegression and
      SGDClassifier (C = 1/(alpha·n)), by the weights as below, on any rows. LinearSVC's own problem, and that of
      LogisticRegression(solver="liblinear"), penalises the bias, and here none does.

    ``certify(X, y, coef, intercept=0.0, C=1.0)`` judges any weights by ½‖w‖² + C Σ φ(yᵢ(w·xᵢ + b)). The dual point of
    the proof comes from a fit of our own to a relative gap of `tol`, so that the gap reported is the weights' distance
    from the minimum, and at most `tol` more.

    Parameters
    ----------
    estimator : fitted classifier
        In the first form only. In place of a pipeline or a search give its last step or its best_estimator_.
    X, y, sample_weight : arrays
        As in ``LinearSVM.fit``; for a precomputed kernel X is the kernel matrix.
    coef, intercept : arrays
        As scikit-learn's linear classifiers have them: of shape (1, n_features) and (1,), or a row per class, each
        judged as that class against the rest (a multinomial LogisticRegression solves another problem).
    C, loss, class_weight, n_jobs, verbose
        As in ``LinearSVM``. For SGDClassifier C = 1 / (alpha · n_samples). An estimator has its own, and only C may be
        given for one, if it does not say which it was trained with.
    fit_intercept : bool, default=True
        Whether the problem has an unpenalised bias. Without one, `intercept` must be 0.
    tol : float, default=1e-6
        How sharp the proof must be.

    Returns
    -------
    Certificate, or Certificates for several classes, or of their pairs.

    Examples
    --------
    How far scikit-learn's SVC is from the optimum, at its own tolerance:

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from widemargin import certify
    >>> X, y = load_iris(return_X_y=True)
    >>> proof = certify(SVC(C=10).fit(X, y), X, y)
    >>> proof.classes
    ('0 vs 1', '0 vs 2', '1 vs 2')
    >>> 1e-6 < proof.relative_gap < 1e-2
    True

    The same of weights, and of an estimator that has some:

    >>> from sklearn.linear_model import SGDClassifier
    >>> theirs = SGDClassifier(alpha=1 / 150, random_state=0).fit(X, y == 1)
    >>> certify(X, y == 1, theirs.coef_, theirs.intercept_).relative_gap > 0.1
    True
    >>> certify(theirs, X, y == 1).primal == certify(X, y == 1, theirs.coef_, theirs.intercept_).primal
    True

    """
    if "estimator" in named or (given and _is_estimator(given[0])):
        return certify_estimator(*given, **named)
    return certify_weights(*given, **named)


def _is_estimator(one: Any) -> bool:
    return isinstance(one, LinearModel | KernelModel) or hasattr(one, "predict")


def certify_estimator(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    C: float | None = None,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate | Certificates:
    """The first form of :func:`certify`."""
    if is_kernel_machine(estimator):
        return certify_kernel_machine(estimator, X, y, sample_weight, C=C, n_jobs=n_jobs)
    name = type(estimator).__name__
    model = estimator if isinstance(estimator, LinearModel) else LinearModel.from_estimator(estimator)
    if model.loss is None or model.loss == MULTINOMIAL:
        what = "has the multinomial loss" if model.loss else "has a loss or a penalty that is not ours"
        raise ValueError(f"{name} {what}; certify hinge, logistic or squared losses with the penalty ½‖w‖²")
    own = _strength(estimator, model, np.shape(X)[0]) if C is None else C
    if own is None:
        raise ValueError(f"{name} says no C in front of its loss with the penalty ½‖w‖²; say which with C=")
    said = model.certificate or {}
    weight = said.get("class_weight") if estimator is model else getattr(estimator, "class_weight", None)
    return certify_weights(
        X,
        y,
        model.coef,
        model.intercept,
        C=own,
        loss=model.loss,
        fit_intercept=bool(said.get("fit_intercept", getattr(estimator, "fit_intercept", model.intercept.any()))),
        class_weight=dict(weight) if isinstance(weight, list) else weight,
        sample_weight=sample_weight,
        tol=tol,
        n_jobs=n_jobs,
        verbose=verbose,
    )


def _strength(estimator: Any, model: LinearModel, n: int) -> float | None:
    """C, where the estimator says it; SGDClassifier writes it as alpha."""
    from sklearn.linear_model import SGDClassifier

    if isinstance(estimator, SGDClassifier):
        return strength(lam=estimator.alpha, convention="pegasos", n=n) if estimator.penalty == "l2" else None
    return model.C


def certify_weights(
    X: ArrayLike,
    y: ArrayLike,
    coef: ArrayLike,
    intercept: ArrayLike = 0.0,
    *,
    C: float = 1.0,
    loss: str = "hinge",
    fit_intercept: bool = True,
    class_weight: Any = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate | Certificates:
    """The second form of :func:`certify`."""
    reference = LinearSVM(
        C,
        loss=loss,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        tol=tol,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    classes, problems = reference.problems(X, y, sample_weight)
    weights = np.atleast_2d(np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64))
    biases = np.asarray(intercept, dtype=np.float64).ravel()
    wanted = (len(problems), problems[0].rows.d)
    if weights.shape != wanted:
        raise ValueError(f"coef has shape {weights.shape}; these data and classes want {wanted}")
    if len(biases) not in (1, len(problems)):
        raise ValueError(f"intercept has {len(biases)} numbers; these classes want {len(problems)}")
    if not np.isfinite(weights).all() or not np.isfinite(biases).all():
        raise ValueError("coef or intercept contains NaN or infinity; certify finite weights")
    if not fit_intercept and biases.any():
        raise ValueError("intercept is not 0, but fit_intercept=False asks for the problem without a bias")
    proofs = reference.fit_problems(problems, classes)
    if any(proof.interrupted for proof in proofs):
        raise KeyboardInterrupt
    sharpness = max(proof.certificate.relative_gap for proof in proofs)
    if sharpness > tol:
        warnings.warn(
            f"the proof is sharp to {sharpness:.1e}, asked for was tol={tol:.1e}: the weights may be that much better",
            ConvergenceWarning,
            stacklevel=2,
        )
    each = tuple(
        certify_point(problem, w, float(b), proof.alpha)
        for problem, w, b, proof in zip(problems, weights, np.broadcast_to(biases, len(problems)), proofs, strict=True)
    )
    return each[0] if len(each) == 1 else Certificates(tuple(classes), each)

"""A certificate for anybody's weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from widemargin.certificate import Certificate, Certificates
from widemargin.certificate import certify as certify_point
from widemargin.estimators.linear_svm import LinearSVM


def certify(
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
    """How far any weights are from the optimum of ½‖w‖² + C Σ φ(yᵢ(w·xᵢ + b)), with the proof.

    The dual point of the proof comes from a fit of our own to a relative gap of `tol`, so that the gap reported is the
    weights' distance from the minimum, and at most `tol` more.

    Parameters
    ----------
    X, y, sample_weight : arrays
        As in ``LinearSVM.fit``.
    coef, intercept : arrays
        As scikit-learn's linear classifiers have them: of shape (1, n_features) and (1,), or a row per class, each
        judged as that class against the rest (a multinomial LogisticRegression solves another problem).
    C, loss, class_weight, n_jobs, verbose
        As in ``LinearSVM``. For SGDClassifier C = 1 / (alpha · n_samples).
    fit_intercept : bool, default=True
        Whether the problem has an unpenalised bias. Without one, `intercept` must be 0.
    tol : float, default=1e-6
        How sharp the proof must be.

    Returns
    -------
    Certificate, or Certificates for several classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> from widemargin import certify
    >>> X, y = load_iris(return_X_y=True)
    >>> theirs = SGDClassifier(alpha=1 / 150, random_state=0).fit(X, y == 1)
    >>> certify(X, y == 1, theirs.coef_, theirs.intercept_).relative_gap > 0.1
    True

    """
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

"""Logistic regression: the same problem with the logistic loss, and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.estimators.certified_classifier import CertifiedClassifier
from widemargin.model import LinearModel
from widemargin.solvers import Solver

Floats = NDArray[np.float64]


class LogisticRegression(CertifiedClassifier):
    """L2-penalised logistic regression, trained to a proved relative duality gap.

    Minimises ½‖w‖² + Σ cᵢ log(1 + exp(−yᵢ(w·xᵢ + b))); the bias b is not penalised. Several classes are trained one
    against the rest, and their probabilities scaled to sum to 1. Parameters and attributes are those of
    :class:`~widemargin.LinearSVM`, without ``loss``. ``C=inf`` is the maximum likelihood, without a penalty, or a
    :class:`~widemargin.SeparableError` with the hyperplane that proves that there is none.

    Examples
    --------
    >>> from widemargin import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict_proba([[1.5]]).round(3).tolist()
    [[0.5, 0.5]]

    """

    loss = "logistic"

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def predict_proba(self, X: ArrayLike) -> Floats:
        """P(class | x) of shape (n_samples, n_classes): σ(w·x + b), for several classes scaled to sum to 1."""
        scores = self.decision_function(X)
        return LinearModel(self.coef_, self.intercept_, self.classes_, loss=self.loss).probabilities(scores)

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """log P(class | x); for two classes without rounding down to −∞."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -np.logaddexp(0.0, np.column_stack([scores, -scores]))
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

"""The least squares classifier: linear regression on labels of ±1."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from widemargin import training
from widemargin.certificate import Certificate
from widemargin.estimators.certified_classifier import CertifiedClassifier
from widemargin.problem import Problem
from widemargin.solvers.least_squares import solve

Floats = NDArray[np.float64]


class LeastSquaresClassifier(CertifiedClassifier):
    """Linear regression on labels of ±1, with or without Tikhonov's penalty, and its proof.

    Minimises Σ sᵢ(w·xᵢ + b − yᵢ)² + alpha‖w‖² with sᵢ = class weight × sample weight; the bias b is not penalised.
    Among equally good w it takes the shortest. Several classes are trained one against the rest, all in one go.

    Rows far on the right side of the hyperplane pull at it as much as those on the wrong side: one outlier can turn it.
    ``LogisticRegression`` and ``LinearSVM`` do not mind.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the penalty; 0 for none. RidgeClassifier's alpha is the same.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weight of the rows of each class.
    tol : float, default=1e-6
        The relative duality gap at which conjugate gradients stop, on data too large for a closed form: more than 3,000
        rows and columns. The closed forms end at machine precision.
    max_iter : int or None, default=None
        The most steps of conjugate gradients; None for 5,000.
    n_jobs : int or None, default=None
        Threads; None for all cores at hand. The result is the same, to the last bit, whatever their number.

    Attributes
    ----------
    coef_, intercept_, classes_, certificate_
        As in :class:`~widemargin.LinearSVM`. With alpha > 0 the certificate is that of ½‖w‖² + Σ cᵢ(w·xᵢ + b − yᵢ)²,
        where cᵢ = sᵢ/(2·alpha); with alpha = 0 that of Σ sᵢ(w·xᵢ + b − yᵢ)².
    n_iter_ : int
        1 for a closed form, or the steps of conjugate gradients.

    Examples
    --------
    >>> from widemargin import LeastSquaresClassifier
    >>> model = LeastSquaresClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.coef_.round(9).tolist(), model.intercept_.round(9).tolist()
    ([[0.8]], [-1.2])
    >>> model.certificate_.gap < 1e-12
    True

    """

    loss = "squared"
    solver = "auto"
    warm_start = False
    random_state = None
    verbose = 0

    def __init__(
        self,
        alpha: float = 0.0,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @property
    def C(self) -> float:  # type: ignore[override]  # noqa: N802  # C is what the other estimators call it
        """The strength of the loss against ½‖w‖²."""
        return 1 / (2 * self.alpha) if self.alpha > 0 else np.inf

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the weights for all classes; see ``LinearSVM.fit``."""
        classes, problems = self.problems(X, y, sample_weight)
        one = problems[0]
        one.check_lengths()
        targets = np.column_stack([problem.y for problem in problems])
        penalty = float(one.penalised)
        with training.OneBlasThread():
            found = solve(
                one.rows,
                targets,
                one.c,
                penalty=penalty,
                fit_intercept=one.fit_intercept,
                tol=float(self.tol),
                max_iter=self.max_iter,
            )
        fits = [
            training.judge(problem, found.w[k], float(found.b[k]), found.alpha(problem, k), found.iterations)
            for k, problem in enumerate(problems)
        ]
        self._keep(fits, problems, classes)
        missed = max(_missed(problem, fit.certificate) for problem, fit in zip(problems, fits, strict=True))
        if missed > self.tol:
            dependent = "columns of X are nearly dependent: scale them, drop some"
            advice = "raise max_iter, scale the columns of X" if found.iterations > 1 else dependent
            warnings.warn(
                f"the relative gap is {missed:.1e}, asked for was tol={self.tol:.1e}; {advice}, or use a larger alpha",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.alpha, Real) or not (self.alpha == 0 or 1e-100 <= self.alpha <= 1e100):
            raise ValueError(f"alpha={self.alpha!r}; it must be 0, or a number from 1e-100 to 1e100")
        super()._check_parameters()


def _missed(problem: Problem, certificate: Certificate) -> float:
    """The gap, relative to the optimum or, where the rows can be fitted exactly, to the loss of w = 0."""
    return min(certificate.relative_gap, 1e3 * certificate.gap / float(problem.c.sum()))

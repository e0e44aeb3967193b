"""What every classifier with a proof shares: its problems, one fit per class, its fitted attributes."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _check_sample_weight

from widemargin import training
from widemargin.certificate import Certificate, Certificates
from widemargin.estimators.linear_classifier import LinearClassifier
from widemargin.losses import LOSSES
from widemargin.one_against_rest import OneAgainstRest, certificate_of
from widemargin.problem import Problem, inner
from widemargin.solvers import Solver, Start

Floats = NDArray[np.float64]


class Solution(NamedTuple):
    """α of all rows, b and w of one class, and the C that they are for."""

    alpha: Floats
    b: float
    w: Floats
    C: float


class CertifiedClassifier(LinearClassifier):
    """Minimises ½‖w‖² + Σ cᵢ φ(yᵢ(w·xᵢ + b)) for each class, and keeps the proof."""

    C: float
    loss: str
    fit_intercept: bool
    class_weight: Any
    solver: str | Solver
    tol: float
    max_iter: int | None
    warm_start: bool

    support_: NDArray[np.intp]
    dual_coef_: Floats
    certificate_: Certificate | Certificates
    history_: list[Any]

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows of X with the labels y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            float32 and float64 are taken as they are, dense in C or F order and CSR with indices of 32 or 64 bits;
            everything else is converted. Row weights of 0 leave rows out, whole numbers repeat them.
        y : array of shape (n_samples,)
            Two or more classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Multiplies the strength of each row.

        Returns
        -------
        The fitted estimator.

        """
        classes, problems = self.problems(X, y, sample_weight)
        self.solve(problems, classes, self._warm_starts(problems, classes))
        return self

    def solve(self, problems: list[Problem], classes: NDArray[Any], starts: list[Start] | None) -> None:
        """What `fit` does once it has read its input: train on these problems, one per class, from these starts."""
        self._keep(self.fit_problems(problems, classes, starts), problems, classes)
        self._warn_if_short()

    def fit_problems(
        self, problems: list[Problem], classes: NDArray[Any], starts: list[Start] | None = None
    ) -> list[training.Fit]:
        """One fit per problem."""
        return self._task().fit(
            problems,
            classes,
            seed=self._seed(),
            threads=self._threads(),
            verbose=int(self.verbose),
            starts=starts,
        )

    def problems(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> tuple[NDArray[Any], list[Problem]]:
        """The classes, and the problem that `fit` solves for each of them (for the second, if there are two)."""
        self._check_parameters()
        X, y = self._read(X, y, finite=False)
        rows, weights = self._rows(X), np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            at = int(np.argmax(weights < 0))
            raise ValueError(f"sample_weight[{at}] is {weights[at]:g}; weights must be at least 0")
        if not np.isfinite(rows.square_norms).all():  # training asks for them anyhow
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        return self._task().problems(rows, y, weights)

    def _check_parameters(self) -> None:
        """Every parameter acts or raises."""
        self._task().check()
        self._check_switches("fit_intercept", "warm_start")

    def _task(self) -> OneAgainstRest:
        names = ("C", "loss", "fit_intercept", "class_weight", "solver", "tol", "max_iter")
        return OneAgainstRest(**{name: getattr(self, name) for name in names})

    def _keep(self, fits: list[training.Fit], problems: list[Problem], classes: NDArray[Any]) -> None:
        interrupted = any(fit.interrupted for fit in fits)
        self.classes_ = classes
        self.coef_ = fits[0].w[np.newaxis] if len(fits) == 1 else np.array([fit.w for fit in fits])
        self.intercept_ = np.array([fit.b for fit in fits])
        self.n_iter_ = max(fit.iterations for fit in fits)
        signed = np.array([fit.alpha * problem.y for fit, problem in zip(fits, problems, strict=True)])
        supports = np.zeros(problems[0].rows.n, dtype=bool)
        for fit in fits:
            supports[fit.certificate.support] = True
        self.support_ = np.flatnonzero(supports)
        self.dual_coef_ = signed[:, self.support_]
        self.certificate_ = certificate_of(fits, classes)
        self.history_ = fits[0].history if len(fits) == 1 else [fit.history for fit in fits]
        self._fitted_C = self.C
        if interrupted:
            raise KeyboardInterrupt

    def _warn_if_short(self) -> None:
        reached = self.certificate_.relative_gap
        if reached > self.tol:
            advice = "scale the columns of X, or ask for a larger tol"
            if self.max_iter is not None and self.n_iter_ >= self.max_iter:
                advice = "raise max_iter"
            elif self.solver != "auto":
                advice = "use solver='auto'"
            elif np.isinf(self.C) and np.isfinite(LOSSES[self.loss].kink):
                advice = "the classes may touch or overlap: use a finite C"
            elif np.isinf(self.C):
                advice = "columns of X may be nearly dependent: use a finite C"
            warnings.warn(
                f"the relative gap is {reached:.1e} after {self.n_iter_} iterations, asked for was tol={self.tol:.1e}; "
                f"{advice}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _warm_starts(self, problems: list[Problem], classes: NDArray[Any]) -> list[Start] | None:
        """The last fit's dual variables, 0 for rows that have come since; None if they are no start for this one.

        α may grow as C does. It does where the dual gains from it: Σ αs − ½‖w‖²s² is largest at s = Σ α/‖w‖².
        """
        if not self.warm_start or not hasattr(self, "dual_coef_") or not np.array_equal(self.classes_, classes):
            return None
        n = problems[0].rows.n
        if len(self.support_) and self.support_[-1] >= n:
            return None
        same_columns, same_strength = self.coef_.shape[1] == problems[0].rows.d, self._fitted_C == self.C
        starts = []
        for alpha, b, w, _ in self.solutions(problems):
            square = inner(w, w)
            if not same_strength and square > 0 and np.isfinite(self.C):
                growth = self.C / self._fitted_C
                alpha *= np.clip(alpha.sum() / square, min(1.0, growth), max(1.0, growth))
            starts.append(Start(alpha, b, w if same_columns else None, hopeful=same_strength))
        return starts

    def solutions(self, problems: list[Problem]) -> list[Solution]:
        """Where the last fit ended, class by class, for problems that have its rows and perhaps more."""
        ends = []
        for problem, signed, w, b in zip(problems, self.dual_coef_, self.coef_, self.intercept_, strict=True):
            alpha = np.zeros(problem.rows.n)
            alpha[self.support_] = signed * problem.y[self.support_]
            ends.append(Solution(alpha, float(b), w, self._fitted_C))
        return ends

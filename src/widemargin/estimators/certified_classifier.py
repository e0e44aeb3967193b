"""What every classifier with a proof shares: its problems, one fit per class, its fitted attributes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from numbers import Integral, Real
from threading import Event
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight

from widemargin import training
from widemargin.certificate import Certificate, Certificates, InseparableError, SeparableError
from widemargin.data import Rows
from widemargin.estimators.linear_classifier import LinearClassifier, signs
from widemargin.losses import LOSSES
from widemargin.problem import Problem, inner
from widemargin.progress import ProgressLine
from widemargin.solvers import Solver, Start, State, choose

Floats = NDArray[np.float64]


#: Solvers that keep a large part of the Gram matrix.
HEAVY = ("hildreth", "qp", "smo")


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

    def solve(
        self,
        problems: list[Problem],
        classes: NDArray[Any],
        starts: list[Start] | None = None,
        *,
        resumed: State | None = None,
        keep: training.Keep | None = None,
    ) -> None:
        """What `fit` does once it has read its input: train on these problems, one per class, from these starts.

        `keep` is offered the state of the whole training after each iteration; `resumed` is such a state.
        """
        fits = self._fit_all(problems, classes, starts, resumed, keep)
        self._keep(fits, problems, classes)
        self._warn_if_short()

    def _fit_all(
        self,
        problems: list[Problem],
        classes: NDArray[Any],
        starts: list[Start] | None,
        resumed: State | None,
        keep: training.Keep | None,
    ) -> list[training.Fit]:
        """One fit per problem, side by side on as many threads as there are; an interrupt ends all of them."""
        began, seed, stop = time.perf_counter(), self._seed(), Event()
        ends = [] if resumed is None else resumed["done"]
        done = [training.judge(problem, **end) for problem, end in zip(problems, ends, strict=False)]

        def kept(current: Callable[[], State | None]) -> None:
            assert keep is not None
            keep(lambda: {"done": [training.solution(fit) for fit in done], "current": current()})

        def fit(k: int) -> training.Fit:
            label = f"class {k + 1} of {len(problems)}" if len(problems) > 1 else "training"
            with ProgressLine(label, self.tol, verbose=int(self.verbose), began=began) as line:

                def watch(iteration: int, seconds: float, gap: float) -> None:
                    if stop.is_set():
                        raise KeyboardInterrupt
                    line.show(iteration, seconds, gap)

                try:
                    return training.fit(
                        problems[k],
                        solver=self.solver,
                        tol=self.tol,
                        max_iter=self.max_iter,
                        seed=seed,
                        start=starts[k] if starts else None,
                        watch=watch,
                        resumed=resumed["current"] if resumed is not None and k == len(ends) else None,
                        keep=kept if keep is not None else None,
                    )
                except (InseparableError, SeparableError) as error:
                    if len(problems) > 2:
                        error.add_note(f"This is for the class {classes[k]} against the rest.")
                    raise

        if len(problems) == 1 or keep is not None:
            for k in range(len(done), len(problems)):
                done.append(fit(k))
            return done
        # Lines of progress would run into each other, and some solvers hold too much to have it several times.
        workers = 1 if self.verbose or self.solver in HEAVY else min(self._threads(), len(problems))
        if workers > 1:  # one thread for each; the bits do not depend on it
            alone = problems[0].rows.with_threads(1)
            problems = [replace(problem, rows=alone) for problem in problems]
        with training.one_blas_thread(), ThreadPoolExecutor(workers) as threads:
            fits = [threads.submit(fit, k) for k in range(len(problems))]
            try:  # the first to fail ends them all, whichever class it is
                for one in wait(fits, return_when=FIRST_EXCEPTION).done:
                    one.result()
            except BaseException:
                stop.set()
                threads.shutdown(cancel_futures=True)
                raise
            return [one.result() for one in fits]

    def problems(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> tuple[NDArray[Any], list[Problem]]:
        """The classes, and the problem that `fit` solves for each of them (for the second, if there are two)."""
        self._check_parameters()
        X, y = self._read(X, y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            at = int(np.argmax(weights < 0))
            raise ValueError(f"sample_weight[{at}] is {weights[at]:g}; weights must be at least 0")
        classes = np.unique(y[weights > 0])
        if len(classes) < 2:
            found = f"only one class, {classes[0]}," if len(classes) else "no class"
            raise ValueError(f"y has {found} among the rows of positive weight; a classifier needs at least 2 classes")
        strengths = self._strengths(y, classes, weights)
        rows = X.with_threads(self._threads()) if isinstance(X, Rows) else Rows(X, self._threads())
        loss = LOSSES[self.loss]
        penalised = bool(np.isfinite(self.C)) or bool(np.isfinite(loss.kink))
        problems = [
            Problem(rows, signed, strengths, loss, bool(self.fit_intercept), penalised) for signed in signs(y, classes)
        ]
        choose(self.solver, problems[0])
        return classes, problems

    def _keep(self, fits: list[training.Fit], problems: list[Problem], classes: NDArray[Any]) -> None:
        interrupted = any(fit.interrupted for fit in fits)
        self.classes_ = classes
        self.coef_ = np.array([fit.w for fit in fits])
        self.intercept_ = np.array([fit.b for fit in fits])
        self.n_iter_ = max(fit.iterations for fit in fits)
        signed = np.array([fit.alpha * problem.y for fit, problem in zip(fits, problems, strict=True)])
        supports = np.zeros(problems[0].rows.n, dtype=bool)
        for fit in fits:
            supports[fit.certificate.support] = True
        self.support_ = np.flatnonzero(supports)
        self.dual_coef_ = signed[:, self.support_]
        certificates = tuple(fit.certificate for fit in fits)
        self.certificate_ = certificates[0] if len(fits) == 1 else Certificates(tuple(classes), certificates)
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

    def _check_parameters(self) -> None:
        """Every parameter acts or raises."""
        if not isinstance(self.C, Real) or not self.C > 0:
            raise ValueError(f"C={self.C!r}; it must be a number > 0")
        if self.loss not in LOSSES:
            usable = [name for name in LOSSES if name != "perceptron"]
            raise ValueError(f"loss={self.loss!r}; choose from {', '.join(map(repr, usable))}")
        if self.loss == "perceptron":
            raise ValueError("loss='perceptron' with the penalty ½‖w‖² is minimised by w = 0; use loss='hinge'")
        if not isinstance(self.tol, Real) or not self.tol > 0:
            raise ValueError(f"tol={self.tol!r}; it must be a number > 0, the relative gap to reach")
        self._check_switches("fit_intercept", "warm_start")
        if self.max_iter is not None and (not isinstance(self.max_iter, Integral) or self.max_iter < 1):
            raise ValueError(
                f"max_iter={self.max_iter!r}; it must be a whole number ≥ 1, or None for as many as it takes"
            )

    def _strengths(self, y: NDArray[Any], classes: NDArray[Any], weights: Floats) -> Floats:
        """cᵢ = C × class weight × sample weight."""
        place = np.searchsorted(classes, y).clip(0, len(classes) - 1)
        totals = np.bincount(place, weights=weights, minlength=len(classes))
        per_class = np.ones(len(classes))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            per_class = totals.sum() / (len(classes) * totals)
        elif isinstance(self.class_weight, dict):
            unknown = [key for key in self.class_weight if key not in classes]
            unnamed = [name for name in classes.tolist() if name not in self.class_weight]
            if unknown and unnamed:  # a slip; names of classes that a fold happens to lack are none
                raise ValueError(
                    f"class_weight names {unknown[0]!r}, which is not a class of y, and leaves out {unnamed[0]!r}; "
                    f"the classes are {classes.tolist()}"
                )
            per_class = np.array([self.class_weight.get(name, 1.0) for name in classes], dtype=float)
            if not ((per_class > 0) & (per_class < np.inf)).all():
                raise ValueError(f"class_weight={self.class_weight!r}; weights of classes must be finite and > 0")
        elif self.class_weight is not None:
            raise ValueError(f"class_weight={self.class_weight!r}; it must be a dict, 'balanced' or None")
        strength: Floats = per_class[place] * weights
        if np.isinf(self.C):  # the hard margin, or the loss without a penalty
            return np.where(strength > 0, np.inf, 0.0) if np.isfinite(LOSSES[self.loss].kink) else strength
        with np.errstate(over="ignore"):
            strength *= self.C
        if not np.isfinite(strength).all():
            raise ValueError(f"C={self.C:g} times the weights is too large a number; use a smaller C, or C=inf")
        return strength

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

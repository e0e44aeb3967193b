"""What the classifiers that learn row by row share: epochs, partial fits, and the mistakes they count."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from widemargin.data import Rows
from widemargin.estimators.linear_classifier import LinearClassifier
from widemargin.one_against_rest import signs
from widemargin.progress import ProgressLine
from widemargin.solvers import LazyWeights
from widemargin.solvers.sgd import shuffled_blocks

Floats = NDArray[np.float64]

#: Walks over rows: weights, rows, ±1 labels, the rows to visit, whether there is a bias. Returns the rows that were
#: late.
Rule = Callable[..., int]


class OnlineClassifier(LinearClassifier):
    """Visits one row after another, and moves its weights where their margin is too small.

    There is no objective, and so no gap. What proves a fit is `margin_`: above 0, the hyperplane separates the classes.
    """

    fit_intercept: bool
    max_iter: int
    patience: int
    shuffle: bool
    average: bool

    mistakes_: list[int]
    margin_: float
    separates_: bool

    def fit(
        self, X: Any, y: ArrayLike, coef_init: ArrayLike | None = None, intercept_init: ArrayLike | None = None
    ) -> Self:
        """Pass over the rows of X until no row asks for a change, or until more passes seem not to help.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,)
            Two or more classes, of any type.
        coef_init, intercept_init : arrays, optional
            Where to begin, in the shapes of coef_ and intercept_; 0 if they are not given.

        Returns
        -------
        The fitted estimator.

        """
        rule = self._rule()
        X, y = self._read(X, y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"y has only one class, {classes[0]}; a classifier needs at least 2 classes")
        rows, labels = self._rows(X), signs(y, classes)
        weights = self._begin(len(labels), rows.d, coef_init, intercept_init)
        everyone, order = np.arange(rows.n, dtype=np.int64), np.random.default_rng(self._seed())
        mistakes: list[int] = []
        began, interrupted = time.perf_counter(), False
        try:
            with ProgressLine("training", 1.0, verbose=int(self.verbose), began=began, counted="late rows") as line:
                for epoch in range(1, int(self.max_iter) + 1):
                    draws = shuffled_blocks(everyone, order) if self.shuffle else everyone
                    mistakes.append(self._walk(rule, weights, rows, labels, draws))
                    line.show(epoch, time.perf_counter() - began, mistakes[-1])
                    if mistakes[-1] == 0 or epoch - int(np.argmin(mistakes)) > self.patience:
                        break
        except KeyboardInterrupt:
            interrupted = True
        self.classes_, self._weights, self.mistakes_ = classes, weights, mistakes
        self._keep()
        self.margin_ = self._smallest_margin(rows, labels)
        self.separates_ = self.margin_ > 0
        if interrupted:
            raise KeyboardInterrupt
        if not self.separates_:
            limit = "patience" if len(mistakes) < self.max_iter else "max_iter"
            why = (
                f"{mistakes[-1]} times a row asked for a change in pass {len(mistakes)}, the last that {limit} allows; "
                f"raise {limit}, or use LinearSVM if the classes overlap"
                if mistakes[-1]
                else "the last weights did, but not their mean; use average=False"
            )
            warnings.warn(f"the classes are not separated: {why}", ConvergenceWarning, stacklevel=2)
        return self

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Go on with these rows, once and in the order given; the first call names all classes there will be.

        A fit with ``shuffle=False, max_iter=1`` is the same as one partial fit, or as many that bring its rows in
        order.
        """
        rule = self._rule()
        first = not hasattr(self, "_weights")
        X, y = self._read(X, y, reset=first)
        if first:
            if classes is None:
                raise ValueError("classes must be given on the first call to partial_fit: all that y will ever have")
            every = np.unique(np.asarray(classes))
            if len(every) < 2:
                raise ValueError(f"classes={every.tolist()}; a classifier needs at least 2 classes")
        else:
            every = self.classes_
            if bool(self.average) != bool(len(self._weights[0].v_missed)):
                raise ValueError(f"average={self.average}, but the first call had not; begin with a new estimator")
            if classes is not None and not np.array_equal(every, np.unique(np.asarray(classes))):
                raise ValueError(f"classes are not those of the first call, {every.tolist()}")
        unknown = np.setdiff1d(y, every)
        if len(unknown):
            raise ValueError(f"y has the class {unknown[0]!r}, which is not among the classes {every.tolist()}")
        rows, labels = self._rows(X), signs(y, every)
        if first:
            self.classes_, self.mistakes_ = every, []
            self._weights = self._begin(len(labels), rows.d, None, None)
        for proof in ("margin_", "separates_"):  # they were those of the rows of a fit
            self.__dict__.pop(proof, None)
        self.mistakes_.append(self._walk(rule, self._weights, rows, labels, np.arange(rows.n, dtype=np.int64)))
        self._keep()
        return self

    def _rule(self) -> Rule:
        """What to do with a row; raises where a parameter makes no sense."""
        raise NotImplementedError

    def _check_loop(self) -> None:
        self._check_switches("fit_intercept", "shuffle", "average")
        for name in ("max_iter", "patience"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name}={value!r}; it must be a whole number ≥ 1")

    def _begin(self, targets: int, d: int, coef: ArrayLike | None, intercept: ArrayLike | None) -> list[LazyWeights]:
        starts = np.zeros((targets, d)) if coef is None else np.atleast_2d(np.asarray(coef, dtype=np.float64))
        biases = np.zeros(targets) if intercept is None else np.asarray(intercept, dtype=np.float64).ravel()
        if starts.shape != (targets, d) or len(biases) != targets:
            raise ValueError(
                f"coef_init has shape {starts.shape} and intercept_init {biases.shape}; these data and classes want "
                f"{(targets, d)} and {(targets,)}"
            )
        if not np.isfinite(starts).all() or not np.isfinite(biases).all():
            raise ValueError("coef_init or intercept_init contains NaN or infinity; begin at finite numbers")
        if biases.any() and not self.fit_intercept:
            raise ValueError("intercept_init is not 0, but fit_intercept=False asks for no bias")
        average = bool(self.average)
        return [LazyWeights(d, average=average, start=w, bias=b) for w, b in zip(starts, biases, strict=True)]

    def _walk(
        self, rule: Rule, weights: list[LazyWeights], rows: Rows, labels: list[Floats], draws: NDArray[np.int64]
    ) -> int:
        return sum(
            rule(one, rows, y, draws, bias=bool(self.fit_intercept)) for one, y in zip(weights, labels, strict=True)
        )

    def _keep(self) -> None:
        self.coef_ = np.array([one.w for one in self._weights])
        self.intercept_ = np.array([one.b for one in self._weights])
        self.n_iter_ = len(self.mistakes_)

    def _smallest_margin(self, rows: Rows, labels: list[Floats]) -> float:
        """The least yᵢ(w·xᵢ + b)/‖w‖, over all classes."""
        margins = []
        for w, b, y in zip(self.coef_, self.intercept_, labels, strict=True):
            norm = float(np.linalg.norm(w))
            margins.append(float((y * (rows.scores(w) + b)).min()) / norm if norm > 0 else -np.inf)
        return min(margins)

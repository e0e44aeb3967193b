"""What every linear classifier shares: how it reads its input, and its predictions."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin.data import Rows
from widemargin.data.labels import FEW, distinct
from widemargin.model import LinearModel
from widemargin.one_against_rest import count_threads

Floats = NDArray[np.float64]


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """The side of a hyperplane for two classes, the highest score for more."""

    random_state: Any
    verbose: int
    n_jobs: int | None = None

    classes_: NDArray[Any]
    coef_: Floats
    intercept_: Floats
    n_iter_: int

    def decision_function(self, X: Any) -> Floats:
        """w·x + b for each row: of shape (n_samples,) for two classes, (n_samples, n_classes) for more."""
        check_is_fitted(self, "coef_")
        model = LinearModel(self.coef_, self.intercept_, self.classes_)
        if isinstance(X, Rows):
            if X.d != self.coef_.shape[1]:
                raise ValueError(f"X has {X.d} features, the model was trained on {self.coef_.shape[1]}")
            return model.scores(X)
        if not hasattr(self, "feature_names_in_") and _is_ready(X) and X.shape[1] == self.coef_.shape[1]:
            scores = model.scores(Rows(X, self._threads()))
            if np.isfinite(scores).all():  # a number in X that is not finite would show
                return scores
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], accept_large_sparse=True, reset=False
        )
        return model.scores(Rows(X, self._threads()))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        scores = self.decision_function(X)
        return LinearModel(self.coef_, self.intercept_, self.classes_).choose(scores)

    def _read(self, X: Any, y: Any, *, reset: bool = True, finite: bool = True) -> tuple[Any, NDArray[Any]]:
        """X as the kernels take it and y as an array, or an error that says what is wrong with them.

        Whether all of X is `finite` is left to the caller if he can tell with less than a walk over all of it.
        """
        if isinstance(X, Rows):  # of a file or a store, which was checked when it was read
            y = column_or_1d(y)
            check_consistent_length(X, y)
            if reset:
                self.n_features_in_ = X.d
            check_classification_targets(y)
            return X, y
        if not finite and reset and _is_ready(X) and _is_ready_label(y, X.shape[0]):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, y
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=True,
            ensure_all_finite=finite,
            reset=reset,
        )
        if not _is_plain(y):
            check_classification_targets(y)
        return X, y

    def _rows(self, X: Any) -> Rows:
        """What was read, for as many threads as were asked for."""
        return X.with_threads(self._threads()) if isinstance(X, Rows) else Rows(X, self._threads())

    def _check_switches(self, *names: str) -> None:
        """Every switch is on or off, and the other numbers that all classifiers have are what they should be."""
        for name in names:
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name}={getattr(self, name)!r}; it must be True or False")
        if not isinstance(self.verbose, Integral | np.bool_) or self.verbose < 0:
            raise ValueError(f"verbose={self.verbose!r}; it must be 0, 1 or 2")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs={self.n_jobs!r}; it must be a whole number ≠ 0, or None for all cores")

    def _threads(self) -> int:
        return count_threads(self.n_jobs)

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _is_ready(X: Any) -> bool:
    """Whether X needs no conversion, nor scikit-learn's look at what it is, which takes longer than many a fit."""
    plain = type(X) is np.ndarray or (issparse(X) and getattr(X, "format", None) == "csr")
    return plain and X.ndim == 2 and min(X.shape) > 0 and X.dtype in (np.float64, np.float32)


def _is_ready_label(y: Any, n: int) -> bool:
    """Whether y has n labels that scikit-learn would take as they are."""
    ready = type(y) is np.ndarray and y.shape == (n,) and y.dtype.kind in "biuf"
    return ready and bool(np.isfinite(y).all()) and _is_plain(y)


def _is_plain(y: NDArray[Any]) -> bool:
    """Whether labels are so few whole numbers that scikit-learn would have nothing to say about them."""
    if y.dtype.kind not in "biuf":
        return False
    classes = distinct(y)
    whole = np.abs(classes.astype(np.float64)) < 2**53 if y.dtype.kind == "f" else np.ones(len(classes), bool)
    return len(classes) <= min(FEW, len(y) // 2) and bool((whole & (classes == np.round(classes))).all())

"""GRAM: the kernel matrix K of the training rows, computed from them by the block, or given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data import Rows
from widemargin.kernels.functions import Kernel, is_sparse

Floats = NDArray[np.float64]
Source = _core.KernelRows32 | _core.KernelRows64

#: How much of a kernel value the rounding of float32 may change where its rows are computed in it. What it changes is
#: made up for each time the exact gradient is computed; with more, that would hardly help.
COARSEST = 1e-3
#: Kernel values beyond this, or all below its inverse, do not fit into float32.
LARGEST_SINGLE = 1e30
#: Rows of the largest kernel matrix that is tested for negative curvature as a whole; of more rows, so many are.
LARGEST_TEST = 2000
#: Negative curvature this small beside the mean of the diagonal is rounding.
ROUNDED = 1e-8


class Gram(ABC):
    """The kernel matrix of n rows."""

    n: int
    threads: int
    #: Whether K is known to be positive semidefinite by its formula, on Σ v = 0 at least.
    semidefinite: bool

    @cached_property
    @abstractmethod
    def diagonal(self) -> Floats:
        """K(x, x) of every row."""

    @abstractmethod
    def products(self, index: NDArray[np.intp], coef: Floats) -> Floats:
        """Σⱼ coefⱼ K[:, indexⱼ] in float64; for each column if coef has several."""

    @abstractmethod
    def block(self, index: NDArray[np.intp], others: NDArray[np.intp]) -> Floats:
        """K[index, others] in float64."""

    @abstractmethod
    def source(self, *, single: bool, memory: float, whole: bool = False) -> Source:
        """Its rows for a solver, in float32 or float64: all of them at once, or when they are needed.

        In the second case `memory` is how many bytes there are for those worth keeping.
        """

    @property
    @abstractmethod
    def single(self) -> bool:
        """Whether float32 is precise enough for the rows that a solver works with."""

    def curvature(self, index: NDArray[np.intp]) -> tuple[float, Floats] | None:
        """The smallest vᵀKv of ‖v‖ = 1, Σ v = 0 on these rows, and v, where it is negative by more than rounding."""
        K = self.block(index, index)
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
        K = (K + K.T) / 2
        mean = float(np.abs(np.diag(K)).mean())
        with np.errstate(all="ignore"):
            try:  # it succeeds where no curvature is below that: a twentieth of the time that eigenvalues take
                np.linalg.cholesky(K + ROUNDED * mean * np.eye(len(K)))
            except np.linalg.LinAlgError:
                values, vectors = np.linalg.eigh(K)
                return (float(values[0]), vectors[:, 0]) if values[0] < -ROUNDED * mean else None
        return None

    def negative_curvature(self, first: NDArray[np.intp]) -> tuple[float, Floats, NDArray[np.intp]] | None:
        """Where vᵀKv < 0 for some Σ v = 0, its value, v and its rows; looked for among all rows, or `first` and more.

        None where there is none, or none that was found.
        """
        if self.semidefinite or self.n < 2:
            return None
        index = np.arange(self.n)
        if self.n > LARGEST_TEST:
            others = np.setdiff1d(index, first[:LARGEST_TEST])
            more = np.random.default_rng(0).permutation(others)[: max(LARGEST_TEST - len(first), 0)]
            index = np.sort(np.concatenate([first[:LARGEST_TEST], more]))
        found = self.curvature(index)
        return None if found is None else (*found, index)


class PointsGram(Gram):
    """The kernel matrix of the rows of X."""

    def __init__(self, kernel: Kernel, rows: Rows, numbers: NDArray[np.intp] | None = None) -> None:
        """Of these rows, which messages call by `numbers`."""
        self.kernel, self.rows, self.n, self.threads = kernel, rows, rows.n, rows.threads_at_hand
        self.sparse, self.shift, self.semidefinite = is_sparse(rows), kernel.shift(rows), kernel.semidefinite
        kernel.check(rows)
        largest = self.diagonal.max() if self.n else 0.0
        if not np.isfinite(self.diagonal).all():
            at = int(np.argmin(np.isfinite(self.diagonal)))
            raise ValueError(
                f"k(x, x) of row {at if numbers is None else numbers[at]} is {self.diagonal[at]:g} with {kernel}; scale "
                "the columns of X, or use a smaller gamma or degree"
            )
        self.largest = float(largest)

    @cached_property
    def diagonal(self) -> Floats:
        """K(x, x) of every row."""
        return _core.kernel_diagonal(self.kernel.function, self.rows.core, self.shift, self.sparse)

    def products(self, index: NDArray[np.intp], coef: Floats) -> Floats:
        """Σⱼ coefⱼ K[:, indexⱼ] in float64; for each column if coef has several."""
        table = np.ascontiguousarray(coef if coef.ndim == 2 else coef[:, None])
        if not len(index):
            return np.zeros((self.n, *coef.shape[1:]))
        if self.kernel.name == "linear":  # X(Xᵀv), without kernel values
            wide = np.zeros((self.n, table.shape[1]))
            wide[index] = table
            found = np.column_stack([self.rows.scores(self.rows.combine(np.ascontiguousarray(v))) for v in wide.T])
            return found if coef.ndim == 2 else found[:, 0]
        chosen = Rows(self.rows.X[index], self.threads)
        found = _core.kernel_scores(
            self.kernel.function, self.rows.core, chosen.core, table, self.shift, self.sparse, self.threads
        )
        return found if coef.ndim == 2 else found[:, 0]

    def block(self, index: NDArray[np.intp], others: NDArray[np.intp]) -> Floats:
        """K[index, others] in float64."""
        a, b = Rows(self.rows.X[index], self.threads), Rows(self.rows.X[others], self.threads)
        return _core.kernel_matrix(self.kernel.function, a.core, b.core, self.shift, self.sparse, self.threads)

    def source(self, *, single: bool, memory: float, whole: bool = False) -> Source:
        """Its rows for a solver."""
        kind = _core.KernelRows32 if single else _core.KernelRows64
        points = self.kernel.function, self.rows.core, self.shift, self.sparse
        return kind.whole(*points, self.threads) if whole else kind.computed(*points, int(memory))

    @cached_property
    def single(self) -> bool:
        """Whether float32 is precise enough: distances are differences of squared norms, which cancel."""
        if not 1 / LARGEST_SINGLE < self.largest < LARGEST_SINGLE:
            return False
        exponent = 0.0
        if self.kernel.name in ("rbf", "laplacian", "chi2"):
            shift = np.zeros(self.rows.d) if self.shift is None else self.shift
            power = 2 if self.kernel.name == "rbf" else 1
            exponent = self.kernel.gamma * float(_largest_norm(self.rows, shift, power))
        return 4 * exponent * float(np.finfo(np.float32).eps) < COARSEST


class MatrixGram(Gram):
    """A kernel matrix that was given, or computed by somebody's function."""

    semidefinite = False

    def __init__(self, K: NDArray[Any], threads: int) -> None:
        self.K, self.n, self.threads = K, len(K), threads

    @cached_property
    def diagonal(self) -> Floats:
        """K(x, x) of every row."""
        return np.diag(self.K).astype(np.float64)

    def products(self, index: NDArray[np.intp], coef: Floats) -> Floats:
        """Σⱼ coefⱼ K[:, indexⱼ] in float64; for each column if coef has several."""
        found = np.zeros((self.n, *coef.shape[1:]))
        step = max(1, (1 << 22) // max(self.n, 1))
        for begin in range(0, len(index), step):  # in a fixed order, by rows of K, which is symmetric
            some = index[begin : begin + step]
            found += self.K[some].astype(np.float64, copy=False).T @ coef[begin : begin + step]
        return found

    def block(self, index: NDArray[np.intp], others: NDArray[np.intp]) -> Floats:
        """K[index, others] in float64."""
        return np.array(self.K[np.ix_(index, others)], dtype=np.float64)

    def source(self, *, single: bool, memory: float, whole: bool = False) -> Source:
        """Its rows for a solver: as they are, whatever precision is asked for."""
        return (_core.KernelRows32 if self.K.dtype == np.float32 else _core.KernelRows64).given(self.K)

    @property
    def single(self) -> bool:
        """Whether they are float32."""
        return bool(self.K.dtype == np.float32)


def _largest_norm(rows: Rows, shift: Floats, power: int) -> float:
    """The largest Σ abs(xⱼ − shiftⱼ)^power of a row."""
    if power == 2 and not shift.any():
        return float(rows.square_norms.max())
    X, most, step = rows.X, 0.0, max(1, (1 << 20) // max(rows.d, 1))
    for begin in range(0, rows.n, step):
        some = X[begin : begin + step]
        if isinstance(X, np.ndarray):
            sums = (np.abs(some.astype(np.float64) - shift) ** power).sum(axis=1)
        else:
            sums = np.asarray(abs(some.astype(np.float64)).sum(axis=1)).ravel()
        most = max(most, float(sums.max(initial=0.0)))
    return most

"""GRAM: the kernel matrix K of the training rows, computed from them by the block, or given."""

from __future__ import annotations

import math
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
#: Kernels exp(−γD), whose D is computed as a difference of norms.
OF_DISTANCES = ("rbf", "laplacian", "chi2")


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

    @cached_property
    @abstractmethod
    def sizes(self) -> Floats:
        """sᵢ of every row: K(xᵢ, xⱼ) is known to within √(sᵢsⱼ) units of 2⁻⁵⁰."""

    def rounding(self, index: NDArray[np.intp], coef: Floats) -> Floats | None:
        """By how much each of `products` may be off, in units of 2⁻⁵⁰, where a bound is known that `sizes` do not give.

        It takes as long as the products.
        """
        return None

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
                f"k(x, x) of row {at if numbers is None else numbers[at]} is {self.diagonal[at]:g} with {kernel}; "
                "scale the columns of X, or use a smaller gamma or degree"
            )
        self.largest = float(largest)

    @cached_property
    def diagonal(self) -> Floats:
        """K(x, x) of every row."""
        if self.kernel.name in OF_DISTANCES and np.isfinite(self._norms).all():
            return np.ones(self.n)
        return _core.kernel_diagonal(self.kernel.function, self.rows.core, self.shift, self.sparse, self.threads)

    @cached_property
    def sizes(self) -> Floats:
        """sᵢ of every row: K(xᵢ, xⱼ) is known to within √(sᵢsⱼ) units of 2⁻⁵⁰."""
        kernel = self.kernel
        if kernel.name in OF_DISTANCES:
            return 1 + self._lost * self._norms
        if kernel.name == "additive_chi2":
            return np.full(self.n, 2 * self._lost * float(self._norms.max(initial=0.0)))
        if kernel.name == "sigmoid":
            return 1 + kernel.gamma * self.rows.square_norms + abs(kernel.coef0)
        return np.abs(self.diagonal) * (kernel.degree if kernel.name == "poly" else 1)

    def rounding(self, index: NDArray[np.intp], coef: Floats) -> Floats | None:
        """By how much each of `products` may be off: exp(−γD) by a share of itself, and not at all for j = i."""
        own, size = self._lost / 2 * self._norms, np.abs(coef)
        if self.kernel.name == "additive_chi2":
            return np.asarray(2 * (own * size.sum() + own[index] @ size))
        if self.kernel.name not in OF_DISTANCES:
            return None
        near, far = self.products(index, np.column_stack([size, own[index] * size])).T
        near[index] -= size
        far[index] -= own[index] * size
        off = np.maximum(near, 0.0) * (1 + own) + np.maximum(far, 0.0)
        off[index] += size
        return np.asarray(off)

    @property
    def _lost(self) -> float:
        """How many units of 2⁻⁵⁰ γ times a distance loses, beside γ times the norms whose difference it is."""
        gamma = self.kernel.gamma if self.kernel.name in OF_DISTANCES else 1.0
        return gamma * (1 + math.sqrt(self.rows.d) / 4)  # the square root: a sum over d columns, its errors at random

    @cached_property
    def _norms(self) -> Floats:
        """‖xᵢ − shift‖² of every row, or Σ |xᵢⱼ − shiftⱼ| for kernels of such sums."""
        shift = np.zeros(self.rows.d) if self.shift is None else self.shift
        return _norms(self.rows, shift, 2 if self.kernel.name == "rbf" else 1)

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
        # What float32 must hold: squared lengths and the like, γ, and k(x, x).
        norms = self._norms if self.kernel.name in (*OF_DISTANCES, "additive_chi2") else self.rows.square_norms
        held = [self.largest, *((float(norms.max()),) if norms.any() else ()), *self.kernel.parameters.values()]
        if not all(1 / LARGEST_SINGLE < abs(one) < LARGEST_SINGLE for one in held if one != 0):
            return False
        exponent = 0.0
        if self.kernel.name in OF_DISTANCES:
            exponent = self.kernel.gamma * float(self._norms.max(initial=0.0))
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

    @cached_property
    def sizes(self) -> Floats:
        """The largest |Kᵢⱼ| of every row, which need not be Kᵢᵢ: K may be semidefinite on Σ v = 0 only."""
        if not self.n:
            return np.zeros(0)
        largest: Floats = np.maximum(self.K.max(axis=1), -self.K.min(axis=1)).astype(np.float64)
        return largest

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


def _norms(rows: Rows, shift: Floats, power: int) -> Floats:
    """Σ |xⱼ − shiftⱼ|^power of every row."""
    if power == 2 and not shift.any():
        return rows.square_norms
    if power == 2:  # ‖x‖² − 2x·shift + ‖shift‖², and at most what it may have lost
        square, own = rows.square_norms, float(shift @ shift)
        return np.asarray(
            np.maximum(square - 2 * rows.scores(shift) + own, 0.0) + 8 * np.finfo(np.float64).eps * (square + own)
        )
    X, norms, step = rows.X, np.empty(rows.n), max(1, (1 << 20) // max(rows.d, 1))
    for begin in range(0, rows.n, step):
        some = X[begin : begin + step]
        if isinstance(X, np.ndarray):
            norms[begin : begin + step] = np.abs(some.astype(np.float64) - shift).sum(axis=1)
        else:
            norms[begin : begin + step] = np.asarray(abs(some.astype(np.float64)).sum(axis=1)).ravel()
    return norms

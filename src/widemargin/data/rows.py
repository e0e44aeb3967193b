"""X as the kernels see it: dense in any order, or CSR; float32 or float64; not copied unless it has to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core

Floats = NDArray[np.float64]


class Rows:
    """The rows of a matrix and the products that training needs of them, computed by `threads` threads.

    `X` is a dense float array or a scipy CSR matrix or array, of float32 or float64. All sums run in float64, and their
    bits do not depend on `threads`.
    """

    @property
    def rough(self) -> bool:
        """Whether walks over them may be rough."""
        return False

    def __init__(self, X: Any, threads: int = 1) -> None:
        self.X = X
        if isinstance(X, np.ndarray):
            if any(stride % X.itemsize for stride in X.strides) or not X.flags.aligned:  # of a structured array, say
                self.X = X = X.copy()
            self.core = _core.dense_rows(X)
        else:
            columns, starts, ascending = _checked(X, threads)
            if not ascending:  # an entry in two parts would make a wrong norm, whatever X remembers of itself
                self.X = X = X.copy()
                X.has_sorted_indices = X.has_canonical_format = False
                X.sum_duplicates()
                columns, starts, _ = _checked(X, threads)
            self.core = _core.csr_rows(X.data, columns, starts, X.shape[1])
        self.n, self.d, self.nonzeros = self.core.n, self.core.d, self.core.nonzeros
        self._employ(threads)

    @property
    def shape(self) -> tuple[int, int]:
        """As an array has it."""
        return self.n, self.d

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The stretches of rows that are at hand at the same time: here, all of them."""
        return (slice(0, self.n),)

    def walk(self, order: Iterable[int], *, rough: bool = False) -> Iterator[tuple[int, Rows]]:
        """Each of these parts in this order, with its rows; only those of a store may be `rough`."""
        for k in order:
            yield k, self

    def with_threads(self, threads: int) -> Rows:
        """The same rows for another number of threads."""
        other = copy(self)
        other._employ(threads)
        return other

    def _employ(self, threads: int) -> None:
        """As many as pay of those at hand: for a walk over all numbers, and for products of all pairs in a row."""
        self.threads_at_hand, self.threads = threads, _worth(threads, self.nonzeros)
        self.threads_for_pairs = _worth(threads, self.nonzeros**2 // max(self.n, 1))

    def scores(self, w: Floats) -> Floats:
        """Xw."""
        return _core.scores(self.core, w, self.threads)

    def combine(self, v: Floats) -> Floats:
        """Xᵀv."""
        return _core.combine(self.core, v, self.threads)

    def combine_by_sign(self, v: Floats) -> Floats:
        """Xᵀmax(v, 0) and Xᵀmax(−v, 0)."""
        return _core.combine_by_sign(self.core, v, self.threads)

    def scores_and_combine(self, w: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Xw and Xᵀv, in one walk."""
        return _core.scores_and_combine(self.core, w, v, self.threads)

    def combine_squares(self, v: Floats) -> Floats:
        """Σ vᵢxᵢⱼ² of every column j."""
        return _core.combine_squares(self.core, v, self.threads)

    @cached_property
    def square_norms(self) -> Floats:
        """‖xᵢ‖² of every row."""
        return _core.square_norms(self.core, self.threads)

    def column_sums(self, weight: Floats, *, power: int = 1, shift: Floats | None = None) -> Floats:
        """Σ weightᵢ|xᵢⱼ − shiftⱼ|^power of every column j."""
        moved = np.zeros(self.d) if shift is None else shift
        if isinstance(self.X, np.ndarray):
            total, step = np.zeros(self.d), max(1, (1 << 20) // self.d)
            for begin in range(0, self.n, step):
                block = self.X[begin : begin + step].astype(np.float64) - moved
                total += weight[begin : begin + step] @ np.abs(block) ** power
            return total
        columns, weights = self.X.indices, np.repeat(weight, np.diff(self.X.indptr))
        stored = weights * np.abs(self.X.data.astype(np.float64) - moved[columns]) ** power
        missing = float(weight.sum()) - np.bincount(columns, weights, minlength=self.d)  # their x is 0
        missing[np.bincount(columns, minlength=self.d) == self.n] = 0.0
        sums = np.bincount(columns, stored, minlength=self.d) + missing * np.abs(moved) ** power
        return np.asarray(sums, dtype=np.float64)

    def gram(self, weight: Floats, shift: Floats | None, border: bool) -> Floats:
        """Σ weightᵢ zᵢzᵢᵀ with zᵢ = xᵢ − shift and, with a border, a last component 1."""
        return _core.gram(self.core, weight, shift, border, self.threads_for_pairs)

    def outer(self) -> Floats:
        """XXᵀ."""
        if isinstance(self.X, np.ndarray):
            columns = Rows(self.X.T, self.threads_at_hand)
            return columns.gram(np.ones(columns.n), None, border=False)
        products = np.empty((self.n, self.n))
        step = max(1, (1 << 22) // self.n)
        for begin in range(0, self.n, step):
            products[begin : begin + step] = (self.X[begin : begin + step].astype(np.float64) @ self.X.T).toarray()
        return products

    def take(self, index: NDArray[np.integer]) -> Floats:
        """The rows of that index, dense and in float64."""
        chosen = self.X[index]
        return np.asarray(chosen if isinstance(chosen, np.ndarray) else chosen.toarray(), dtype=np.float64)


class CsrRows(Rows):
    """Compressed sparse rows in arrays that are known to be sound; they become a matrix of scipy only if asked for."""

    def __init__(self, x: NDArray[Any], columns: NDArray[Any], starts: NDArray[Any], d: int, threads: int = 1) -> None:
        self.arrays, self.core = (x, columns, starts), _core.csr_rows(x, columns, starts, d)
        self.n, self.d, self.nonzeros = self.core.n, d, len(x)
        self._employ(threads)

    @cached_property
    def X(self) -> Any:  # noqa: N802  # as in Rows
        """A CSR array."""
        return csr_of(*self.arrays, self.d)


def csr_of(x: NDArray[Any], columns: NDArray[Any], starts: NDArray[Any], d: int) -> Any:
    """The CSR array of these arrays, which are neither copied nor looked at."""
    from scipy.sparse import csr_array  # slow to import

    matrix: Any = csr_array((len(starts) - 1, d), dtype=x.dtype)
    matrix.data, matrix.indices, matrix.indptr = x, columns, starts
    return matrix


def as_csr(X: Any) -> Any:
    """X as a CSR array of floats whose indices rise within each row; the same arrays if they do already."""
    from scipy.sparse import csr_array

    rows = csr_array(X)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _worth(threads: int, numbers: int) -> int:
    """As many threads as pay: waking one takes as long as reading a few ten thousand numbers."""
    return threads if numbers >= 250_000 else 1


def _checked(X: Any, threads: int) -> tuple[NDArray[np.integer], NDArray[np.integer], bool]:
    """X's columns and the starts of its rows in one type, and whether columns ascend within each row.

    The kernels trust the indices: an index outside of X would read and write foreign memory.
    """
    kind = X.indices.dtype if len(X.indices) <= np.iinfo(X.indices.dtype).max else np.dtype(np.int64)
    columns, starts = X.indices.astype(kind, copy=False), X.indptr.astype(kind, copy=False)
    if len(X.data) != len(columns):
        raise ValueError(f"X.data has {len(X.data)} values for {len(columns)} X.indices; rebuild X")
    whole = len(starts) == X.shape[0] + 1 and starts[0] == 0 and starts[-1] == len(columns)
    rising, inside, ascending = (
        _core.check_order(columns, starts, X.shape[1], _worth(threads, len(columns))) if whole else (False,) * 3
    )
    if not rising:
        raise ValueError(
            "X.indptr does not rise from 0 to the number of non-zeros; rebuild X, or call X.check_format()"
        )
    if not inside:
        at = int(np.argmax((columns < 0) | (columns >= X.shape[1])))
        raise ValueError(
            f"X.indices[{at}] is {columns[at]}, but X has {X.shape[1]} columns; rebuild X with the right shape"
        )
    return columns, starts, ascending

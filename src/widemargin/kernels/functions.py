"""KERNEL: k(a, b), an inner product Φ(a)·Φ(b) of features that need not be written down. Its values are compiled.

| name | k(a, b) |
|---|---|
| linear | a·b |
| poly | (γ a·b + coef0)^degree |
| rbf | exp(−γ‖a − b‖²) |
| sigmoid | tanh(γ a·b + coef0); positive semidefinite only for some γ, coef0 and rows |
| cosine | a·b/(‖a‖‖b‖) |
| laplacian | exp(−γ Σ abs(a − b)) |
| chi2 | exp(−γ Σ (a − b)²/(a + b)), for a, b ≥ 0 |
| additive_chi2 | −Σ (a − b)²/(a + b), for a, b ≥ 0; positive semidefinite on Σ v = 0, which is all that a bias needs |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data import Rows
from widemargin.data.rows import as_csr

Floats = NDArray[np.float64]

#: Every kernel by its name; "polynomial" is scikit-learn's other name for "poly".
NAMES = ("linear", "poly", "rbf", "sigmoid", "cosine", "laplacian", "chi2", "additive_chi2")
#: Which of γ, degree and coef0 a kernel has.
PARAMETERS = {
    "poly": ("gamma", "degree", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
    "laplacian": ("gamma",),
    "chi2": ("gamma",),
}
#: Kernels of differences: all rows may be moved by the same vector.
OF_DIFFERENCES = ("rbf", "laplacian")
#: A variance whose inverse is finite.
SMALLEST = 1 / np.finfo(np.float64).max
#: Share of non-zeros below which rows are multiplied as sparse ones: a multiplication costs the same either way, and
#: sparse rows need one per non-zero.
SPARSE = 0.5


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import Kernel
    >>> Kernel("rbf", gamma=0.5).matrix(np.eye(2), np.eye(2)).round(6).tolist()
    [[1.0, 0.367879], [0.367879, 1.0]]

    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(f"kernel={self.name!r}; choose from {', '.join(map(repr, NAMES))}")
        if not isinstance(self.gamma, Real) or not 0 < self.gamma < np.inf:
            raise ValueError(f"gamma={self.gamma!r}; it must be a finite number > 0, 'scale' or 'auto'")
        if not isinstance(self.degree, Integral) or self.degree < 0:
            raise ValueError(f"degree={self.degree!r}; it must be a whole number ≥ 0")
        if not isinstance(self.coef0, Real) or not np.isfinite(self.coef0):
            raise ValueError(f"coef0={self.coef0!r}; it must be a finite number")

    @property
    def parameters(self) -> dict[str, float]:
        """Those of γ, degree and coef0 that this kernel has."""
        return {name: getattr(self, name) for name in PARAMETERS.get(self.name, ())}

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value:.6g}" for name, value in self.parameters.items())
        return f"{self.name}({inside})" if inside else self.name

    @property
    def semidefinite(self) -> bool:
        """Whether every kernel matrix is positive semidefinite by the formula, on Σ v = 0 at least."""
        if self.name == "poly":
            return self.coef0 >= 0
        return self.name != "sigmoid"

    @cached_property
    def function(self) -> _core.KernelFunction:
        """What the compiled code calls."""
        return _core.kernel_function(self.name, float(self.gamma), float(self.coef0), int(self.degree))

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the compiled function, which is made again."""
        return {name: value for name, value in vars(self).items() if name != "function"}

    def matrix(self, A: Any, B: Any, threads: int = 1) -> Floats:
        """K(a, b) of all rows of A with all rows of B, in float64."""
        a, b = rows_of(A, threads), rows_of(B, threads)
        self.check(a, b)
        shift, sparse = self.shift(a), is_sparse(b)
        return _core.kernel_matrix(self.function, a.core, b.core, shift, sparse, threads)

    def scores(self, A: Any, B: Any, coef: Floats, threads: int = 1) -> Floats:
        """Σⱼ coefⱼ k(aᵢ, bⱼ) of every row of A, in float64; for each column if coef has several."""
        a, b = rows_of(A, threads), rows_of(B, threads)
        self.check(a, b)
        table = np.ascontiguousarray(coef if coef.ndim == 2 else coef[:, None], dtype=np.float64)
        # Rows of a block are packed as B's are, and moved by the same vector.
        found = _core.kernel_scores(self.function, a.core, b.core, table, self.shift(b), is_sparse(b), threads)
        return found if coef.ndim == 2 else found[:, 0]

    def diagonal(self, A: Any, threads: int = 1) -> Floats:
        """K(a, a) of every row."""
        a = rows_of(A, threads)
        return _core.kernel_diagonal(self.function, a.core, self.shift(a), is_sparse(a), threads)

    def shift(self, rows: Rows) -> Floats | None:
        """What is taken from every row before distances are computed, which loses fewer digits near 0: the mean."""
        if self.name not in OF_DIFFERENCES or is_sparse(rows):
            return None
        return rows.combine(np.full(rows.n, 1 / rows.n))

    def check(self, *tables: Rows) -> None:
        """Raises where rows are not what the kernel is defined for."""
        if self.name in ("chi2", "additive_chi2"):
            for rows in tables:
                values = rows.X if isinstance(rows.X, np.ndarray) else rows.X.data
                if values.size and values.min() < 0:
                    raise ValueError(
                        f"Negative values in data: kernel={self.name!r} is for numbers ≥ 0, and X has "
                        f"{values.min():g}; shift or scale the columns (MinMaxScaler), or use another kernel"
                    )


def rows_of(X: Any, threads: int) -> Rows:
    """X as the compiled code reads it."""
    if isinstance(X, Rows):
        return X
    if not hasattr(X, "toarray"):
        X = np.asarray(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
    else:
        X = as_csr(X)
    return Rows(X, threads)


def is_sparse(rows: Rows) -> bool:
    """Whether so few numbers are not 0 that multiplying those alone is faster."""
    return not isinstance(rows.X, np.ndarray) and rows.nonzeros < SPARSE * rows.n * rows.d


#: What a kernel may be given as: its name, or a function of two sets of rows.
KernelLike = str | Callable[[Any, Any], Any]


def variance(rows: Rows, weights: Floats | None = None) -> float:
    """Var of all numbers in X, the missing ones of sparse rows being 0, as if each row stood there `weights` times."""
    X, each = rows.X, np.ones(rows.n) if weights is None else weights
    count = rows.d * float(each.sum())
    if isinstance(X, np.ndarray):
        mean, spread, step = float(each @ X.sum(axis=1, dtype=np.float64)) / count, 0.0, max(1, (1 << 20) // rows.d)
        for begin in range(0, rows.n, step):
            some = np.square(np.subtract(X[begin : begin + step], mean, dtype=np.float64))
            spread += float(each[begin : begin + step] @ some.sum(axis=1))
    else:
        data, stored = X.data.astype(np.float64), np.repeat(each, np.diff(X.indptr))
        mean = float(stored @ data) / count
        spread = float(stored @ np.square(data - mean)) + (count - float(stored.sum())) * mean**2
    # Equal numbers differ from their mean by its rounding alone.
    rounding = (8 * np.finfo(np.float64).eps * mean) ** 2
    return 0.0 if spread / count <= rounding < np.inf else spread / count


def gamma_of(gamma: float | str, rows: Rows, weights: Floats | None = None) -> float:
    """The number that γ stands for: "scale" is 1/(d · Var X) of weighted rows, "auto" is 1/d."""
    if isinstance(gamma, str):
        if gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                spread = variance(rows, weights)
            if spread == 0:
                return 1.0
            if not SMALLEST < rows.d * spread < np.inf:
                raise ValueError(
                    f"gamma='scale' is 1/(n_features · X.var()), and X.var() is {spread:g}; scale the columns of X "
                    "(StandardScaler), or give gamma a number"
                )
            return 1.0 / (rows.d * spread)
        if gamma == "auto":
            return 1.0 / rows.d
        raise ValueError(f"gamma={gamma!r}; it must be a finite number > 0, 'scale' or 'auto'")
    return gamma

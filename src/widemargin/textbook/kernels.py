"""Kernels: inner products Φ(a)·Φ(b) of features that need not be written down.

The dual SVM sees examples only in inner products, so that k(a, b) in their place trains a linear classifier on Φ.
A kernel here takes two sets of rows and returns the matrix of k over all pairs.

Notes 001, slides "Feature Map Φ" and "Properties", which say that a kernel may replace the inner product and leave open
which; these are the usual three.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from widemargin.textbook.step import Floats

Kernel = Callable[[Floats, Floats], Floats]


def linear(A: Floats, B: Floats) -> Floats:
    """k(a, b) = a·b, the plain SVM."""
    return np.asarray(A @ B.T)


def polynomial(degree: int, offset: float = 1.0) -> Kernel:
    """k(a, b) = (offset + a·b)^degree: all products of up to `degree` columns."""
    return lambda A, B: (offset + A @ B.T) ** degree


def gaussian(gamma: float) -> Kernel:
    """k(a, b) = exp(−γ‖a − b‖²), with infinitely many features."""
    return lambda A, B: np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def quadratic_features(X: Floats) -> Floats:
    """Φ(x) = (1, √2 xⱼ, xⱼ², √2 xⱼxₖ for j < k), for which Φ(x)·Φ(z) = (1 + x·z)²."""
    j, k = np.triu_indices(X.shape[1], 1)
    return np.hstack([np.ones((len(X), 1)), np.sqrt(2) * X, X**2, np.sqrt(2) * X[:, j] * X[:, k]])

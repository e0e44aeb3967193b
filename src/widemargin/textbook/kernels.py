"""Kernels: inner products k(a, b) = Φ(a)·Φ(b) of features Φ that need not be written down.

The dual SVM, the perceptron and coordinate descent on the dual see examples only in inner products, and their weights
are a combination of examples, w = Σ αᵢyᵢΦ(xᵢ). With k in place of the inner product they train a linear classifier on Φ
from the n numbers α alone: the score of z is w·Φ(z) + b = Σ αᵢyᵢ k(xᵢ, z) + b, `(alpha * y) @ kernel(X, Z) + b`.

`perceptron`, `dual_cd` and `smo` take `kernel=`; `hildreth` takes the matrix of the dual, `outer(y, y) * kernel(X, X)`.
In a `Step` with a kernel, w is empty, since Φ is not written down, and `alpha` stands for it.

A kernel here takes two sets of rows and returns the matrix of k over all pairs. There is a Φ if and only if that matrix
is positive semidefinite whatever the rows are; of those below, the sigmoid's may not be.

Notes 001, slides "Feature Map Φ" and "Properties", which say that a kernel may replace the inner product and leave open
which; these are the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from widemargin.textbook.step import Floats

Kernel = Callable[[Floats, Floats], Floats]


def linear(A: Floats, B: Floats) -> Floats:
    """k(a, b) = a·b, the plain SVM."""
    return np.asarray(A @ B.T)


def polynomial(degree: int, offset: float = 1.0, gamma: float = 1.0) -> Kernel:
    """k(a, b) = (offset + γ a·b)^degree: all products of up to `degree` columns."""
    return lambda A, B: (offset + gamma * (A @ B.T)) ** degree


def gaussian(gamma: float) -> Kernel:
    """k(a, b) = exp(−γ‖a − b‖²), with infinitely many features."""
    return lambda A, B: np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def laplacian(gamma: float) -> Kernel:
    """k(a, b) = exp(−γ Σ |aⱼ − bⱼ|): as the Gaussian, with a kink at a = b."""
    return lambda A, B: np.exp(-gamma * np.abs(A[:, None] - B[None]).sum(axis=2))


def chi2(gamma: float) -> Kernel:
    """k(a, b) = exp(−γ Σ (aⱼ − bⱼ)²/(aⱼ + bⱼ)) for histograms, aⱼ, bⱼ ≥ 0; a column empty in both adds 0."""

    def kernel(A: Floats, B: Floats) -> Floats:
        if min(A.min(initial=0.0), B.min(initial=0.0)) < 0:
            raise ValueError("chi2 is for columns ≥ 0, such as counts; choose another kernel for negative values")
        both = A[:, None] + B[None]
        return np.asarray(np.exp(-gamma * ((A[:, None] - B[None]) ** 2 / np.where(both > 0, both, 1.0)).sum(axis=2)))

    return kernel


def sigmoid(gamma: float, offset: float = 0.0) -> Kernel:
    """k(a, b) = tanh(γ a·b + offset), which need not be positive semidefinite: then it has no Φ and no dual SVM."""
    return lambda A, B: np.tanh(gamma * (A @ B.T) + offset)


def quadratic_features(X: Floats) -> Floats:
    """Φ(x) = (1, √2 xⱼ, xⱼ², √2 xⱼxₖ for j < k), for which Φ(x)·Φ(z) = (1 + x·z)², the kernel `polynomial(2)`."""
    j, k = np.triu_indices(X.shape[1], 1)
    return np.hstack([np.ones((len(X), 1)), np.sqrt(2) * X, X**2, np.sqrt(2) * X[:, j] * X[:, k]])


def coordinates(X: Floats, kernel: Kernel | None) -> tuple[Floats, Floats]:
    """R and F for a vector w of numbers: w·Φ(xᵢ) is w @ R[i], and adding Φ(xᵢ) to w is w + F[i].

    Without a kernel Φ(x) = x and both are X. With one, w = Σ βⱼΦ(xⱼ) is kept as its coefficients β: R is the matrix of
    k over all pairs, and adding Φ(xᵢ) adds 1 to βᵢ.
    """
    return (X, X) if kernel is None else (kernel(X, X), np.eye(len(X)))

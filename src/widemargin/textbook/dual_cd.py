"""Coordinate descent on the dual SVM without bias: maximise Σ αᵢ − ½‖Σ αᵢyᵢxᵢ‖² over 0 ≤ αᵢ ≤ C.

It is the dual of ½‖w‖² + C Σ max(0, 1 − yᵢ w·xᵢ), with w = Σ αᵢyᵢxᵢ. The best αᵢ while the others stay is
αᵢ + (1 − yᵢ w·xᵢ)/‖xᵢ‖², cut to [0, C]; w is carried along, w ← w + (change of αᵢ) yᵢxᵢ, so that a step costs one row
and not the whole of Q. An empty row adds αᵢ and nothing else to the objective: αᵢ = C.

With a kernel k(a, b) = Φ(a)·Φ(b), positive semidefinite, in place of the inner product, w = Σ αᵢyᵢΦ(xᵢ) is kept as the
coefficients αᵢyᵢ: yᵢ w·Φ(xᵢ) = yᵢ Σ αⱼyⱼ k(xⱼ, xᵢ) costs a row of the matrix of k, and ‖Φ(xᵢ)‖² is k(xᵢ, xᵢ). It is
Hildreth's algorithm on Qᵢⱼ = yᵢyⱼk(xᵢ, xⱼ) and b = −1 (`hildreth.py`). The score of z is Σ αᵢyᵢ k(xᵢ, z).

>>> from widemargin.textbook.kernels import polynomial
>>> X, y = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, -1.0, -1.0, 1.0])
>>> *_, last = dual_cd(X, y, 1.0, [0, 1, 2, 3] * 20, kernel=polynomial(2))
>>> print(last.alpha, last.objective, (last.alpha * y) @ polynomial(2)(X, X))
[0.125 0.125 0.125 0.125] 0.25 [ 1. -1. -1.  1.]

Notes 001, slides "Dual Problem" and "Quadratic Program in Dual", which name coordinate descent; the box [0, C] is the
slide's "bound influence", the kernel is that of "Feature Map Φ" and "Properties". The slide's Lagrangian has a bias,
its dual has not, as here; `smo.py` has both. With w carried along: Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML
2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.kernels import Kernel, coordinates
from widemargin.textbook.step import Floats, Step


def dual_cd(X: Floats, y: Floats, C: float, draws: Iterable[int], *, kernel: Kernel | None = None) -> Iterator[Step]:
    """Coordinate steps from α = 0; `draws` names the coordinate of each.

    With a kernel, w is empty, and `alpha` stands for it.
    """
    R, F = coordinates(X, kernel)
    w, alpha = np.zeros(R.shape[1]), np.zeros(len(X))
    for t, i in enumerate(draws, 1):
        square = R[i] @ F[i]
        if square > 0:
            new = min(max(alpha[i] + (1 - y[i] * (w @ R[i])) / square, 0.0), C)
            w = w + (new - alpha[i]) * y[i] * F[i]
            alpha[i] = new
        else:
            alpha[i] = C
        norm = w @ w if kernel is None else w @ R @ w
        shown = w.copy() if kernel is None else np.empty(0)
        yield Step(t, i, shown, 0.0, alpha.copy(), np.nan, float(alpha.sum() - norm / 2))

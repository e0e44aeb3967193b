"""SMO: maximise Σ αᵢ − ½αᵀQα over 0 ≤ αᵢ ≤ C with Σ αᵢyᵢ = 0, two coordinates at a time. Qᵢⱼ = yᵢyⱼKᵢⱼ.

It is the dual of ½‖w‖² + C Σ max(0, 1 − yᵢ(w·xᵢ + b)); K holds the inner products xᵢ·xⱼ or a kernel in their place. The
sum leaves no coordinate free to move alone. With f = −y∘(Qα − 1), which is yᵢ − w·xᵢ, the pair αᵢ + yᵢs, αⱼ − yⱼs gains
if fᵢ > fⱼ, αᵢyᵢ may go up and αⱼyⱼ down; best is s = (fᵢ − fⱼ)/(Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ), cut where either meets its bound.
i has the largest f of those that may go up, j is the partner that would gain most if nothing were cut. No pair is left
when all f that may go up are below all that may go down; b lies between the two, here in the middle.

Notes 001, slides "Dual Problem" and "Quadratic Program in Dual", which name SMO. Their Lagrangian has a bias, yet its
derivative in b, which gives Σ αᵢyᵢ = 0, is missing from the dual. Platt 1998, "Sequential minimal optimization"; the
choice of j is that of Fan, Chen and Lin, JMLR 6 (2005).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def smo(
    X: Floats,
    y: Floats,
    C: float,
    *,
    kernel: Callable[[Floats, Floats], Floats] | None = None,
    max_steps: int = 10_000,
    tol: float = 1e-12,
) -> Iterator[Step]:
    """Steps from α = 0 until fᵢ − fⱼ ≤ tol for every pair; none if there is one class. With a kernel, w is empty."""
    K = X @ X.T if kernel is None else kernel(X, X)
    Q = np.outer(y, y) * K
    alpha, f = np.zeros(len(y)), np.array(y, dtype=float)
    up, low = y > 0, y < 0
    for t in range(1, max_steps + 1):
        rising = np.where(up, f, -np.inf)
        violation = rising.max() - f[low].min(initial=np.inf)
        if not violation > tol:
            return
        tie = 1e-10 if violation > 1e-7 else 0.0  # the last pair's f are equal but for rounding: then the first of them
        i = int((rising >= rising.max() - tie).argmax())
        drop = np.where(low, f[i] - f, -np.inf)
        curvature = np.maximum(K[i, i] + np.diag(K) - 2 * K[i], 1e-15 * (K[i, i] + np.diag(K)))
        j = int((np.maximum(drop, 0.0) ** 2 / curvature).argmax())
        room_i, room_j = C - alpha[i] if y[i] > 0 else alpha[i], alpha[j] if y[j] > 0 else C - alpha[j]
        s = min(drop[j] / curvature[j], room_i, room_j)
        alpha[i] = alpha[i] + y[i] * s if s < room_i else C if y[i] > 0 else 0.0
        alpha[j] = alpha[j] - y[j] * s if s < room_j else 0.0 if y[j] > 0 else C
        gradient = Q @ alpha - 1
        f = -y * gradient
        up, low = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
        b = (f[up].max() + f[low].min()) / 2
        w = (alpha * y) @ X if kernel is None else np.empty(0)
        yield Step(t, (i, j), w, float(b), alpha.copy(), np.nan, float(alpha @ (1 - gradient)) / 2)

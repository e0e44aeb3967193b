"""SMO: maximise Σ αᵢ − ½αᵀQα over 0 ≤ αᵢ ≤ C with Σ αᵢyᵢ = 0, two coordinates at a time. Qᵢⱼ = yᵢyⱼKᵢⱼ.

It is the dual of ½‖w‖² + C Σ max(0, 1 − yᵢ(w·xᵢ + b)); K holds the inner products xᵢ·xⱼ or a kernel in their place,
k(xᵢ, xⱼ) = Φ(xᵢ)·Φ(xⱼ), with w = Σ αᵢyᵢΦ(xᵢ). The sum leaves no coordinate free to move alone. With f = −y∘(Qα − 1),
which is yᵢ − w·Φ(xᵢ), the pair αᵢ + yᵢs, αⱼ − yⱼs gains if fᵢ > fⱼ, αᵢyᵢ may go up and αⱼyⱼ down. The working set
(i, j) and the step s, ties included:

- up: the k whose αₖyₖ may go up, αₖ < C if yₖ = 1 and αₖ > 0 if yₖ = −1; low: those whose αₖyₖ may go down, αₖ > 0 if
  yₖ = 1 and αₖ < C if yₖ = −1. A step that meets a bound sets α to 0 or C exactly, so that no tolerance is needed here.
- The violation is M − m, M the largest f in up, m the smallest in low. If it is at most tol, no step is taken.
- i is the first k in up with fₖ ≥ M − ε. ε = 1e-10 while the violation is above 1e-7, and 0 below: after a step that
  met no bound fᵢ = fⱼ but for rounding, and rounding is not to choose between them.
- aₖ = Kᵢᵢ + Kₖₖ − 2Kᵢₖ = ‖Φ(xᵢ) − Φ(xₖ)‖² is the curvature along the pair (i, k), or 1e-15 (Kᵢᵢ + Kₖₖ) if that is more.
- j is the k in low with fₖ < fᵢ and the largest (fᵢ − fₖ)²/aₖ, twice the gain of the pair if it met no bound; of equal
  ones the first.
- s = (fᵢ − fⱼ)/aⱼ, or the most that the bounds of αᵢ and αⱼ allow if that is less.

f is computed anew from α after every step. No pair is left when no f in up is above one in low; b lies between M and m,
here in the middle. The score of z is Σ αᵢyᵢ k(xᵢ, z) + b.

Notes 001, slides "Dual Problem" and "Quadratic Program in Dual", which name SMO. Their Lagrangian has a bias, yet its
derivative in b, which gives Σ αᵢyᵢ = 0, is missing from the dual. Platt 1998, "Sequential minimal optimization"; the
choice of j is that of Fan, Chen and Lin, JMLR 6 (2005). The kernel: 001, slides "Feature Map Φ" and "Properties".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin.textbook.kernels import Kernel, linear
from widemargin.textbook.step import Floats, Step


def smo(
    X: Floats,
    y: Floats,
    C: float,
    *,
    kernel: Kernel | None = None,
    max_steps: int = 10_000,
    tol: float = 1e-12,
) -> Iterator[Step]:
    """Steps from α = 0 until fᵢ − fⱼ ≤ tol for every pair; none if there is one class.

    With a kernel, w is empty, and `alpha` stands for it.
    """
    K = linear(X, X) if kernel is None else kernel(X, X)
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
        drop = f[i] - f
        curvature = np.maximum(K[i, i] + np.diag(K) - 2 * K[i], 1e-15 * (K[i, i] + np.diag(K)))
        gain = np.full(len(y), -np.inf)
        with np.errstate(divide="ignore"):  # curvature 0, between two with Φ = 0: an endless gain, cut at the bounds
            np.divide(drop**2, curvature, out=gain, where=low & (drop > 0))
            j = int(gain.argmax())
            wanted = drop[j] / curvature[j]
        room_i, room_j = C - alpha[i] if y[i] > 0 else alpha[i], alpha[j] if y[j] > 0 else C - alpha[j]
        s = min(wanted, room_i, room_j)
        alpha[i] = alpha[i] + y[i] * s if s < room_i else C if y[i] > 0 else 0.0
        alpha[j] = alpha[j] - y[j] * s if s < room_j else 0.0 if y[j] > 0 else C
        gradient = Q @ alpha - 1
        f = -y * gradient
        up, low = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
        b = (f[up].max() + f[low].min()) / 2
        w = (alpha * y) @ X if kernel is None else np.empty(0)
        yield Step(t, (i, j), w, float(b), alpha.copy(), np.nan, float(alpha @ (1 - gradient)) / 2)

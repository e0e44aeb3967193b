"""MIRA: whenever an example's margin m = y(w·x + b) is at most p, change w and b as little as gives it margin 1.

One example: min ½‖w′ − w‖² + ½(b′ − b)² with y(w′·x + b′) ≥ 1, solved by w′ = w + αyx, b′ = b + αy,
α = min(C, (1 − m)/(‖x‖² + 1)); without bias there is no b and no +1.
A batch: the same for all its examples with m ≤ p at once. The dual is max −½αᵀQα − αᵀr with 0 ≤ α ≤ C, where
Qᵢⱼ = yᵢyⱼ(xᵢ·xⱼ + 1) and r = m − 1, a small QP for Hildreth's algorithm; w′ = w + Σ αᵢyᵢxᵢ, b′ = b + Σ αᵢyᵢ. One
example is a batch of one.

C = ∞ is the notes' MIRA; a finite C bounds the pull of any example (passive-aggressive, Crammer et al. 2006). Examples
that contradict each other leave a batch without solution if C = ∞: α then grows until the sweeps run out.

Notes 001, slides "SVM vs. MIRA" and "MIRA as QP". They write w′·x ≥ 1, which is meant for a positive example; with
labels it is y w′·x ≥ 1. p > 0 is the aggressive MIRA, which tends to the SVM as p → 1, says the slide. It comes near:
without bias and for C = ∞ it ends with a geometric margin of at least p/(1 + p) times the largest. It need not arrive,
since no α ever goes down again: (0.6, 0.8) and (1, 0), both positive, end at w = (1, 0.8) for every p from 0.6 to 1,
while the hard margin is (1, 0.5). The batch of both, from w = 0, is the hard margin itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from widemargin.textbook.step import Floats, Step


def mira(
    X: Floats,
    y: Floats,
    draws: Iterable[int | Sequence[int]],
    *,
    p: float = 0.0,
    C: float = np.inf,
    fit_intercept: bool = False,
) -> Iterator[Step]:
    """MIRA from w = 0; `draws` names the example or examples of each step."""
    w, b = np.zeros(X.shape[1]), 0.0
    for t, draw in enumerate(draws, 1):
        batch = np.atleast_1d(draw)
        if not batch.size:
            raise ValueError(f"draw {t} is empty: give an example, or a sequence of at least one")
        m = y[batch] * (X[batch] @ w + b)
        late = batch[m <= p]
        Z = y[late, None] * X[late]
        Q = Z @ Z.T + fit_intercept * np.outer(y[late], y[late])
        alpha = _least_change(Q, m[m <= p] - 1, C)
        w = w + alpha @ Z
        b += fit_intercept * float(alpha @ y[late])
        single = np.ndim(draw) == 0
        i = batch.item() if single else tuple(batch.tolist())
        eta = float(alpha.sum()) if single else np.nan
        yield Step(t, i, w.copy(), b, None, eta, float(np.maximum(0.0, 1 - y * (X @ w + b)).sum()))


def _least_change(Q: Floats, r: Floats, C: float) -> Floats:
    """The α of the small QP, by sweeps over its coordinates until one changes nothing that counts."""
    alpha = np.zeros(len(r))
    for _ in range(20_000):
        moved = False
        for i in np.flatnonzero(np.diag(Q) > 0):  # an empty row has no margin to gain
            new = min(max(alpha[i] - (Q[i] @ alpha + r[i]) / Q[i, i], 0.0), C)
            moved |= abs(new - alpha[i]) > 1e-15 * (1 + new)
            alpha[i] = new
        if not moved:
            break
    return alpha

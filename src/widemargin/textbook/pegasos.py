"""Pegasos: minimise λ/2 ‖w‖² + (1/n) Σ max(0, 1 − yᵢ(w·xᵢ + b)) over w, and over b if asked for.

Step t draws k examples (one, in the notes) and takes their margins at wₜ; with ηₜ = 1/(λt),
wₜ₊₁ = (1 − 1/t)wₜ + (ηₜ/k) Σ yᵢxᵢ over those of them with margin < 1, then optionally, since the minimum lies in the
ball of radius 1/√λ, wₜ₊₁ ← min(1, (1/√λ)/‖wₜ₊₁‖) wₜ₊₁. The bias is not penalised and so not shrunk:
b ← b + (ηₜ/k) Σ yᵢ.

Notes 001, slide "Sub-gradient descent algorithm for SVM" and the box after it, and 000's derivation above its own box:
w⁽ᵗ⁺¹⁾ = −(1/λt) Σ vⱼ is this update unrolled. Batches, bias and average are in Shalev-Shwartz, Singer, Srebro and
Cotter, Mathematical Programming 127 (2011).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from widemargin.textbook.step import Floats, Step


def pegasos(
    X: Floats,
    y: Floats,
    lam: float,
    draws: Iterable[int | Sequence[int]],
    *,
    project: bool = False,
    average: bool = False,
    fit_intercept: bool = False,
) -> Iterator[Step]:
    """Pegasos from w = 0; `draws` names the example or examples of each step. `average`: yields the iterates' mean."""
    w, b = np.zeros(X.shape[1]), 0.0
    mean_w, mean_b = np.zeros(X.shape[1]), 0.0
    for t, draw in enumerate(draws, 1):
        batch = np.atleast_1d(draw)
        if not batch.size:
            raise ValueError(f"draw {t} is empty: give an example, or a sequence of at least one")
        eta = 1 / (lam * t)
        violated = batch[y[batch] * (X[batch] @ w + b) < 1]
        w = (1 - 1 / t) * w + eta / batch.size * (y[violated] @ X[violated])
        b += eta / batch.size * float(y[violated].sum()) * fit_intercept
        if project:
            w = w / max(1.0, np.sqrt(lam) * np.linalg.norm(w))
        mean_w, mean_b = mean_w + (w - mean_w) / t, mean_b + (b - mean_b) / t
        answer, bias = (mean_w, mean_b) if average else (w, b)
        objective = lam / 2 * (answer @ answer) + np.maximum(0.0, 1 - y * (X @ answer + bias)).mean()
        i = batch.item() if np.ndim(draw) == 0 else tuple(batch.tolist())
        yield Step(t, i, answer.copy(), bias, None, eta, float(objective))

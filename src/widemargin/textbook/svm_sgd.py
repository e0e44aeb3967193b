"""SVM_SGD: minimise λ‖w‖² + Σ max(0, 1 − yᵢ w·xᵢ) over w, one example at a time, with a λ that fades; or so it says.

In epoch e, with η = 1 and λ = 1/e, for i = 1 … n in order: w ← w − η(2λw − yᵢxᵢ) if yᵢ w·xᵢ < 1, and w ← w − 2ηλw
otherwise.

Notes 003, equations (6) and (7) and the code below them. Two slips: (6) has ⟨xᵢ·wₖ⟩ where yᵢxᵢ must stand, which the
code does right; the code loops to an undefined `n` where its `epochs` is meant, up to and including which is run here.
Since w shrinks by the factor 1 − 2/e, the first epoch turns w around at every step and the second forgets it at
every step; only from the third on does the algorithm learn. As λ changes with the epoch, so does the objective. Each
step takes the whole penalty for one example, which with a fixed λ would minimise λ‖w‖² + (1/n) Σ, not the sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def svm_sgd(X: Floats, y: Floats, epochs: int) -> Iterator[Step]:
    """Epochs 1 to `epochs` over the examples in order, from w = 0."""
    n, d = X.shape
    w, eta = np.zeros(d), 1.0
    for epoch in range(1, epochs + 1):
        lam = 1 / epoch
        for i in range(n):
            violated = y[i] * (w @ X[i]) < 1
            w = w + eta * (violated * y[i] * X[i] - 2 * lam * w)
            objective = lam * (w @ w) + np.maximum(0.0, 1 - y * (X @ w)).sum()
            yield Step((epoch - 1) * n + i + 1, i, w.copy(), 0.0, None, eta, float(objective))

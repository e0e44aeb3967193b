"""Gradient descent for the SVM in sum form: minimise Σ max(0, 1 − yᵢ w·xᵢ) + λ‖w‖² over w.

w ← w − τₜv, v = 2λw − Σ yᵢxᵢ over the examples with yᵢ w·xᵢ < 1. v is one subgradient of many: at margin exactly 1
the hinge has the slopes [−1, 0], and 0 is taken.

Notes 002, page "Gradient descent for SVMs", with a fixed τ: `power` 0. A fixed step ends up jumping to and fro near the
minimum; τₜ = τ/tᵖ with p = ½ gives the schedule 1/√t, and τ = 1/λ with p = 1 gives 1/(λt). The objective may rise at
single steps, since a subgradient need not point uphill.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def gradient_descent(X: Floats, y: Floats, lam: float, steps: int, *, tau: float, power: float = 0.0) -> Iterator[Step]:
    """Subgradient steps over all examples from w = 0 with step size tau / t**power."""
    w = np.zeros(X.shape[1])
    for t in range(1, steps + 1):
        tau_t = tau / t**power
        violated = y * (X @ w) < 1
        w = w - tau_t * (2 * lam * w - y[violated] @ X[violated])
        objective = np.maximum(0.0, 1 - y * (X @ w)).sum() + lam * (w @ w)
        yield Step(t, None, w.copy(), 0.0, None, tau_t, float(objective))

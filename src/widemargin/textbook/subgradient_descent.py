"""Subgradient descent for the SVM in mean form: minimise λ/2 ‖w‖² + (1/n) Σ max(0, 1 − yᵢ w·xᵢ) over w.

All examples: w ← w − ηₜ(λw − (1/n) Σ yᵢxᵢ over the examples with yᵢ w·xᵢ < 1).
One example: w ← w − ηₜ(λw − yᵢxᵢ) if yᵢ w·xᵢ < 1, w ← w − ηₜλw otherwise.

Notes 001, slide "Sub-gradient descent algorithm for SVM", which leaves the learning rate open: here ηₜ = η/tᵖ, fixed
for p = 0. With η = 1/λ and p = 1 the second algorithm is Pegasos. In the notes its examples come in order, over and
over; here `draws` names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def subgradient_descent(
    X: Floats, y: Floats, lam: float, steps: int, *, eta: float, power: float = 0.0
) -> Iterator[Step]:
    """Subgradient steps over all examples from w = 0 with step size eta / t**power."""
    w = np.zeros(X.shape[1])
    for t in range(1, steps + 1):
        eta_t = eta / t**power
        violated = y * (X @ w) < 1
        w = w - eta_t * (lam * w - y[violated] @ X[violated] / len(y))
        objective = lam / 2 * (w @ w) + np.maximum(0.0, 1 - y * (X @ w)).mean()
        yield Step(t, None, w.copy(), 0.0, None, eta_t, float(objective))


def online_subgradient(
    X: Floats, y: Floats, lam: float, draws: Iterable[int], *, eta: float, power: float = 0.0
) -> Iterator[Step]:
    """Subgradient steps on one example each from w = 0 with step size eta / t**power."""
    w = np.zeros(X.shape[1])
    for t, i in enumerate(draws, 1):
        eta_t = eta / t**power
        violated = y[i] * (w @ X[i]) < 1
        w = w - eta_t * (lam * w - violated * y[i] * X[i])
        objective = lam / 2 * (w @ w) + np.maximum(0.0, 1 - y * (X @ w)).mean()
        yield Step(t, i, w.copy(), 0.0, None, eta_t, float(objective))

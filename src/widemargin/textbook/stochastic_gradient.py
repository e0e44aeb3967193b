"""Stochastic gradient descent for the SVM: minimise λ/2 ‖w‖² + Σ max(0, 1 − yᵢ w·xᵢ) over w.

Each example carries an n-th of the penalty: lᵢ(w) = λ/(2n) ‖w‖² + max(0, 1 − yᵢ w·xᵢ), whose subgradient step is
w ← (1 − ηλ/n)w + ηyᵢxᵢ if yᵢ w·xᵢ < 1, w ← (1 − ηλ/n)w otherwise.

Notes 004, slides "SGD update for SVM" and "SVM vs. perceptron". With λ = 0, and 0 in place of 1 in the test, it is the
perceptron.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def stochastic_gradient(X: Floats, y: Floats, lam: float, draws: Iterable[int], eta: float) -> Iterator[Step]:
    """Stochastic steps from w = 0 with a fixed step size; `draws` names the example of each."""
    n, d = X.shape
    w = np.zeros(d)
    for t, i in enumerate(draws, 1):
        violated = y[i] * (w @ X[i]) < 1
        w = (1 - eta * lam / n) * w + eta * violated * y[i] * X[i]
        objective = lam / 2 * (w @ w) + np.maximum(0.0, 1 - y * (X @ w)).sum()
        yield Step(t, i, w.copy(), 0.0, None, eta, float(objective))

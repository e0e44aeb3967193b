"""Perceptron: find w, b with yᵢ(w·xᵢ + b) > 0 for all i, by descent on Σ max(0, −yᵢ(w·xᵢ + b)).

At a mistake on example i: w ← w + ηₜyᵢxᵢ, b ← b + ηₜyᵢ, with ηₜ = η/tᵖ; otherwise nothing happens. t counts all steps,
not the mistakes. On separable data and with ηₜ = 1, from w = 0 and without bias, there are at most (R/γ)² mistakes: R
is the largest ‖xᵢ‖, γ the largest geometric margin (Novikoff 1962). Which separating w comes out depends on the start.

Notes 004, slides "Perceptron training algorithm" and "Revisiting the perceptron training algorithm". A mistake is
y(w·x + b) ≤ 0, as in 001 ("perc: ≤ 0") and as "sgn(w·x) does not match y" has it: at w = 0 the sign is 0 and matches
no label. 004's later slides write < 0, with which the algorithm would never leave w = 0. The notes start from random
weights; here the caller passes a `start`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def perceptron(
    X: Floats,
    y: Floats,
    draws: Iterable[int],
    *,
    eta: float = 1.0,
    power: float = 0.0,
    start: Floats | None = None,
    fit_intercept: bool = False,
) -> Iterator[Step]:
    """Perceptron steps with step size eta / t**power; `draws` names the example of each, `start` is the first w."""
    w = np.zeros(X.shape[1]) if start is None else np.array(start, dtype=float)
    b = 0.0
    for t, i in enumerate(draws, 1):
        eta_t = eta / t**power
        if y[i] * (w @ X[i] + b) <= 0:
            w = w + eta_t * y[i] * X[i]
            b += eta_t * float(y[i]) * fit_intercept
        loss = np.maximum(0.0, -y * (X @ w + b)).sum()
        yield Step(t, i, w.copy(), b, None, eta_t, float(loss))

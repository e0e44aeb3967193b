"""Perceptron: find w, b with yᵢ(w·xᵢ + b) > 0 for all i, by descent on Σ max(0, −yᵢ(w·xᵢ + b)).

At a mistake on example i: w ← w + ηₜyᵢxᵢ, b ← b + ηₜyᵢ, with ηₜ = η/tᵖ; otherwise nothing happens. t counts all steps,
not the mistakes. On separable data and with ηₜ = 1, from w = 0 and without bias, there are at most (R/γ)² mistakes: R
is the largest ‖xᵢ‖, γ the largest geometric margin (Novikoff 1962). Which separating w comes out depends on the start.

From w = 0, w is a combination of examples, and scores need their inner products only: the kernel perceptron. With a
kernel k(a, b) = Φ(a)·Φ(b), w = Σ αᵢyᵢΦ(xᵢ), and a mistake on example i is αᵢ ← αᵢ + ηₜ; with ηₜ = 1, αᵢ counts them.
The score of z is Σ αᵢyᵢ k(xᵢ, z) + b. Novikoff's bound holds with R² the largest k(xᵢ, xᵢ) and γ the margin in Φ. On
labels that no line separates, the sign of x₁x₂:

>>> from widemargin.textbook.kernels import polynomial
>>> X, y = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, -1.0, -1.0, 1.0])
>>> for step in perceptron(X, y, [0, 1, 2, 3], kernel=polynomial(2)):
...     print(step.i, step.alpha, step.objective)
0 [1. 0. 0. 0.] 2.0
1 [1. 1. 0. 0.] 0.0
2 [1. 1. 1. 0.] 1.0
3 [1. 1. 1. 1.] 0.0

Notes 004, slides "Perceptron training algorithm" and "Revisiting the perceptron training algorithm". A mistake is
y(w·x + b) ≤ 0, as in 001 ("perc: ≤ 0") and as "sgn(w·x) does not match y" has it: at w = 0 the sign is 0 and matches
no label. 004's later slides write < 0, with which the algorithm would never leave w = 0. The notes start from random
weights; here the caller passes a `start`. The kernel: 001, slides "Feature Map Φ" and "Properties"; Aizerman, Braverman
and Rozonoer 1964.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.kernels import Kernel, coordinates
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
    kernel: Kernel | None = None,
) -> Iterator[Step]:
    """Perceptron steps with step size eta / t**power; `draws` names the example of each, `start` is the first w.

    With a kernel, w is empty, α of w = Σ αᵢyᵢΦ(xᵢ) is `alpha`, and `start` is the first α.
    """
    R, F = coordinates(X, kernel)
    w = np.zeros(R.shape[1]) if start is None else np.array(start, dtype=float) * (1.0 if kernel is None else y)
    b = 0.0
    for t, i in enumerate(draws, 1):
        eta_t = eta / t**power
        if y[i] * (w @ R[i] + b) <= 0:
            w = w + eta_t * y[i] * F[i]
            b += eta_t * float(y[i]) * fit_intercept
        loss = np.maximum(0.0, -y * (R @ w + b)).sum()
        shown, alpha = (w.copy(), None) if kernel is None else (np.empty(0), w * y + 0.0)  # + 0.0 turns −0 into 0
        yield Step(t, i, shown, b, alpha, eta_t, float(loss))

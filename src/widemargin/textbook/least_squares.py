"""Least squares as a classifier: minimise (1/n) Σ (w·xᵢ − yᵢ)² over w, and predict sgn(w·x).

Closed form: XᵀXw = Xᵀy, hence w = (XᵀX)⁻¹Xᵀy. One example at a time: w ← w − η(w·xᵢ − yᵢ)xᵢ.

Notes 004, slides "Linear regression: Optimization" and "Revisiting linear regression". The notes invert XᵀX, which
fails where columns of X depend on each other; the pseudo-inverse gives the same w where they do not, and the shortest
of all minimisers where they do. The notes' update drops the 2 of the gradient 2(w·xᵢ − yᵢ)xᵢ, as is done here: its η
is twice that of a gradient step. They also drop the 1/n on the way, which moves no minimiser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def least_squares(X: Floats, y: Floats) -> Iterator[Step]:
    """The closed form, in one step."""
    rounding = max(X.shape) * np.finfo(float).eps
    w = np.linalg.pinv(X, rounding) @ y
    yield Step(1, None, w, 0.0, None, np.nan, float(np.mean((X @ w - y) ** 2)))


def least_squares_sgd(X: Floats, y: Floats, draws: Iterable[int], eta: float) -> Iterator[Step]:
    """Stochastic gradient descent from w = 0 with a fixed step size; `draws` names the example of each step."""
    w = np.zeros(X.shape[1])
    for t, i in enumerate(draws, 1):
        w = w - eta * (w @ X[i] - y[i]) * X[i]
        yield Step(t, i, w.copy(), 0.0, None, eta, float(np.mean((X @ w - y) ** 2)))

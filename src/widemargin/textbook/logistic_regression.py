"""Logistic regression: minimise −(1/n) Σ log σ(mᵢ), mᵢ = yᵢ(w·xᵢ + b), σ(t) = 1/(1 + e^−t).

σ(w·x + b) is the probability of y = +1, σ(−w·x − b) that of y = −1.

All examples: w ← w + η(1/n) Σ σ(−mᵢ)yᵢxᵢ, and b likewise with 1 for xᵢ. One example: w ← w + ησ(−mᵢ)yᵢxᵢ.

Notes 004, slides "Gradient descent for logistic regression" and "SGD for logistic regression". On separable data
there is no minimum: every step lowers the loss a little more and ‖w‖ grows without end. The algorithm is as in the
notes and does not hide it; a penalty on w is the cure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def logistic_regression(X: Floats, y: Floats, steps: int, eta: float, fit_intercept: bool = False) -> Iterator[Step]:
    """Gradient descent over all examples from w = 0 with a fixed step size."""
    w, b = np.zeros(X.shape[1]), 0.0
    m = np.zeros(len(y))
    for t in range(1, steps + 1):
        pull = _sigmoid(-m) * y
        w = w + eta * (pull @ X) / len(y)
        b += eta * float(pull.mean()) * fit_intercept
        m = y * (X @ w + b)
        yield Step(t, None, w.copy(), b, None, eta, float(np.logaddexp(0.0, -m).mean()))


def logistic_regression_sgd(X: Floats, y: Floats, draws: Iterable[int], eta: float) -> Iterator[Step]:
    """Stochastic gradient descent from w = 0 with a fixed step size; `draws` names the example of each step."""
    w = np.zeros(X.shape[1])
    for t, i in enumerate(draws, 1):
        w = w + eta * _sigmoid(-y[i] * (w @ X[i])) * y[i] * X[i]
        yield Step(t, i, w.copy(), 0.0, None, eta, float(np.logaddexp(0.0, -y * (X @ w)).mean()))


def _sigmoid(t: Floats) -> Floats:
    """σ(t), without overflow."""
    return np.exp(-np.logaddexp(0.0, -t))

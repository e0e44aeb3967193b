"""SGD for the soft SVM by a running sum: minimise λ/2 ‖w‖² + (1/n) Σ max(0, 1 − yᵢ w·xᵢ) over w.

sum⁽¹⁾ = 0. In step t: w⁽ᵗ⁾ = sum⁽ᵗ⁾/(λt); an example i is drawn; sum⁽ᵗ⁺¹⁾ = sum⁽ᵗ⁾ + yᵢxᵢ if yᵢ w⁽ᵗ⁾·xᵢ < 1, else
sum⁽ᵗ⁺¹⁾ = sum⁽ᵗ⁾. w is never shrunk: dividing by t does it.

Notes 000, box "SGD for solving soft SVM", as written. It is not quite what the page above the box derives: there
w⁽ᵗ⁺¹⁾ = −(1/λt) Σ vⱼ = sum⁽ᵗ⁺¹⁾/(λt), which is Pegasos, while the box divides the same sum by λ(t+1). The box is thus
the same subgradient method with the step sizes η = 1/(λ(t+1)), half as long at first: w⁽ᵗ⁺¹⁾ = (1 − ηλ)w⁽ᵗ⁾ + ηyᵢxᵢ for
a violated example. Given the same draws, the two test different w and soon part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def running_sum(X: Floats, y: Floats, lam: float, draws: Iterable[int], *, average: bool = False) -> Iterator[Step]:
    """The box with `draws` for its choices; step t yields w⁽ᵗ⁺¹⁾ or, if `average`, the mean of w⁽²⁾ … w⁽ᵗ⁺¹⁾."""
    total, mean = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, i in enumerate(draws, 1):
        w = total / (lam * t)
        if y[i] * (w @ X[i]) < 1:
            total = total + y[i] * X[i]
        w = total / (lam * (t + 1))
        mean = mean + (w - mean) / t
        answer = mean if average else w
        objective = lam / 2 * (answer @ answer) + np.maximum(0.0, 1 - y * (X @ answer)).mean()
        yield Step(t, i, answer.copy(), 0.0, None, 1 / (lam * (t + 1)), float(objective))

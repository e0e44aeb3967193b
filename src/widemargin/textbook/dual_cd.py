"""Coordinate descent on the dual SVM without bias: maximise Σ αᵢ − ½‖Σ αᵢyᵢxᵢ‖² over 0 ≤ αᵢ ≤ C.

It is the dual of ½‖w‖² + C Σ max(0, 1 − yᵢ w·xᵢ), with w = Σ αᵢyᵢxᵢ. The best αᵢ while the others stay is
αᵢ + (1 − yᵢ w·xᵢ)/‖xᵢ‖², cut to [0, C]; w is carried along, w ← w + (change of αᵢ) yᵢxᵢ, so that a step costs one row
and not the whole of Q. An empty row adds αᵢ and nothing else to the objective: αᵢ = C.

Notes 001, slides "Dual Problem" and "Quadratic Program in Dual", which name coordinate descent; the box [0, C] is the
slide's "bound influence". The slide's Lagrangian has a bias, its dual has not, as here; `smo.py` has both. With w
carried along: Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def dual_cd(X: Floats, y: Floats, C: float, draws: Iterable[int]) -> Iterator[Step]:
    """Coordinate steps from α = 0; `draws` names the coordinate of each."""
    n, d = X.shape
    w, alpha = np.zeros(d), np.zeros(n)
    for t, i in enumerate(draws, 1):
        square = X[i] @ X[i]
        if square > 0:
            new = min(max(alpha[i] + (1 - y[i] * (w @ X[i])) / square, 0.0), C)
            w = w + (new - alpha[i]) * y[i] * X[i]
            alpha[i] = new
        else:
            alpha[i] = C
        yield Step(t, i, w.copy(), 0.0, alpha.copy(), np.nan, float(alpha.sum() - w @ w / 2))

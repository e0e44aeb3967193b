"""Tikhonov regularisation (ridge): minimise Σ (w·xᵢ − yᵢ)² + λ‖w‖² over w.

Closed form: (XᵀX + λI)w = Xᵀy, which has one solution for every X if λ > 0.

Notes 000, page "Soft SVM rule", where the sum of squared differences is given the penalty of the soft SVM. The sum is
not divided by the number of examples there, nor here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin.textbook.step import Floats, Step


def tikhonov(X: Floats, y: Floats, lam: float) -> Iterator[Step]:
    """The closed form, in one step."""
    w = np.linalg.solve(X.T @ X + lam * np.eye(X.shape[1]), X.T) @ y
    yield Step(1, None, w, 0.0, None, np.nan, float(np.sum((X @ w - y) ** 2) + lam * (w @ w)))

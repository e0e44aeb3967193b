"""Hildreth's algorithm: maximise −½αᵀQα − αᵀb over 0 ≤ α ≤ u, with Q positive semidefinite, one coordinate at a time.

The best αᵢ while the others stay is αᵢ − (Qα + b)ᵢ/Qᵢᵢ, cut to [0, u]. Where Qᵢᵢ = 0 the objective is a straight line
in αᵢ and one end of [0, u] is best: 0 if (Qα + b)ᵢ > 0, u if it is < 0.

Orders: 1 … n again and again ("cyclic"); 1 … n, n−1 … 1, 2 … ("back_and_forth"); a fresh permutation for every sweep
("random"); whichever coordinate gains most ("greedy"). Stops: no coordinate can change any more, each having been tried
since the last change; the last n steps gained no more than `tol`; the number of steps.

The dual SVM without bias, box [0, C], is such a problem, with b = −1 and Qᵢⱼ = yᵢyⱼxᵢ·xⱼ, or yᵢyⱼk(xᵢ, xⱼ) for a
kernel; `dual_cd.py` takes the same steps. With k(a, b) = (1 + a·b)² and C = 1, on labels that no line separates, the
sign of x₁x₂:

>>> from widemargin.textbook.kernels import polynomial
>>> X, y = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, -1.0, -1.0, 1.0])
>>> *_, last = hildreth(np.outer(y, y) * polynomial(2)(X, X), -np.ones(4), upper=1.0)
>>> print(last.alpha)
[0.125 0.125 0.125 0.125]

Notes 001, slides "QP: Hildreth Algorithm", with u = ∞. Their "maximal descent" is an ascent, as the problem is a
maximisation. Their example, Q = [[4, 1], [1, 2]] and b = (−6, −4), has the maximum (8/7, 10/7):

>>> *_, last = hildreth(np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([-6.0, -4.0]))
>>> print(7 * last.alpha)
[ 8. 10.]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle, repeat

import numpy as np

from widemargin.textbook.step import Floats, Step


def hildreth(
    Q: Floats,
    b: Floats,
    *,
    upper: float = np.inf,
    order: str = "cyclic",
    tol: float = 0.0,
    max_steps: int = 1000,
    draws: Iterable[int] | None = None,
) -> Iterator[Step]:
    """Coordinate steps from α = 0; w is α here. `draws`, if given, names the coordinates instead of `order`."""
    n = len(b)
    alpha, values, settled = np.zeros(n), [0.0], set[int]()
    picks: Iterable[int | None] = _picks(order, n) if draws is None else draws
    for t, pick in zip(range(1, max_steps + 1), picks, strict=False):
        i = _steepest(Q, b, alpha, upper) if pick is None else pick
        if i is None:
            return
        new = _best(alpha[i], Q[i] @ alpha + b[i], Q[i, i], upper)
        settled = settled | {i} if new == alpha[i] else set()
        alpha[i] = new
        values.append(float(-alpha @ (Q @ alpha) / 2 - alpha @ b))
        yield Step(t, i, alpha.copy(), 0.0, alpha.copy(), np.nan, values[t])
        if len(settled) == n or (tol > 0 and t >= n and values[t] - values[t - n] <= tol):
            return


def permutations(n: int, seed: int) -> Iterator[int]:
    """A fresh permutation of the n coordinates for every sweep: `draws` for the order "random"."""
    rng = np.random.default_rng(seed)
    while True:
        yield from rng.permutation(n).tolist()


def _picks(order: str, n: int) -> Iterable[int | None]:
    """The coordinates in their order; None leaves the choice to the greedy rule."""
    if order == "cyclic":
        return cycle(range(n))
    if order == "back_and_forth":
        return cycle([*range(n), *range(n - 2, 0, -1)])
    if order == "greedy":
        return repeat(None)
    if order == "random":
        raise ValueError("order 'random' needs draws: give permutations(n, seed), or coordinates of your own")
    raise ValueError(f"unknown order {order!r}: give 'cyclic', 'back_and_forth', 'random' or 'greedy'")


def _steepest(Q: Floats, b: Floats, alpha: Floats, upper: float) -> int | None:
    """The first of the coordinates with the largest gain; None if no coordinate has any."""
    g, curvature = Q @ alpha + b, np.diag(Q)
    change = np.array([_best(*at, upper) for at in zip(alpha, g, curvature, strict=True)]) - alpha
    gain = -change * (g + curvature * change / 2)
    return int(gain.argmax()) if gain.max() > 0 else None


def _best(alpha: float, gradient: float, curvature: float, upper: float) -> float:
    """The best value of one coordinate while the others stay."""
    if curvature > 0:
        return min(max(alpha - gradient / curvature, 0.0), upper)
    if gradient < 0 and upper == np.inf:
        raise ValueError("unbounded: a coordinate with Qᵢᵢ = 0 and gradient < 0 can grow for ever; give a finite upper")
    return alpha if gradient == 0 else upper if gradient < 0 else 0.0

"""Hildreth's algorithm: a convex QP over a box, one coordinate at a time. The kernel is `hildreth.hpp`.

max −½αᵀQα − αᵀb  over  0 ≤ α ≤ upper:  αᵢ ← clip(αᵢ − (Qα + b)ᵢ/Qᵢᵢ, 0, upperᵢ)  for one i after another.

The dual of an SVM is such a QP, with Qᵢⱼ = yᵢyⱼxᵢ·xⱼ and b = −1. The constraint Σ αᵢyᵢ = 0 of an unpenalised bias is
driven to hold by an augmented Lagrangian. Hildreth 1957; Lent and Censor 1980.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin import _core
from widemargin.problem import Problem, inner
from widemargin.solvers.dual_cd import inverse_rho_of
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.sight import Sight

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ORDERS = ("cyclic", "back_and_forth", "random", "greedy")
#: The most rows for which the matrix Q is built: 800 MB, and twice that on the way.
LARGEST = 10_000
#: After this many sweeps the solver gives up.
SWEEPS = 100_000


class QPSolution(NamedTuple):
    """Where the ascent ended, why, and how far that is from optimal."""

    alpha: Floats
    #: −½αᵀQα − αᵀb.
    objective: float
    #: The largest slope that still points uphill inside the box; 0 at the optimum.
    violation: float
    steps: int
    #: "no change", "tol" or "max_steps".
    stopped: str


def hildreth(
    Q: ArrayLike,
    b: ArrayLike,
    *,
    upper: ArrayLike = np.inf,
    order: str = "cyclic",
    tol: float = 0.0,
    max_steps: int | None = None,
    seed: int = 0,
) -> QPSolution:
    """Maximise −½αᵀQα − αᵀb over 0 ≤ α ≤ upper by coordinate ascent.

    Parameters
    ----------
    Q : array of shape (n, n)
        Symmetric and positive semidefinite.
    b : array of shape (n,)
        The linear term.
    upper : float or array of shape (n,), default=inf
        The box's upper ends, each at least 0.
    order : {"cyclic", "back_and_forth", "random", "greedy"}, default="cyclic"
        1 … n again and again; 1 … n … 1 … n; a new permutation per sweep; the coordinate that gains most.
    tol : float, default=0
        Stop when n steps together gain no more than this; 0 for as long as anything changes.
    max_steps : int or None, default=None
        Stop after this many steps; None for 10,000 sweeps.
    seed : int, default=0
        Of the permutations of order="random".

    Returns
    -------
    QPSolution

    Examples
    --------
    >>> from widemargin import hildreth
    >>> found = hildreth([[4, 1], [1, 2]], [-6, -4])
    >>> (7 * found.alpha).round(9).tolist(), found.stopped
    ([8.0, 10.0], 'no change')

    """
    matrix, linear, box = _checked(Q, b, upper)
    n = len(linear)
    if order not in ORDERS:
        raise ValueError(f"order={order!r}; choose from {', '.join(map(repr, ORDERS))}")
    if not tol >= 0:
        raise ValueError(f"tol={tol!r}; it must be a number ≥ 0")
    if max_steps is not None and (not isinstance(max_steps, Integral) or max_steps < 1):
        raise ValueError(f"max_steps={max_steps!r}; it must be a whole number ≥ 1, or None")
    left = 10_000 * n if max_steps is None else int(max_steps)
    steps, stopped = 0, "max_steps"
    alpha, gradient = np.zeros(n), linear.copy()
    for visits in _sweeps(n, order, seed):
        visits = visits[:left]
        gain, moved = _core.hildreth_steps(matrix, box, alpha, gradient, visits, min(n, left))
        taken = moved if order == "greedy" else len(visits)
        steps, left = steps + taken, left - taken
        if not np.isfinite(alpha).all():
            raise ValueError(
                "the objective grows without bound along a coordinate with Q[i, i] = 0; give a finite upper"
            )
        if order == "greedy" or len(visits) >= n - (order == "back_and_forth" and n > 1):  # a whole sweep can tell
            if moved == 0:
                stopped = "no change"
                break
            if gain <= tol:
                stopped = "tol"
                break
        if left <= 0:
            break
        gradient = matrix @ alpha + linear  # as fresh as new: its rounding would add up
    gradient = matrix @ alpha + linear
    uphill = np.where(alpha >= box, 0.0, -gradient), np.where(alpha <= 0, 0.0, gradient)
    violation = float(max(0.0, uphill[0].max(initial=0.0), uphill[1].max(initial=0.0)))
    return QPSolution(alpha, -inner(alpha, gradient + linear) / 2, violation, steps, stopped)


def _checked(Q: ArrayLike, b: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats, Floats]:
    matrix, linear = np.ascontiguousarray(Q, dtype=np.float64), np.array(b, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"Q has shape {matrix.shape}; it must be a square matrix of at least one row")
    if linear.shape != matrix.shape[:1]:
        raise ValueError(f"b has shape {linear.shape}; Q wants {matrix.shape[:1]}")
    if not np.isfinite(matrix).all() or not np.isfinite(linear).all():
        raise ValueError("Q or b contains NaN or infinity; give finite numbers")
    size = np.abs(matrix).max()
    if (np.abs(matrix - matrix.T) > 1e-10 * size).any():
        raise ValueError("Q is not symmetric; (Q + Q.T) / 2 gives the same objective")
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    if lowest < -1e-10 * len(linear) * size:
        raise ValueError(
            f"Q is not positive semidefinite, its lowest eigenvalue is {lowest:.3g}: the problem is not concave and "
            "may have many local maxima; add a multiple of the identity to Q"
        )
    try:
        box = np.array(np.broadcast_to(np.asarray(upper, dtype=np.float64), linear.shape))
    except ValueError:
        raise ValueError(f"upper has shape {np.shape(upper)}; give one number or {len(linear)}") from None
    if not (box >= 0).all():
        at = int(np.argmin(box >= 0))
        raise ValueError(f"upper[{at}] is {box[at]:g}: the box 0 ≤ α ≤ upper is empty; give an upper ≥ 0")
    return matrix, linear, box


def _sweeps(n: int, order: str, seed: int) -> Iterator[Integers]:
    """The coordinates to visit, a sweep at a time; none for "greedy", which finds its own."""
    forth, shuffle = np.arange(n), np.random.default_rng(seed)
    if order == "back_and_forth" and n > 1:
        yield forth
        while True:
            yield np.ascontiguousarray(forth[-2::-1])
            yield forth[1:]
    while True:
        yield shuffle.permutation(n) if order == "random" else forth[:0] if order == "greedy" else forth


def dual_by_hildreth(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates of Hildreth's algorithm on the dual, one per sweep."""
    rows, y, live = problem.rows, problem.y, problem.live
    if rows.n > LARGEST:
        raise ValueError(
            f"hildreth would need a matrix of {rows.n:,} × {rows.n:,} for these rows, and takes {LARGEST:,} at most; "
            "use solver='auto' or 'dual_cd'"
        )
    matrix = rows.outer() * np.outer(y, y)
    balance = inverse_rho_of(problem)
    if problem.fit_intercept:
        matrix += balance * np.outer(y, y)
    if problem.loss.smooth and not problem.hard:  # the squared hinge's conjugate bends by 1/(2c)
        np.einsum("ii->i", matrix)[live] += 0.5 / problem.c[live]
    alpha, b, gradient = np.zeros(rows.n), 0.0, -np.ones(rows.n)
    sight, visits = Sight(problem), live.astype(np.int64)
    if start is not None:
        alpha, b = problem.feasible(start.alpha), start.b if problem.fit_intercept else 0.0
    for iteration in range(1, SWEEPS + 1):
        if iteration % 64 == 1:  # as fresh as new: its rounding would add up
            gradient = matrix @ alpha - 1 + b * y
        _core.hildreth_steps(matrix, problem.upper, alpha, gradient, visits, 0)
        change = balance * inner(alpha, y)
        b += change
        gradient += change * y
        yield sight.of(problem.weights(alpha), b, alpha, iteration)

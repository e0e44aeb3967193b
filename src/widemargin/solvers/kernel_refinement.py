"""REFINEMENT: from a point near the optimum of a kernel problem to the optimum, by Newton steps on its free rows.

With the rows at α = 0 and α = c held there, the dual over the free rows F is a quadratic function: with eᵢ = yᵢ − f(xᵢ)
its maximum solves K_FF d + b·1 = e_F, Σ d = 0 for the change d of the free αy, and the multiplier b is the bias. A step
ends where the first row reaches a bound, which then holds it; at the maximum, the row at a bound that violates the KKT
conditions most is set free. Where no row does, α is optimal up to rounding. This is an active-set method: Scheinberg
2006. It gives the last digits, for which SMO would take many steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.kernel_problem import KernelProblem

Floats = NDArray[np.float64]

#: The most free rows: a step factorises their kernel matrix, O(rows³), which for 300 takes some milliseconds.
MOST_FREE = 300
#: Multiplications that all steps together may take, some tens of milliseconds.
WORK = 2e8
#: The same for hard margins, for which SMO may take millions of steps where a margin is narrow or there is none.
HARD_MOST_FREE = 2048
HARD_WORK = 2e10
#: Multiplications that a step counts for at least: they take as long as what Python does for it, a tenth of a
#: millisecond.
LEAST_WORK = 1e5
#: Added to the diagonal of K_FF, as a share of its mean, which makes that of equal or dependent rows regular.
RIDGE = 1e-13
#: KKT violations below this, beside the largest summand of a score, are rounding.
ROUNDED = 1e-13


def refine(problem: KernelProblem, alpha: Floats, scores: Floats) -> Floats | None:
    """A better α, or None if there are too many free rows; `scores` are Σ αⱼyⱼ k(xⱼ, xᵢ) of every row, in float64."""
    y, c, index = problem.y, problem.c, problem.index
    free = (alpha > 0) & (alpha < c)
    alpha, e = alpha.copy(), y - scores
    most, limit = (HARD_MOST_FREE, HARD_WORK) if problem.hard else (MOST_FREE, WORK)
    before = _dual(alpha, y, e)
    diagonal = np.abs(problem.diagonal)
    columns, place, known = (
        np.empty((problem.n, min(2 * most, problem.n))),
        np.full(problem.n, -1),
        0,
    )  # columns of K, and whose
    work, again, corrected = 0.0, None, 0
    while work < limit:
        rounding = ROUNDED * max(1.0, float(np.abs(alpha).max()) * float(diagonal.max()))
        if not free.any():  # a vertex: on from there along the pair that violates most
            rising = np.where(np.where(y > 0, alpha < c, alpha > 0), e, -np.inf)
            falling = np.where(np.where(y > 0, alpha > 0, alpha < c), e, np.inf)
            i, j = int(np.argmax(rising)), int(np.argmin(falling))
            if not rising[i] - falling[j] > rounding:
                break
            free[[i, j]] = True
        rows = np.flatnonzero(free)
        if len(rows) > most:
            break
        new = rows[place[rows] < 0]
        if known + len(new) > columns.shape[1]:
            break
        if len(new):
            place[new] = known + np.arange(len(new))
            columns[:, known : known + len(new)] = _columns(problem, index, new)
            known += len(new)
        K = columns[:, place[rows]]
        change, b = _newton(K[rows], e[rows])
        work += max(len(rows) ** 3 + problem.n * len(rows), LEAST_WORK)
        rise = y[rows] * change
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            room = np.where(rise > 0, (c[rows] - alpha[rows]) / rise, np.where(rise < 0, -alpha[rows] / rise, np.inf))
        first = int(np.argmin(room))
        step = min(1.0, float(room[first]))
        if not np.isfinite(step) or not np.isfinite(change).all():
            break
        alpha[rows] = np.clip(alpha[rows] + step * rise, 0.0, c[rows])
        e -= K @ (step * change)
        if room[first] <= 1:
            alpha[rows[first]] = c[rows[first]] if rise[first] > 0 else 0.0
            free[rows[first]] = False
            corrected = 0
            continue
        if float(np.abs(e[rows] - b).max()) > rounding and corrected < 2:  # what the ridge and rounding left
            corrected += 1
            continue
        corrected = 0
        gain = np.where(alpha > 0, -y, y) * (e - b)
        gain[free] = -np.inf
        gain[c == 0] = -np.inf
        worst = int(np.argmax(gain))
        if gain[worst] <= rounding or worst == again:
            break
        again, free[worst] = worst, True
    return alpha if _dual(alpha, y, e) >= before else None


def _columns(problem: KernelProblem, index: NDArray[np.intp], rows: NDArray[np.intp]) -> Floats:
    """K[:, rows] of the problem's rows."""
    if problem.whole:
        return problem.gram.products(index[rows], np.eye(len(rows)))
    return problem.gram.block(index, index[rows])


def _newton(K: Floats, e: Floats) -> tuple[Floats, float]:
    """d and b with K d + b·1 = e and Σ d = 0."""
    m = len(e)
    system = np.ones((m + 1, m + 1))
    system[:m, :m] = K
    system[np.arange(m), np.arange(m)] += RIDGE * max(float(np.abs(np.diag(K)).mean()), np.finfo(np.float64).tiny)
    system[m, m] = 0.0
    try:
        found = np.linalg.solve(system, np.append(e, 0.0))
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(system, np.append(e, 0.0), rcond=None)[0]
    return found[:m], float(found[m])


def _dual(alpha: Floats, y: Floats, e: Floats) -> float:
    """Σ α − ½‖f(α)‖²."""
    return float((alpha * (1 + y * e)).sum()) / 2

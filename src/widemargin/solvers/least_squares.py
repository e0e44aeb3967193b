"""Least squares, penalised or not, in closed form or by conjugate gradients.

min ½π‖w‖² + Σ cᵢ(w·xᵢ + b − tᵢ)²  with π = 1 or 0, for any number of targets t at once. Writing z = x − mean(x), which
takes the bias out of the problem, the optimum solves (2ZᵀCZ + πI) w = 2ZᵀCt.

- Tall or wide data: Cholesky of that matrix or of the Gram matrix of the rows, then refinement with residuals that are
  computed from X itself, which wins back the digits that squaring the condition number loses.
- Where that fails, columns being (nearly) dependent: the singular value decomposition, and the w of least norm.
- Too large for both: conjugate gradients, scaled by the columns' norms. The gap is half the squared gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.data import Rows
from widemargin.losses import squared
from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.normal_equations import DENSE_ENOUGH, share_of_nonzeros
from widemargin.solvers.sight import Sight

Floats = NDArray[np.float64]

#: The most unknowns of a matrix to factor.
LARGEST_SYSTEM = 3000
#: The most numbers of a dense matrix to decompose: 1.6 GB.
LARGEST_SVD = 200_000_000
#: A mean squared residual this small is rounding.
EXACT = 1e-20
#: Corrections, and the relative size at which the last one counts as rounding.
REFINEMENTS, SETTLED = 12, 1e-11
#: The share of the gradient at 0 to reach where there is no penalty, and so no gap on the way; then once more.
ROUNDED = (1e-10, 1e-14)
#: After this many steps conjugate gradients give up.
STEPS = 5000


class Solution(NamedTuple):
    """A row of w, a bias and the residuals t − w·x − b per target, and the steps it took.

    The residuals are those of the optimum next to w, as orthogonal to the columns as rounding allows: where there is no
    penalty, only such a dual point proves anything.
    """

    w: Floats
    b: Floats
    residuals: Floats
    iterations: int

    def alpha(self, problem: Problem, k: int) -> Floats:
        """The dual variables of target k."""
        residual = self.residuals[k]
        if inner(problem.c, residual**2) <= EXACT * float(problem.c.sum()):
            return np.zeros(len(residual))  # fitted exactly: 0 is the bound, and it is reached
        return np.asarray(2 * problem.c * problem.y * residual)


def least_squares(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """The solution, as one iterate. Nothing is drawn at random, and it begins at 0: `seed` and `start` have no part."""
    found = solve(
        problem.rows,
        problem.y[:, None],
        problem.c,
        penalty=float(problem.penalised),
        fit_intercept=problem.fit_intercept,
        tol=0.5 * tol,
    )
    yield Sight(problem).of(found.w[0], float(found.b[0]), found.alpha(problem, 0), found.iterations)


def solve(
    rows: Rows,
    targets: Floats,
    c: Floats,
    *,
    penalty: float,
    fit_intercept: bool,
    tol: float = 1e-6,
    max_iter: int | None = None,
) -> Solution:
    """The best w and b for every column of the targets; `tol` is the relative gap where there is no closed form."""
    equations = _Equations(rows, targets, c, penalty, fit_intercept)
    if min(rows.n, rows.d) <= LARGEST_SYSTEM:
        factored = _by_columns if rows.d <= rows.n else _by_rows
        found = factored(equations)
        if found is None and rows.n * rows.d <= LARGEST_SVD:
            found = _by_singular_values(equations)
        if found is not None:
            return found
    return _by_conjugate_gradients(equations, tol, STEPS if max_iter is None else max_iter)


class _Equations:
    """The normal equations with the bias taken out: what they ask of w, and by how much a w misses it."""

    def __init__(self, rows: Rows, targets: Floats, c: Floats, penalty: float, fit_intercept: bool) -> None:
        self.rows, self.c, self.penalty, self.fit_intercept = rows, c, penalty, fit_intercept
        total = float(c.sum())
        self.mean = rows.combine(c / total) if fit_intercept else np.zeros(rows.d)
        self.mean_target = (c / total) @ targets if fit_intercept else np.zeros(targets.shape[1])
        self.targets = targets - self.mean_target
        problem = Problem(rows, targets[:, 0], c, squared, fit_intercept)
        #: Columns that can only have weight 0: with a penalty the empty ones, without it also what a bias does.
        self.idle = problem.constant if penalty == 0 else np.asarray(rows.column_sums(c) == 0)

    def bias(self, w: Floats) -> Floats:
        return np.asarray(self.mean_target - w @ self.mean) if self.fit_intercept else np.zeros(len(w))

    def residual(self, w: Floats, k: int) -> Floats:
        """t − Zw for target k."""
        if not w.any():
            return self.targets[:, k]
        return self.targets[:, k] - (self.rows.scores(w) - inner(self.mean, w))

    def pull(self, residual: Floats, w: Floats) -> Floats:
        """2ZᵀC·residual − πw, which is 0 at the optimum."""
        weighted = 2 * self.c * residual
        shifted = inner(weighted, np.ones(len(weighted))) * self.mean if self.fit_intercept else 0.0
        pull = self.rows.combine(weighted) - shifted - self.penalty * w
        pull[self.idle] = 0.0
        return pull


def _by_columns(equations: _Equations) -> Solution | None:
    """Cholesky of 2ZᵀCZ + πI, its diagonal scaled to 1; None if the columns are too nearly dependent for it."""
    rows, mean = equations.rows, equations.mean
    centred = equations.fit_intercept and share_of_nonzeros(rows) >= DENSE_ENOUGH
    matrix = rows.gram(2 * equations.c, mean if centred else None, border=False)
    if equations.fit_intercept and not centred:
        matrix -= 2 * float(equations.c.sum()) * np.outer(mean, mean)
    diagonal = np.einsum("ii->i", matrix)
    diagonal += equations.penalty
    matrix[equations.idle] = matrix[:, equations.idle] = 0.0
    diagonal[equations.idle | (diagonal <= 0)] = 1.0
    scale = 1 / np.sqrt(diagonal)
    matrix *= scale[:, None]
    matrix *= scale
    solver = _cholesky(matrix, unique=equations.penalty > 0)
    if solver is None:
        return None

    def change(w: Floats, k: int) -> Floats:
        return np.asarray(scale * solver(scale * equations.pull(equations.residual(w, k), w)))

    w = _refined(change, rows.d, equations.targets.shape[1], unit=1 / scale)
    if w is None:
        return None
    residuals = np.array([equations.residual(one, k) for k, one in enumerate(w)])
    if not equations.penalty:
        for residual in residuals:
            off = scale * solver(scale * equations.pull(residual, np.zeros(rows.d)))
            residual -= rows.scores(off) - inner(equations.mean, off)
    return Solution(w, equations.bias(w), residuals, 1)


def _by_rows(equations: _Equations) -> Solution | None:
    """Cholesky of ZZᵀ + πC⁻¹/2, for w = Zᵀβ with Σβ = 0; None if the rows are too nearly dependent for it."""
    rows, live = equations.rows, np.flatnonzero(equations.c > 0)
    matrix = rows.outer()[np.ix_(live, live)]
    if equations.fit_intercept:
        across = rows.scores(equations.mean)[live]
        matrix -= across[:, None] + across - inner(equations.mean, equations.mean)
        matrix += np.diagonal(matrix).mean()  # Σβ = 0: that changes nothing but the pivots
    ridge = equations.penalty / (2 * equations.c[live])
    np.einsum("ii->i", matrix)[...] += ridge
    solver = _cholesky(matrix, unique=equations.penalty > 0)
    if solver is None:
        return None
    ones = solver(np.ones(len(live)))

    def weights(beta: Floats) -> Floats:
        wide = np.zeros(rows.n)
        wide[live] = beta
        return rows.combine(wide)

    def change(beta: Floats, k: int) -> Floats:
        solved = solver(equations.residual(weights(beta), k)[live] - ridge * beta)
        return solved - ones * (solved.sum() / ones.sum()) if equations.fit_intercept else solved

    found = _refined(change, len(live), equations.targets.shape[1], unit=np.ones(len(live)))
    if found is None:
        return None
    w = np.array([weights(beta) for beta in found])
    return Solution(w, equations.bias(w), np.array([equations.residual(one, k) for k, one in enumerate(w)]), 1)


def _cholesky(matrix: Floats, *, unique: bool) -> Callable[[Floats], Floats] | None:
    """Solves systems with this matrix, which is overwritten; None if it is not positive definite.

    Nor if a pivot is mere rounding, unless solutions are known to be `unique`: it would choose one of many.
    """
    from scipy.linalg import cho_factor, cho_solve  # slow to import, and most solvers do without it

    rounding = len(matrix) * float(np.finfo(np.float64).eps) * float(np.diagonal(matrix).max())
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    if not unique and float(np.diagonal(factor[0]).min()) ** 2 <= rounding:
        return None

    def solver(right: Floats) -> Floats:
        return np.asarray(cho_solve(factor, right, check_finite=False))

    return solver


def _refined(change: Callable[[Floats, int], Floats], size: int, targets: int, unit: Floats) -> Floats | None:
    """0 and the changes it asks for, until they are mere rounding; None if they do not get there."""
    found = np.zeros((targets, size))
    for k in range(targets):
        largest = 0.0
        for _ in range(REFINEMENTS):
            step = change(found[k], k)
            found[k] += step
            largest = max(largest, float(np.linalg.norm(unit * step)))
            if np.linalg.norm(unit * step) <= SETTLED * largest:
                break
        else:
            return None
    return found


def _by_singular_values(equations: _Equations) -> Solution:
    """The w of least norm among the best, whatever the rank."""
    from scipy.linalg import svd

    live = np.flatnonzero(equations.c > 0)
    root = np.sqrt(2 * equations.c[live])
    matrix = (equations.rows.take(live) - equations.mean) * root[:, None]
    matrix[:, equations.idle] = 0.0
    left, values, right = svd(matrix, full_matrices=False, overwrite_a=True, check_finite=False, lapack_driver="gesvd")
    kept = values > max(matrix.shape) * np.finfo(float).eps * values[0]
    share = np.where(kept, values / np.where(kept, values**2 + equations.penalty, 1.0), 0.0)
    w = (((root[:, None] * equations.targets[live]).T @ left) * share) @ right
    w[:, equations.idle] = 0.0
    residuals = np.array([equations.residual(one, k) for k, one in enumerate(w)])
    if not equations.penalty:
        off = ((residuals[:, live] * root) @ left[:, kept]) @ left[:, kept].T
        residuals[:, live] -= off / root
    return Solution(w, equations.bias(w), residuals, 1)


def _by_conjugate_gradients(equations: _Equations, tol: float, most: int) -> Solution:
    """Conjugate gradients; without a penalty once more on the residuals, which makes them orthogonal to rounding."""
    rows, shift = equations.rows, equations.mean if equations.fit_intercept else None
    diagonal = 2 * rows.column_sums(equations.c, power=2, shift=shift) + equations.penalty
    inverse = np.where(equations.idle, 0.0, 1 / np.where(diagonal > 0, diagonal, 1.0))
    w, residuals, steps = np.zeros((equations.targets.shape[1], rows.d)), equations.targets.T.copy(), 0
    for k in range(len(w)):
        pull = equations.pull(residuals[k], w[k])
        first = inner(pull, inverse * pull)
        for share in ROUNDED[: 1 if equations.penalty else None]:
            change, taken = _conjugate_gradients(equations, residuals[k], inverse, tol, share**2 * first, most)
            w[k] += change
            steps = max(steps, taken)
    return Solution(w, equations.bias(w), residuals, steps)


def _conjugate_gradients(
    equations: _Equations, residual: Floats, inverse: Floats, tol: float, goal: float, most: int
) -> tuple[Floats, int]:
    """The best w for these targets, which become their residuals, and the steps it took; every column is scaled.

    It stops at the relative gap `tol` or, where there is no penalty, at the square `goal` of the scaled gradient.
    """
    rows, c, penalty, mean = equations.rows, equations.c, equations.penalty, equations.mean
    w = np.zeros(rows.d)
    pull = equations.pull(residual, w)
    scaled = inverse * pull
    along, slope, lowest = scaled.copy(), inner(pull, scaled), np.inf
    for step in range(1, most + 1):
        scores = rows.scores(along) - inner(mean, along)
        curvature = 2 * inner(c, scores**2) + penalty * inner(along, along)
        if curvature <= 0:
            return w, step
        length = slope / curvature
        w += length * along
        residual -= length * scores
        pull = equations.pull(residual, w)
        scaled = inverse * pull
        before, slope = slope, inner(pull, scaled)
        primal, gap = penalty * inner(w, w) / 2 + inner(c, residual**2), inner(pull, pull) / 2
        done = gap <= tol * (primal - gap) if penalty else slope <= goal
        if done or not primal <= lowest * (1 + 1e-9):
            return w, step
        lowest = min(lowest, primal)
        along = scaled + (slope / before) * along
    return w, most

"""Independent answers: off-the-shelf cone solver, closed forms, and the data the tests share. Tolerances stand here."""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp

from widemargin.data import Rows
from widemargin.kernel_problem import KernelProblem
from widemargin.kernels import Kernel, MatrixGram, PointsGram
from widemargin.losses import LOSSES
from widemargin.problem import Problem

#: Relative accuracy of the cone solver's optimal values.
ORACLE = 1e-7
#: Rounding of sums over a few hundred rows, relative to the sum of their absolute values.
ROUNDING = 1e-11


def make_problem(X, y, c=1.0, loss="hinge", fit_intercept=True, threads=1):
    """A problem from plain arrays; c may be one number."""
    X = X if sp.issparse(X) else np.asarray(X)
    y = np.asarray(y, dtype=float)
    return Problem(
        Rows(X, threads), y, np.broadcast_to(np.asarray(c, float), y.shape).copy(), LOSSES[loss], fit_intercept
    )


def noisy(n, d, seed=0, big=1.0, noise=0.15):
    """Gaussian rows, labels by a random hyperplane, some of them flipped, the first column scaled."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0)
    y[rng.random(n) < noise] *= -1
    y[:2] = 1, -1
    X[:, 0] *= big
    return X, y


def text_like(n, d=5000, per_row=60, seed=0):
    """Sparse unit rows with Zipf-distributed columns and noisy labels."""
    rng = np.random.default_rng(seed)
    columns = (d * rng.random((n, per_row)) ** 3).astype(np.int32)
    X = sp.csr_array((np.ones(n * per_row), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    X.sum_duplicates()
    X.data *= np.log(n / (1 + np.bincount(X.indices, minlength=d)))[X.indices]
    norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    scores = X @ rng.standard_normal(d)
    return X, np.where(scores + 0.3 * scores.std() * rng.standard_normal(n) > 0, 1.0, -1.0)


def minimum(problem):
    """The optimal value of a problem, by a cone solver that shares no code with ours."""
    X, y, c, loss = np.asarray(problem.rows.X), problem.y, problem.c, problem.loss.name
    keep = c > 0
    X, y, c = X[keep], y[keep], c[keep]
    n, d = X.shape
    rows = np.hstack([X, np.ones((n, 1))]) * y[:, None]
    width = d + 1
    penalty = sp.block_diag([sp.eye(d), sp.csc_matrix((1, 1))])
    fixed = sp.csc_matrix(([1.0], ([0], [d])), shape=(1, width)) if not problem.fit_intercept else None
    if loss == "logistic":
        return _logistic_minimum(rows, c, penalty, fixed)
    kink = 0.0 if loss == "perceptron" else 1.0
    curved = {"squared_hinge": 2 * c, "squared": 2 * c}.get(loss, np.zeros(n))
    linear = np.zeros(n) if curved.any() else c
    P = sp.block_diag([penalty, sp.diags(curved)], format="csc")
    A = sp.hstack([-sp.csc_matrix(rows), -sp.eye(n)])
    blocks, right, cones = [A], [-kink * np.ones(n)], []
    if loss == "squared":
        cones.append(clarabel.ZeroConeT(n))
    else:
        cones.append(clarabel.NonnegativeConeT(n))
        blocks.append(sp.hstack([sp.csc_matrix((n, width)), -sp.eye(n)]))
        right.append(np.zeros(n))
        cones.append(clarabel.NonnegativeConeT(n))
    return _solve(P, np.concatenate([np.zeros(width), linear]), blocks, right, cones, fixed)


def _logistic_minimum(rows, c, penalty, fixed):
    """Variables w, b, t, u, v with e^−t ≤ u, e^(−m−t) ≤ v, u + v ≤ 1; minimise the penalty and Σ c t."""
    n, width = rows.shape
    P = sp.block_diag([penalty, sp.csc_matrix((3 * n, 3 * n))], format="csc")
    blocks, right, cones = [], [], []
    zero, eye = sp.csc_matrix((n, n)), sp.eye(n)
    blocks.append(sp.hstack([sp.csc_matrix((n, width)), zero, eye, eye]))
    right.append(np.ones(n))
    cones.append(clarabel.NonnegativeConeT(n))
    for margins, slot in ((np.zeros_like(rows), 0), (rows, 1)):
        for i in range(n):
            first = np.concatenate([margins[i], np.eye(n)[i], np.zeros(2 * n)])
            last = np.zeros(width + 3 * n)
            last[width + n + slot * n + i] = -1
            blocks.append(sp.csc_matrix(np.array([first, np.zeros(width + 3 * n), last])))
            right.append(np.array([0.0, 1.0, 0.0]))
            cones.append(clarabel.ExponentialConeT())
    return _solve(P, np.concatenate([np.zeros(width), c, np.zeros(2 * n)]), blocks, right, cones, fixed)


def _solve(P, q, blocks, right, cones, fixed):
    if fixed is not None:
        blocks = [sp.hstack([fixed, sp.csc_matrix((1, len(q) - fixed.shape[1]))]), *blocks]
        right, cones = [np.zeros(1), *right], [clarabel.ZeroConeT(1), *cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    A = sp.vstack(blocks, format="csc")
    solution = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, A, np.concatenate(right), cones, settings).solve()
    return solution.obj_val


def hard_margin(X, y):
    """w and b of the hard margin, by the same cone solver."""
    n, d = X.shape
    P = sp.block_diag([sp.eye(d), sp.csc_matrix((1, 1))], format="csc")
    A = sp.csc_matrix(-np.hstack([X, np.ones((n, 1))]) * y[:, None])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.NonnegativeConeT(n)]
    solution = clarabel.DefaultSolver(P, np.zeros(d + 1), A, -np.ones(n), cones, settings).solve()
    return np.array(solution.x[:d]), solution.x[d]


#: Every kernel, with parameters that differ from the defaults.
KERNELS = {
    "linear": Kernel("linear"),
    "poly": Kernel("poly", gamma=0.4, degree=4, coef0=0.7),
    "rbf": Kernel("rbf", gamma=0.3),
    "sigmoid": Kernel("sigmoid", gamma=0.2, coef0=-0.4),
    "cosine": Kernel("cosine"),
    "laplacian": Kernel("laplacian", gamma=0.3),
    "chi2": Kernel("chi2", gamma=0.6),
    "additive_chi2": Kernel("additive_chi2"),
}


def exact_kernel(kernel, A, B):
    """k over all pairs of dense rows by its formula, in extended precision where the machine has it."""
    A, B = np.asarray(A).astype(np.longdouble), np.asarray(B).astype(np.longdouble)
    gamma, coef0 = np.longdouble(kernel.gamma), np.longdouble(kernel.coef0)
    products = A @ B.T
    match kernel.name:
        case "linear":
            return products
        case "poly":
            return (gamma * products + coef0) ** kernel.degree
        case "sigmoid":
            return np.tanh(gamma * products + coef0)
        case "cosine":
            sizes = np.sqrt((A**2).sum(axis=1))[:, None] * np.sqrt((B**2).sum(axis=1))
            return products / np.where(sizes > 0, sizes, 1)
    apart = A[:, None] - B[None]
    match kernel.name:
        case "rbf":
            return np.exp(-gamma * (apart**2).sum(axis=2))
        case "laplacian":
            return np.exp(-gamma * abs(apart).sum(axis=2))
    both = A[:, None] + B[None]
    distances = (apart**2 / np.where(both > 0, both, 1)).sum(axis=2)
    return -distances if kernel.name == "additive_chi2" else np.exp(-gamma * distances)


def kernel_rounding(kernel, A, B):
    """How far k in double precision may be from the formula: (d + 8)ε of every sum, and what that does to k."""
    A, B = abs(np.asarray(A, float)), abs(np.asarray(B, float))
    unit = (A.shape[1] + 8) * float(np.finfo(float).eps)
    squares = [(one**2).sum(axis=1) for one in (A, B)]
    sums = [one.sum(axis=1) for one in (A, B)]
    products = A @ B.T
    K = abs(exact_kernel(kernel, A, B)).astype(float)
    inside = kernel.gamma * products + abs(kernel.coef0)
    match kernel.name:
        case "linear":
            return unit * products
        case "poly":
            return unit * kernel.degree * inside**kernel.degree
        case "sigmoid":
            return unit * (1 + inside)
        case "cosine":
            return 2 * unit * K
        case "rbf":
            return unit * K * (1 + 4 * kernel.gamma * np.add.outer(*squares))
        case "additive_chi2":
            return 2 * unit * np.add.outer(*sums)
    return unit * K * (1 + 4 * kernel.gamma * np.add.outer(*sums))


def make_kernel_problem(kernel, X, y, c=1.0, threads=1):
    """A problem with a kernel from plain arrays; c may be one number, and X a kernel matrix if there is no kernel."""
    y = np.asarray(y, dtype=float)
    gram = MatrixGram(np.asarray(X), threads) if kernel is None else PointsGram(kernel, Rows(X, threads))
    return KernelProblem.of(gram, ((0, len(y)),), y, np.broadcast_to(np.asarray(c, float), y.shape).copy())


def kernel_values(K, y, c, alpha, b):
    """Primal, of f = Σ αⱼyⱼ k(xⱼ, ·) and b, and dual objective at α, in the precision of K; C = ∞ is none of it."""
    coef = alpha.astype(K.dtype) * y
    scores = K @ coef
    square = coef @ scores
    return square / 2 + c.astype(K.dtype) @ np.maximum(0, 1 - y * (scores + K.dtype.type(b))), coef @ y - square / 2


def kernel_minimum(K, y, c):
    """The optimal value of a kernel problem, which is that of its dual, by the cone solver; None if that fails.

    K may be semidefinite on Σ v = 0 only; there it is what it is less its means. α = c·a is scaled to 0 ≤ a ≤ 1. c may
    be infinite.
    """
    keep = np.flatnonzero(c > 0)
    K, y = K[np.ix_(keep, keep)], y[keep]
    hard, n = bool(np.isinf(c[keep]).any()), len(keep)
    c = np.ones(n) if hard else c[keep]
    centred = K - K.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    unit = c.sum()
    P = sp.csc_matrix(np.triu(centred * np.outer(c * y, c * y)) / unit)
    A, right, cones = [sp.csc_matrix(c * y / unit), -sp.eye(n)], [np.zeros(1), np.zeros(n)], [clarabel.ZeroConeT(1)]
    cones.append(clarabel.NonnegativeConeT(n))
    if not hard:
        A.append(sp.eye(n)), right.append(np.ones(n)), cones.append(clarabel.NonnegativeConeT(n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A, right = sp.vstack(A, format="csc"), np.concatenate(right)
    for accuracy in (1e-13, 1e-12, 1e-11, 1e-10):  # it may not reach the sharpest
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
        solution = clarabel.DefaultSolver(P, -c / unit, A, right, cones, settings).solve()
        if solution.status == clarabel.SolverStatus.Solved:
            return -unit * solution.obj_val
    return None


def sharpened(K, y, c, alpha):
    """α and b of a soft margin from those near the optimum, in the precision of K, the rows at a bound staying there.

    K_FF v_F + b = y_F − K_FB v_B with Σ v = 0 on the free rows F, solved and corrected by what is left ten times. Where
    it is the optimum, primal and dual are equal there.
    """
    free = (alpha > 1e-9 * c) & (alpha < (1 - 1e-9) * c)
    alpha, b = np.where(free, alpha, np.where(alpha > c / 2, c, 0.0)).astype(K.dtype), K.dtype.type(0)
    rows = np.flatnonzero(free)
    if not len(rows):
        turns = y - K @ (alpha * y)  # any kink of the primal as a function of b
        return alpha, min(turns, key=lambda b: kernel_values(K, y, c, alpha, b)[0])
    system = np.ones((len(rows) + 1, len(rows) + 1))
    system[:-1, :-1], system[-1, -1] = K[np.ix_(rows, rows)], 0
    inverse = np.linalg.pinv(system, rcond=1e-15)
    for _ in range(10):
        left = np.append((y - K @ (alpha * y) - b)[rows], -alpha @ y)
        change = inverse @ left.astype(float)
        alpha[rows] += y[rows] * change[:-1]
        b += change[-1]
    return alpha, b

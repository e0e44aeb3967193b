"""The dual as a quadratic program for an off-the-shelf solver, Clarabel (`pip install widemargin[qp]`).

max Σα − Σ αᵢ²/(4cᵢ)·[loss is squared] − ½‖w‖²  over α and w with  w = Σ αᵢyᵢxᵢ,  Σ αᵢyᵢ = 0,  and α within its bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from widemargin.problem import Problem
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.sight import Sight


def qp(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """The one iterate that the solver returns."""
    try:
        import clarabel
    except ImportError:
        raise ImportError("solver='qp' needs Clarabel: pip install 'widemargin[qp]', or use solver='auto'") from None
    import scipy.sparse as sp

    live, d = problem.live, problem.rows.d
    n, y, c = len(live), problem.y[live], problem.c[live]
    signed = sp.csc_array(problem.rows.X[live].astype(np.float64)).multiply(y[:, None]).T
    bend = 1 / (2 * c) if problem.loss.smooth and not problem.hard else np.zeros(n)
    quadratic = sp.diags_array(np.concatenate([bend, np.ones(d)]))
    equal = [sp.hstack([signed, -sp.eye_array(d)])]
    if problem.fit_intercept:
        equal.append(sp.hstack([sp.csc_array(y[None, :]), sp.csc_array((1, d))]))
    blocks, right = list(equal), [np.zeros(block.shape[0]) for block in equal]
    cones = [clarabel.ZeroConeT(sum(block.shape[0] for block in equal))]
    pad = sp.csc_array((n, d))
    for sign, bound in ((-1.0, np.zeros(n)), (1.0, problem.upper[live])):
        if np.isfinite(bound).all() and (sign > 0 or np.isfinite(problem.loss.lower)):
            blocks.append(sp.hstack([sign * sp.eye_array(n), pad]))
            right.append(bound)
            cones.append(clarabel.NonnegativeConeT(n))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = min(1e-3 * tol, 1e-11)
    linear = np.concatenate([-np.ones(n), np.zeros(d)])
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(quadratic), linear, sp.csc_matrix(sp.vstack(blocks)), np.concatenate(right), cones, settings
    )
    solution = solver.solve()
    alpha = problem.widen(np.asarray(solution.x[:n]))
    yield Sight(problem).of(problem.weights(problem.feasible(alpha)), 0.0, alpha, 1)

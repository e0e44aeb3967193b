"""The proximal point method on the dual, Newton's method inside: the hinge on tall data, whatever C and the scaling.

Each stage minimises ½‖w‖² + Σ ψᵢ(mᵢ), where ψ is the hinge with its corner rounded off around the last stage's α:

    ψ(m) = max over 0 ≤ α ≤ c of α(1 − m) − (α − centre)²/(2cτ),    so that  α(m) = clip(centre + cτ(1 − m), 0, c).

Only the rows strictly between the bounds bend it. Newton's matrix is a sum over these few, updated as they come and go,
and a step costs about two passes over the data. Rockafellar 1976; Yan and Li 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.line_search import line_search
from widemargin.solvers.normal_equations import Tall, refuse_if_too_large, share_of_rows

Floats = NDArray[np.float64]

#: τ of the first stage: rows within ½ of the margin bend ψ. A cold start takes all rows.
WARM, COLD = 1.0, 0.25
#: τ grows by this factor from stage to stage.
SHARPER = 2.0
#: A stage ends when what is left of its own gap is this share of what rounding the corner costs.
INEXACT = 0.5
#: A line search ends where the slope has fallen to this share.
FLAT = 0.3
#: The first steps, far from the end, take the curvature of some rows; later ones would lose more than that spares.
ROUGH = 2
#: Steps after which another method should take over.
STEPS = 200


class _Sums(NamedTuple):
    """What one walk over the rows yields; see proximal_newton.hpp."""

    slope: float
    bend: float
    loss: float
    held: float
    total: float
    balance: float
    free: float


def proximal_newton(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates, one per Newton step, until the caller is content.

    The seed draws the rows of the first steps. The caller alone decides when to stop: `tol` is there for the sake of a
    common signature.
    """
    rows, y, c, n = problem.rows, problem.y, problem.c, problem.rows.n
    refuse_if_too_large("proximal_newton", rows.d)
    system = Tall(problem, seed)
    w, b, centre, tau = np.zeros(rows.d), 0.0, c / 2, COLD
    if start is not None:
        b, centre, tau = start.b if problem.fit_intercept else 0.0, np.clip(start.alpha, 0.0, c), WARM
        w = problem.weights(centre)
    m, dm = problem.margins(w, b), np.zeros(n)

    def follow(t: float, alpha: Floats) -> _Sums:
        return _Sums(*_core.follow_ramp(m, dm, t, centre, c, y, tau, alpha, rows.threads))

    alpha, other = np.empty(n), np.empty(n)
    sums = follow(0.0, alpha)
    implied = problem.weights(alpha)
    for iteration in range(1, STEPS + 1):
        balance = sums.balance if problem.fit_intercept else 0.0
        residual = w - implied
        corner, rest = sums.loss - sums.held, inner(residual, residual) / 2 + abs(b * balance)
        dual = sums.total - inner(implied, implied) / 2
        claim = (corner + rest) / dual if dual > 0 else np.inf
        yield Iterate(w, b, alpha, dual + corner + rest, dual, claim, int(sums.free), iteration)
        if rest <= INEXACT * corner:
            centre, tau = alpha.copy(), SHARPER * tau
            sums = follow(0.0, other)
            implied = implied + problem.weights(other - alpha)
            alpha, other = other, alpha
            balance = sums.balance if problem.fit_intercept else 0.0
            residual = w - implied

        inside = (alpha > 0) & (alpha < c)
        weights = np.where(inside, c, 0.0) if sums.free else c
        share = share_of_rows(problem, sums.free or n)
        if share < 1 and iteration <= ROUGH:
            system.weigh_some(weights, share, ridge=1 / tau)
        else:
            system.weigh(weights, ridge=1 / tau)
        dw, db = system.direction(-residual / tau, balance / tau)
        dm = rows.scores(dw)
        dm += db
        dm *= y
        linear, quadratic = inner(w, dw), inner(dw, dw)
        flat = FLAT * abs(linear - inner(alpha, dm))
        t, sums = line_search(partial(follow, alpha=other), linear, quadratic, flat)
        w, b = w + t * dw, b + t * db
        dm *= t
        m += dm
        dm[:] = 0.0
        implied = implied + problem.weights(other - alpha)
        alpha, other = other, alpha

"""The proximal point method on the dual, Newton's method inside: the hinge on tall data, whatever C and the scaling.

Each stage minimises ½‖w‖² + Σ ψᵢ(mᵢ), where ψ is the hinge with its corner rounded off around the last stage's α:

    ψ(m) = max over 0 ≤ α ≤ c of α(1 − m) − (α − centre)²/(2cτ),    so that  α(m) = clip(centre + cτ(1 − m), 0, c).

Only the rows strictly between the bounds bend it. Newton's matrix is a sum over these few, updated as they come and go,
and a step costs about two passes over the data. Rows far from the margin stay at their bounds: once most of them do,
steps go over the others alone, and what is far is looked at between stages. Rockafellar 1976; Yan and Li 2020.
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
WARM, COLD = 2.0, 0.25
#: τ grows by this factor from stage to stage.
SHARPER = 2.0
#: A stage ends when what is left of its own gap is this share of what rounding the corner costs.
INEXACT = 1.0
#: A line search ends where the slope has fallen to this share.
FLAT = 0.3
#: The first steps, far from the end, take the curvature of some rows; later ones would lose more than that spares.
ROUGH = 2
#: Rows whose margin is further from 1 than this share of the most that one moved in the last stage are left where they
#: are, once they are all but this share.
REACH, FEW = 0.5, 1 / 8
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


class _Play:
    """The rows in play, all or those that are near, and what the α of the others add to w(α), Σ α and Σ αy."""

    def __init__(self, problem: Problem, seed: int, alpha: Floats, near: NDArray[np.bool_] | None = None) -> None:
        self.whole, self.problem, self.seed, self.near, self.alpha = problem, problem, seed, near, alpha
        self.w, self.total, self.balance = np.zeros(problem.rows.d), 0.0, 0.0
        if near is not None:
            self.problem = problem.of(np.flatnonzero(near))
            others = np.where(near, 0.0, alpha)
            self.w, self.total, self.balance = problem.weights(others), float(others.sum()), inner(others, problem.y)
        self.system = Tall(self.problem, seed)

    def own(self, values: Floats) -> Floats:
        """Values of all rows, cut down to those in play."""
        return values if self.near is None else values[self.near]

    def all_alpha(self, alpha: Floats) -> Floats:
        """α of all rows, given those in play: the same array, or one that the next call changes."""
        if self.near is None:
            return alpha
        self.alpha[self.near] = alpha
        return self.alpha

    def narrowed(self, margins: Floats, alpha: Floats, moved: float) -> _Play:
        """The rows that should be in play from here, given all margins and α; they may be the same."""
        c, reach = self.whole.c, REACH * moved
        near = ((alpha > 0) | (margins < 1 + reach)) & ((alpha < c) | (margins > 1 - reach)) & (c > 0)
        count = np.count_nonzero(near)
        missing = self.near is not None and bool((near & ~self.near).any())
        if 0 < count <= FEW * len(near) and (missing or 2 * count <= self.problem.rows.n):
            return _Play(self.whole, self.seed, alpha.copy(), near)
        return _Play(self.whole, self.seed, alpha) if missing else self


def proximal_newton(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates, one per Newton step, until the caller is content.

    The seed draws the rows of the first steps. The caller alone decides when to stop: `tol` is there for the sake of a
    common signature.
    """
    refuse_if_too_large("proximal_newton", problem.rows.d)
    w, b, centre, tau = np.zeros(problem.rows.d), 0.0, problem.c / 2, COLD
    if start is not None:
        b, centre, tau = start.b if problem.fit_intercept else 0.0, np.clip(start.alpha, 0.0, problem.c), WARM
        w = problem.weights(centre)
    at_hand = len(problem.rows.parts) == 1  # rows that come part by part are too many to copy some
    play, m = _Play(problem, seed, centre), problem.margins(w, b)
    alpha, other, dm, before = np.empty_like(m), np.empty_like(m), np.zeros_like(m), m.copy()

    def follow(t: float, alpha: Floats) -> _Sums:
        own = play.problem
        return _Sums(*_core.follow_ramp(m, dm, t, centre, own.c, own.y, tau, alpha, own.rows.threads))

    sums = follow(0.0, alpha)
    implied = problem.weights(alpha)
    for iteration in range(1, STEPS + 1):
        balance = sums.balance + play.balance if problem.fit_intercept else 0.0
        residual = w - implied
        corner, rest = sums.loss - sums.held, inner(residual, residual) / 2 + abs(b * balance)
        dual = sums.total + play.total - inner(implied, implied) / 2
        claim = (corner + rest) / dual if dual > 0 else np.inf
        shown = dual + corner + rest, dual, claim, int(sums.free), iteration
        yield Iterate(w, b, play.all_alpha(alpha), *shown)
        if rest <= INEXACT * corner:
            tau *= SHARPER
            if at_hand and sums.free <= FEW * problem.rows.n:
                margins = m if play.near is None else problem.margins(w, b)
                moved, whole, last = float(np.abs(margins - before).max()), play.all_alpha(alpha), play
                play, before = play.narrowed(margins, whole, moved), margins.copy()
                if play is not last:
                    m, alpha = play.own(margins), play.own(whole)
                    other, dm = np.empty_like(m), np.zeros_like(m)
                    implied = play.w + play.problem.weights(alpha)
            centre = alpha.copy()
            sums = follow(0.0, other)
            implied = implied + play.problem.weights(other - alpha)
            alpha, other = other, alpha
            balance = sums.balance + play.balance if problem.fit_intercept else 0.0
            residual = w - implied

        own, system = play.problem, play.system
        inside = (alpha > 0) & (alpha < own.c)
        weights = np.where(inside, own.c, 0.0) if sums.free else own.c
        share = share_of_rows(problem, sums.free or own.rows.n)
        if share < 1 and iteration <= ROUGH:
            system.weigh_some(weights, share, ridge=1 / tau)
        else:
            system.weigh(weights, ridge=1 / tau)
        dw, db = system.direction(-residual / tau, balance / tau)
        dm = own.rows.scores(dw)
        dm += db
        dm *= own.y
        linear = inner(w - play.w, dw) - db * play.balance
        t, sums = line_search(
            partial(follow, alpha=other), linear, inner(dw, dw), FLAT * abs(linear - inner(alpha, dm))
        )
        w, b = w + t * dw, b + t * db
        dm *= t
        m += dm
        dm[:] = 0.0
        implied = implied + own.weights(other - alpha)
        alpha, other = other, alpha

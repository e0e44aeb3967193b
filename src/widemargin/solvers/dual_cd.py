"""Dual coordinate descent: one αᵢ at a time, in cheap passes over data of any shape. The kernel is `dual_cd.hpp`.

min over α of ½‖Σ αᵢyᵢxᵢ‖² + Σ cᵢφ*(−αᵢ/cᵢ). Rows whose αᵢ seems settled at a bound are left out of the next passes
(shrinking) until the others are solved, and rows that are slow to settle get visits of their own. The unpenalised bias
is the multiplier b of Σ αᵢyᵢ = 0, found on the way by an augmented Lagrangian, at no extra cost.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start

Floats = NDArray[np.float64]

#: 1/ρ of the augmented Lagrangian, as a share of the rows' mean squared norm: larger, and all rows compete for the
#: balance Σ αᵢyᵢ; smaller, and b lags behind. Between 1/10 and 1/100 little changes.
BALANCE = 1 / 30
#: Neighbouring rows are visited together, up to so many, as long as there are so many blocks to shuffle.
BLOCK, BLOCKS = 16, 2000
#: Data with more non-zeros in play than this is cut into two shards that run side by side.
MANY = 4_000_000
#: Shards are merged at most this often per pass.
ROUNDS = 32
#: All rows come back into play when the gap of those still in play has fallen to this share of the last whole gap.
RETURN = 0.01
#: After a pass, the rows whose gradient is more than this share of the largest are visited again, up to so many times:
#: a few rows that depend on each other often hold up all others.
SLOW, AGAIN = 0.03, 30
#: After this many passes' worth of work the solver gives up.
PASSES = 3000


def dual_cd(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates of dual coordinate descent, one per pass and the extra visits that follow it."""
    rows, loss = problem.rows, problem.loss
    everyone = problem.live.astype(np.int64)
    order = np.random.default_rng(seed)
    norms = problem.norms
    if start is None:
        start = _cold(problem)
    alpha = np.clip(start.alpha, loss.lower, problem.upper)
    b = start.b if problem.fit_intercept else 0.0
    w, s = problem.weights(alpha), inner(alpha, problem.y)
    inverse_rho = BALANCE * float(norms[everyone].mean()) if problem.fit_intercept else 0.0
    if problem.fit_intercept and inverse_rho == 0:  # nothing but empty rows
        inverse_rho = 1.0
    nonzeros_per_row = rows.nonzeros / rows.n
    active, actives, above, below = everyone.copy(), len(everyone), np.inf, -np.inf
    block = int(np.clip(len(everyone) // BLOCKS, 1, BLOCK))
    slow, worst = np.zeros(rows.n, np.uint8), np.inf
    whole, whole_claim, before, trusted = True, np.inf, np.inf, True
    dual, visited, unseen, iteration = 0.0, 0, 0, 0
    while visited < PASSES * len(everyone):
        iteration += 1
        playing, in_play = actives, actives * nonzeros_per_row
        shards = 2 if in_play >= max(MANY, 16 * rows.d) else 1
        rounds = int(np.clip(in_play / (8 * rows.d * shards), 1, ROUNDS))
        b, s, gap, largest, smallest, actives, visits = _core.dual_cd_pass(
            loss.name,
            rows.core,
            problem.y,
            problem.c,
            norms,
            alpha,
            w,
            b,
            s,
            inverse_rho,
            active,
            actives,
            order.permutation(-(-actives // block)),
            block,
            above,
            below,
            slow,
            SLOW * worst,
            SLOW,
            AGAIN,
            tol * dual,
            shards,
            rounds,
            rows.threads,
        )
        visited, unseen = visited + visits, unseen + visits
        worst = max(largest, -smallest)
        if unseen >= len(everyone):  # the dual costs O(n): no more often than a pass's worth of rows
            dual, unseen = _dual(problem, alpha, w), 0
        claim = abs(gap) / dual if dual > 0 else np.inf
        hopeless = problem.hard and iteration % 64 == 0 and problem.hulls_seem_to_meet(alpha, w)
        # The gaps were seen before the visits that shrank them: by now they have fallen as they did from the last time.
        now = claim * min(1.0, max(0.1, claim / before)) if 0 < before < np.inf and trusted else claim
        before = claim
        seen = dual + abs(gap), dual, now
        yield Iterate(w, b, alpha, *seen, playing, iteration, visits=visits, inseparable=hopeless)
        above, below = largest if largest > 0 else np.inf, smallest if smallest < 0 else -np.inf
        if whole:
            whole_claim = claim
        whole = claim <= max(tol, RETURN * whole_claim) or not actives
        if whole:  # the caller was not content, or the rows in play are solved far better than the others may be
            active[:], actives, above, below = everyone, len(everyone), np.inf, -np.inf
        if claim <= tol:
            tol *= 0.8
        elif now <= tol:
            trusted = False


def _dual(problem: Problem, alpha: Floats, w: Floats) -> float:
    """The dual at an α that is known to be within its bounds."""
    if problem.hard:
        return problem.dual(alpha, w)
    return -inner(w, w) / 2 - _core.conjugates(problem.loss.name, alpha, problem.c, problem.rows.threads)


def _cold(problem: Problem) -> Start:
    """α = 0, or the middle of its range where the loss keeps α away from the ends; the best b for w = 0."""
    inside = problem.loss.smooth and np.isfinite(problem.loss.upper)
    return Start(problem.c / 2 if inside else np.zeros(problem.rows.n), problem.best_bias(np.zeros(problem.rows.n)))

"""Dual coordinate descent: one αᵢ at a time, in cheap passes over data of any shape. The kernel is `dual_cd.hpp`.

min over α of ½‖Σ αᵢyᵢxᵢ‖² + Σ cᵢφ*(−αᵢ/cᵢ). Rows whose αᵢ seems settled at a bound are left out of the next passes
(shrinking) until the others are solved, and rows that are slow to settle get visits of their own. The unpenalised bias
is the multiplier b of Σ αᵢyᵢ = 0, found on the way by an augmented Lagrangian, at no extra cost.

Rows that are not all at hand come part by part, each visited as if it were all there is, the parts in a new order in
every pass: Yu, Hsieh, Chang and Lin 2010.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data import Rows
from widemargin.data.kept_rows import KeptRows
from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: 1/ρ of the augmented Lagrangian, as a share of the rows' mean squared norm: larger, and all rows compete for the
#: balance Σ αᵢyᵢ; smaller, and b lags behind. Between 1/10 and 1/100 little changes.
BALANCE = 1 / 30
#: Neighbouring rows are visited together, up to so many, as long as there are so many blocks to shuffle.
BLOCK, BLOCKS = 16, 2000
#: Data with more non-zeros in play than this is cut into two shards that run side by side.
MANY = 60_000
#: Shards are merged when each has seen this many times as many non-zeros as there are columns, and at least so many.
MERGE, BETWEEN = 4, 10_000
#: αᵢ at a bound is left out of the next passes if its gradient is beyond a share of the largest that the last one met:
#: of BOLD as long as the relative gap is above ROUGH, of SHY from then on. (Passes over few rows that the kernel goes
#: on with by itself are shyer: all of the largest.)
ROUGH, BOLD, SHY = 0.03, 0.1, 0.5
#: All rows come back into play when the gap of those still in play has fallen to this share of the last whole gap.
RETURN = 0.01
#: After a pass, the rows whose gradient is more than this share of the largest are visited again, up to so many times:
#: a few rows that depend on each other often hold up all others.
SLOW, AGAIN = 0.03, 30
#: If rows come part by part, such rows are kept until all parts were seen: up to this share of all non-zeros, at most
#: so many, and then visited no more often than this.
KEPT, MOST_KEPT, VISITS = 1 / 8, 1 << 27, 10
#: Such parts may be rough, in numbers of 32 bits, as long as the relative gap to reach is above this: less is read.
ROUGHLY = 1e-5
#: A claim this close to tol is worth a proof, which costs less than a pass.
NEAR = 0.9
#: α = c is tried at first where, of all its multiples, the best would be this many times as large, as every sixteenth
#: row suggests: margins at w(c) are well below 1 then.
AMPLE, EVERY = 4.0, 16
#: With a bias, not where the classes' strengths differ by more than this share.
UNEVEN = 0.1
#: After this many passes' worth of work the solver gives up.
PASSES = 3000


@dataclass
class Memory:
    """All that one pass leaves to the next."""

    tol: float
    alpha: Floats
    b: float
    w: Floats
    s: float
    #: The rows in play of each part, numbered within it, at the beginning of its stretch; and how many they are.
    active: Integers
    actives: Integers
    slow: NDArray[np.uint8]
    #: Whether rows that come part by part may be rough; and whether what they seemed to prove they did not.
    rough: bool
    doubted: bool = False
    worst: float = np.inf
    above: float = np.inf
    below: float = -np.inf
    whole: bool = True
    whole_claim: float = np.inf
    before: float = np.inf
    trusted: bool = True
    dual: float = 0.0
    visited: int = 0
    unseen: int = 0
    iteration: int = 0


def dual_cd(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates of dual coordinate descent, one per pass, the extra visits that follow it, and what more is cheap."""
    rows, loss, norms = problem.rows, problem.loss, problem.norms
    live, order = problem.live, np.random.default_rng(seed)
    edges = np.searchsorted(live, [0, *(part.stop for part in rows.parts)])
    stretches = [slice(*pair) for pair in pairwise(edges.tolist())]
    if start is not None and start.state is not None:
        at = Memory(**{name: value for name, value in start.state.items() if name != "order"})
        order.bit_generator.state = start.state["order"]
    else:
        at = _cold(problem, tol) if start is None else _warm(problem, tol, start)

    resumed = at.iteration

    def all_play() -> None:
        for own, part in zip(stretches, rows.parts, strict=True):
            np.subtract(live[own], part.start, out=at.active[own])
        at.actives = np.diff(edges)

    if not at.iteration:
        all_play()

    def state() -> State:
        return {**asdict(at), "order": order.bit_generator.state}

    inverse_rho = inverse_rho_of(problem)
    nonzeros_per_row, several = rows.nonzeros / rows.n, len(rows.parts) > 1
    block = block_of(len(live))
    many = math.ceil(max(MANY, 16 * rows.d) / max(nonzeros_per_row, 1e-9))  # rows that are worth two shards
    apart = math.ceil(max(MERGE * rows.d, BETWEEN) / max(nonzeros_per_row, 1e-9))
    work = _core.Workspace()

    def descend(
        some: Rows,
        own: _Numbers,
        active: Integers,
        count: int,
        *,
        bounds: tuple[float, float] = (np.inf, -np.inf),
        slow_from: float = np.inf,
        again: int = 0,
        proof: float = 0.0,
        enough: float = 0.0,
        most: int = 0,
        split: bool = True,
    ) -> tuple[float, float, float, float, int, int]:
        at.b, at.s, gap, before, largest, smallest, left, visits = _core.dual_cd_pass(
            loss.name,
            some.core,
            own.y,
            own.c,
            own.norms,
            own.alpha,
            at.w,
            at.b,
            at.s,
            inverse_rho,
            active,
            count,
            order.permutation(-(-count // block)),
            block,
            *bounds,
            own.slow,
            slow_from,
            SLOW,
            again,
            many,
            proof,
            enough,
            most,
            split and count >= many,
            rows.threads,
            apart,
            work,
        )
        return gap, before, largest, smallest, left, visits

    everything = _Numbers(problem.y, problem.c, norms, at.alpha, at.slow)

    def descend_all() -> tuple[float, float, float, float, int]:
        playing, gap, before, largest, smallest, visits = int(at.actives.sum()), 0.0, 0.0, -np.inf, np.inf, 0
        parts = order.permutation(len(rows.parts)) if several else np.zeros(1, int)
        room = KEPT * rows.nonzeros * (1 if at.rough else 2 / 3)  # values of 64 bits take up more
        kept = KeptRows(rows.d, min(math.ceil(room), MOST_KEPT))
        for k, part in rows.walk(parts[at.actives[parts] > 0].tolist(), rough=at.rough):
            here, own, mine = rows.parts[k], at.active[stretches[k]], int(at.actives[k])
            seen, before, highest, lowest, at.actives[k], visited = descend(
                part,
                everything.of(here),
                own,
                mine,
                bounds=(at.above, at.below),
                slow_from=SLOW * at.worst,
                again=0 if several else AGAIN,
                proof=at.tol * at.dual * mine / playing,
                enough=at.dual * max(at.tol, RETURN * at.whole_claim) if at.dual > 0 else 0.0,
                most=0 if several else len(live),
                split=not several,  # two shards of a part are merged too seldom
            )
            gap, visits = gap + seen, visits + visited
            largest, smallest = max(largest, highest), min(smallest, lowest)
            if several:
                left = own[: at.actives[k]]
                kept.add(part, left[at.slow[here][left] > 0], here.start)
        places = kept.index
        if count := len(places):
            copies = everything.of(places)
            *_, visited = descend(kept.rows(rows.threads), copies, np.arange(count), count, most=VISITS * count)
            at.alpha[places] = copies.alpha
            visits += visited
        return gap, before, largest, smallest, visits

    if not at.iteration and at.dual > 0:  # α = c may be all there is to find
        at.iteration = 1
        yield Iterate(at.w, at.b, at.alpha, np.inf, at.dual, 0.0, len(live), 1, improving=True, state=state)
    while at.visited < PASSES * len(live):
        at.iteration += 1
        if at.rough and at.doubted:
            at.rough, at.w = False, problem.weights(at.alpha)
        playing = int(at.actives.sum())
        gap, before, largest, smallest, visits = descend_all()
        at.visited, at.unseen = at.visited + visits, at.unseen + visits
        at.worst = max(largest, -smallest)
        if at.unseen >= len(live):  # the dual costs O(n): no more often than a pass's worth of rows
            at.dual, at.unseen = problem.dual(at.alpha, at.w), 0
        claim = abs(gap) / at.dual if at.dual > 0 else np.inf
        at.before = before / at.dual if before and at.dual > 0 else at.before
        # The gaps were seen before the visits that shrank them: by now they have fallen as they did from the last time.
        fall = min(1.0, max(0.1, claim / at.before)) if 0 < at.before < np.inf and at.trusted else 1.0
        now, at.before = claim * fall, claim
        near = now if several else NEAR * now
        if near <= tol and at.unseen:  # the proof begins with it
            at.dual, at.unseen = problem.dual(at.alpha, at.w), 0
        share = BOLD if claim > ROUGH else SHY
        at.above = share * largest if largest > 0 else np.inf
        at.below = share * smallest if smallest < 0 else -np.inf
        if at.whole:
            at.whole_claim = claim
        at.whole = near <= at.tol or claim <= max(at.tol, RETURN * at.whole_claim) or not at.actives.any()
        if at.whole:  # the caller was not content, or the rows in play are solved far better than the others may be
            all_play()
        at.doubted = claim <= at.tol
        if at.doubted:
            at.tol *= 0.8
        elif now <= at.tol:
            at.trusted = False
        hopeless = problem.hard and at.iteration % 64 == 0 and problem.hulls_seem_to_meet(at.alpha, at.w)
        shown = at.dual + abs(gap), at.dual, near, playing, at.iteration
        yield Iterate(at.w, at.b, at.alpha, *shown, visits=visits, inseparable=hopeless, improving=True, state=state)
    if resumed and at.iteration == resumed:  # it had come to its end: once more where it ended
        yield Iterate(at.w, at.b, at.alpha, np.inf, at.dual, np.inf, len(live), at.iteration, state=state)


def block_of(count: int) -> int:
    """How many neighbours of so many rows are visited together."""
    return int(np.clip(count // BLOCKS, 1, BLOCK))


def inverse_rho_of(problem: Problem) -> float:
    """1/ρ, which is 0 without a bias; any will do where all rows are empty."""
    return BALANCE * float(problem.narrow(problem.norms).mean()) or 1.0 if problem.fit_intercept else 0.0


class _Numbers(NamedTuple):
    """What rows have beside X."""

    y: Floats
    c: Floats
    norms: Floats
    alpha: Floats
    slow: NDArray[np.uint8]

    def of(self, rows: slice | Integers) -> _Numbers:
        return _Numbers(self.y[rows], self.c[rows], self.norms[rows], self.alpha[rows], self.slow[rows])


def _warm(problem: Problem, tol: float, start: Start) -> Memory:
    alpha = np.clip(start.alpha, problem.loss.lower, problem.upper)
    return _begin(problem, tol, alpha, problem.weights(alpha), start.b if problem.fit_intercept else 0.0)


def _begin(problem: Problem, tol: float, alpha: Floats, w: Floats, b: float) -> Memory:
    slow = np.zeros(problem.rows.n, np.uint8)
    active, actives = np.empty(len(problem.live), np.int64), np.empty(0, np.int64)
    return Memory(
        tol, alpha, b, w, inner(alpha, problem.y), active, actives, slow, rough=problem.rows.rough and tol > ROUGHLY
    )


def _cold(problem: Problem, tol: float) -> Memory:
    """α = 0, or the best multiple of c: where the loss keeps α away from both ends, or where that is c by far."""
    n, b, total = problem.rows.n, problem.bias_of_nothing, float(problem.c.sum())
    if problem.loss.smooth and np.isfinite(problem.loss.upper):
        far = problem.weights(problem.c)
        share = _best_share(far, total)
        return _begin(problem, tol, share * problem.c, share * far, b)
    if _guess_of_square(problem) * AMPLE < total:
        far = problem.weights(problem.c)
        if inner(far, far) * AMPLE < total:
            at = _begin(problem, tol, problem.c.copy(), far, b)
            at.dual = problem.dual(at.alpha, at.w)
            return at
    return _begin(problem, tol, np.zeros(n), np.zeros(problem.rows.d), b)


def _guess_of_square(problem: Problem) -> float:
    """‖w(c)‖², as every sixteenth row suggests it; ∞ where α = c is no solution, nor close to one in balance."""
    rows, c = problem.rows, problem.c
    if problem.hard or problem.loss.upper != 1 or len(rows.parts) > 1:
        return np.inf
    if problem.fit_intercept and abs(inner(c, problem.y)) > UNEVEN * c.sum():
        return np.inf
    some = np.zeros(rows.n)
    some[::EVERY] = c[::EVERY]
    w, share = problem.weights(some), float(some.sum() / c.sum())
    if share == 0:
        return np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        alone = inner(c * c, problem.norms)  # what the rows would make of it if they were at right angles
        return float(np.float64(inner(w, w) / share - (1 - share) * alone) / share)


def _best_share(far: Floats, total: float) -> float:
    """The a for which α = ac is best with the logistic loss, given w(c) and Σc.

    It is 1/(1 + eᵘ) where u(1 + eᵘ) = q = ‖w(c)‖²/Σc: found by halves, in logarithms, as q may be any size.
    """
    largest = float(np.abs(far).max())
    if not 0 < largest < np.inf:
        return 0.5
    log_q = 2 * math.log(largest) + math.log(inner(far / largest, far / largest)) - math.log(total)
    low, high = 0.0, max(1.0, log_q)
    while low < (u := (low + high) / 2) < high:
        low, high = (low, u) if math.log(u) + np.logaddexp(0, u) > log_q else (u, high)
    return float(np.exp(-np.logaddexp(0, high)))

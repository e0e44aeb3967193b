"""Newton's method for smooth losses, with an exact line search: αᵢ = −cᵢφ′(mᵢ), and the step is that of the primal.

Keerthi and DeCoste 2005; Chapelle 2007. The curvature of a part of many rows will do: Byrd, Chin, Neveitt and Nocedal
2011. So will that of an earlier step, with corrections, as long as steps gain by it. And far from the optimum, a part
of the rows will do for all of the problem: Mokhtari, Daneshmand, Lucchi, Hofmann and Ribeiro 2016.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem, inner
from widemargin.solvers.curve import Curve
from widemargin.solvers.headway import PATIENCE, PRECISE, Headway
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.normal_equations import NormalEquations, Tall, share_of_rows
from widemargin.solvers.secants import Secants

Floats = NDArray[np.float64]

#: A factor of Newton's method takes its curvature from four times as many rows after a step shorter than this, or if
#: more than this share of the gap at the last factor is left.
SHORT, LITTLE = 0.5, 0.05
#: As long as steps leave no more than this share of the gap, the next goes by the same factor.
KEEP = 0.3
#: A start comes from so many rows per unknown, or from the first of these shares of the rows if that is more; not from
#: more than the second.
START_PER_UNKNOWN, START_LEAST, START_MOST = 20, 1 / 16, 1 / 8
#: The relative gap at which these rows have told what they know, and the most steps to it.
START_TOL, START_STEPS = 0.1, 10
#: How often the rows that are too heavy to be drawn are found anew, when what one row stands for has become less.
HEAVIER = 40


class _Share:
    """The share of the rows whose curvature will do for a step: a larger one when that was short, or gained little."""

    def __init__(self, problem: Problem, whole: bool) -> None:
        self.problem, self.whole, self.growth, self.gap = problem, whole, np.inf if whole else 1.0, np.inf

    def after(self, t: float, gap: float, weights: Floats) -> float:
        if t < SHORT or (self.gap < np.inf and gap > LITTLE * self.gap):
            self.growth *= 4
        self.gap = gap
        return share_of_rows(self.problem, int(np.count_nonzero(weights)), self.growth) if weights.any() else 1.0


def _jumps(problem: Problem) -> bool:
    """Whether the curvature is constant but for jumps, and so exact once all rows are on their side of these."""
    return not np.isfinite(problem.loss.upper)


def _begin(problem: Problem, start: Start | None) -> tuple[Floats, float, Curve]:
    """A start's w, its best b and the loss there; or those of w = 0, if that is better even without a bias."""
    if start is not None:
        w = problem.weights(start.alpha) if start.w is None else start.w.copy()
        scores = problem.rows.scores(w)
        b = problem.best_bias(scores, start.b)
        curve = Curve(problem, problem.y * (scores + b))
        nothing = float(problem.c.sum()) * float(problem.loss.value(np.zeros(1))[0])
        if inner(w, w) / 2 + curve.sums.loss <= nothing:
            return w, b, curve
    b = problem.bias_of_nothing
    return np.zeros(problem.rows.d), b, Curve(problem, problem.y * b)


def start_from_some_rows(problem: Problem, system: Tall) -> Start | None:
    """Roughly the optimum of some of the rows.

    None where so few tell nothing, and for sparse rows whose curvature jumps: their steps are short, and as many are
    left after such a start.
    """
    y, c, n = problem.y, problem.c, len(problem.live)
    wanted = max(START_PER_UNKNOWN * (problem.rows.d + 1), START_LEAST * n)
    if wanted > START_MOST * n or (system.sparse and _jumps(problem)):
        return None
    with np.errstate(over="ignore"):
        totals = float(c[y > 0].sum()), float(c[y < 0].sum())
    if not (min(totals) > 0 and max(totals) < np.inf):
        return None
    some = some_rows(problem, wanted, system.draws)  # which will choose the first rows for the curvature too
    steps = newton(some, Tall(some, system.seed), START_TOL, None, whole=False, most=START_STEPS)
    last = next(one for one in steps if one.claim <= START_TOL or one.iterations == START_STEPS)
    return Start(np.zeros(0), last.b, last.w)


def some_rows(problem: Problem, wanted: float, draws: Floats) -> Problem:
    """A problem of about so many rows that stands for all: half of them from either class, by their strength.

    `draws` has a number between 0 and 1 for each row.
    """
    y, c = problem.y, problem.c
    unit = np.where(y > 0, _unit(c[y > 0], wanted / 2), _unit(c[y < 0], wanted / 2))
    drawn = np.flatnonzero(draws * unit < c)
    return problem.of(drawn, np.maximum(c[drawn], unit[drawn]))


def _unit(c: Floats, wanted: float) -> float:
    """The strength that one of the rows drawn stands for; those that have more are there anyway."""
    if np.count_nonzero(c) <= wanted:
        return 0.0
    unit = float(c.sum()) / wanted
    for _ in range(HEAVIER):
        count = float(np.minimum(c / unit, 1.0).sum())
        if count > 0.9 * wanted:
            break
        unit *= count / wanted
    return unit


def newton(
    problem: Problem, system: NormalEquations, tol: float, start: Start | None, *, whole: bool, most: float
) -> Iterator[Iterate]:
    """Newton's method for a smooth loss, by the curvature of the `whole` of the rows or of as many as will do.

    It takes so many steps at most.
    """
    y, n, share = problem.y, problem.rows.n, _Share(problem, whole)
    w, b, curve = _begin(problem, start)
    headway, iteration, t = Headway(tol), 0, 1.0
    # A factor is worth keeping where it costs more than a step: not that of dense rows, whose products come in panels.
    keeps = isinstance(system, Tall) and system.sparse and not share.whole and not _jumps(problem)
    secants: Secants | None = None
    before, step, last = np.zeros(0), np.zeros(0), np.inf
    while True:
        iteration += 1
        implied, balance = problem.weights(curve.alpha), inner(curve.alpha, y) if problem.fit_intercept else 0.0
        primal = inner(w, w) / 2 + curve.sums.loss
        # At α = −cφ′(m) Fenchel and Young's inequality is an equality; an α out of balance is next to a feasible one.
        dual = curve.sums.loss + curve.sums.held - inner(implied, implied) / 2 - abs(b * balance)
        ended = headway.ended(primal, dual, primal)
        # Where nothing more can be gained, what there is wants to be looked at.
        claim = np.inf if not ended else headway.claim if headway.waited <= PATIENCE else 0.0
        yield Iterate(w, b, curve.alpha, *headway.seen, claim, n, iteration)
        if ended:
            if headway.waited > PATIENCE or headway.best <= PRECISE:
                return
            headway.tol /= 10  # the feasible point was not next to it
        if iteration >= most:
            return
        slope = np.append(w - implied, -balance)
        falls, last = headway.claim < KEEP * last, headway.claim
        if falls and secants is not None:
            secants.add(step, slope - before)
        else:
            part = share.after(t, last, curve.weights)
            try:
                if part < 1 and isinstance(system, Tall):
                    system.weigh_some(curve.weights.copy(), part)
                else:
                    system.weigh(curve.weights.copy())
            except np.linalg.LinAlgError:  # numbers too large for a step: what there is wants to be looked at
                yield Iterate(w, b, curve.alpha, *headway.seen, 0.0, n, iteration)
                return
            if isinstance(system, Tall) and keeps:
                secants = Secants(system)
        if secants is not None:
            dw, db, dm = secants.newton_step(slope)
        else:
            dw, db, dm = system.newton_step(w - implied, balance)
        t = curve.search(dm, inner(w, dw), inner(dw, dw))
        before, step = slope, t * np.append(dw, db)
        w, b = w + t * dw, b + t * db

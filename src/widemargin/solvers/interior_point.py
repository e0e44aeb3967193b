"""Newton's method with all second-order information: few, expensive steps, whatever the scaling and whatever C.

For tall data (n·d² per step) and for wide data (n³ per step). One linear system, two rules for the steps:

- hinge, perceptron and the hard margin: Mehrotra's predictor–corrector on the primal–dual conditions
      w = Σ αᵢyᵢxᵢ,  Σ αᵢyᵢ = 0,  mᵢ = kink + sᵢ − ξᵢ,  αᵢsᵢ = μ,  (cᵢ − αᵢ)ξᵢ = μ,  μ → 0;
  cᵢ = ∞ leaves ξ out. Ferris and Munson 2002; Gertz and Wright 2003.
- smooth losses need no barrier: αᵢ = −cᵢφ′(mᵢ), and the step is Newton's on the primal (newton.py).
  Where this comes to rest too early, or takes too many steps, the squared hinge is a hard margin that gives way:
  ξᵢ = αᵢ/(2cᵢ), α has no bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem, inner
from widemargin.solvers.headway import PATIENCE, PRECISE, Headway
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.newton import newton, start_from_some_rows
from widemargin.solvers.normal_equations import NormalEquations, Tall, normal_equations, refuse_if_too_large

Floats = NDArray[np.float64]

#: Up to this many multiplications per step, machine precision costs nothing that anyone would notice.
SMALL = 1e7
#: Steps of Newton's method after which the squared hinge, whose curvature jumps, is better solved the other way.
SLOW = 20
#: Rows on the margin are polished if they are no more than this, nor so many times as many as there are unknowns:
#: where ties have put more there, α has room to spare, and the matrix would take longer than all steps.
MOST_POLISHED, TIES = 2000, 10
#: The strength of the least squares from which a hard margin sets out, over the mean square of the rows.
FIRST = 30.0


def operations(problem: Problem) -> float:
    """Multiplications per step."""
    rows = problem.rows
    if rows.d > rows.n:
        return rows.n**3 / 3 + rows.n**2
    dense, pairs = rows.n * rows.d**2 / 2, 10 * rows.nonzeros**2 / rows.n
    return min(dense, pairs) + rows.d**3 / 3


def interior_point(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates until the caller is content or nothing can be gained; small problems, to machine precision.

    Only Newton's method makes use of a start, and of the seed, where it takes the curvature of some rows, or sets out
    from their optimum; the steps to that, which are short, are not counted.
    """
    if problem.loss.kink == 0:  # a loss that is 0 at margin 0 is minimised there
        yield Iterate(np.zeros(problem.rows.d), 0.0, np.zeros(problem.rows.n), 0.0, 0.0, 0.0, problem.rows.n, 1)
        return
    refuse_if_too_large("interior_point", min(problem.rows.n, problem.rows.d))
    small = operations(problem) <= SMALL
    system = normal_equations(problem, seed)
    tol = min(tol, PRECISE) if small else tol
    steps = 0
    if problem.loss.smooth and not problem.hard:
        # Rows in parts are read for whatever is computed of them.
        most = SLOW if problem.loss.name == "squared_hinge" else np.inf
        whole = small or len(problem.rows.parts) > 1
        if start is None and isinstance(system, Tall) and not whole:
            start = start_from_some_rows(problem, system)
        for iterate in newton(problem, system, tol, start, whole=whole, most=most):
            steps = iterate.iterations
            yield iterate
    if not problem.loss.smooth or problem.hard or problem.loss.name == "squared_hinge":
        yield from _predictor_corrector(problem, system, tol, steps)


def _dual(problem: Problem, alpha: Floats, implied: Floats, balance: float) -> float:
    """The dual at the feasible point next to α."""
    if balance == 0:
        return problem.dual(alpha, implied)
    feasible = problem.feasible(alpha)
    return problem.dual(feasible, problem.weights(feasible))


@dataclass
class _Point:
    """Where the predictor–corrector stands, or a step of it: over the rows that count."""

    w: Floats
    b: float
    alpha: Floats
    room: Floats  # c − α, kept apart: near the bound the difference would lose its digits; 1 for the hard margin
    s: Floats
    xi: Floats
    m: Floats

    def move(self, t: float, step: _Point) -> None:
        """Go t times the step from here."""
        self.w, self.b = self.w + t * step.w, self.b + t * step.b
        self.alpha += t * step.alpha
        self.room += t * step.room
        self.s += t * step.s
        self.xi += t * step.xi
        self.m += t * step.m

    def finite(self) -> bool:
        """Whether all of it is a number."""
        return all(np.isfinite(part).all() for part in (self.w, self.b, self.alpha, self.s, self.xi, self.m))

    def products(self, t: float = 0.0, step: _Point | None = None) -> float:
        """Σ αs + Σ (c − α)ξ, which is 0 at the optimum; t times the step from here, if there is one."""
        if step is None:
            return inner(self.alpha, self.s) + inner(self.room, self.xi)
        low = inner(self.alpha + t * step.alpha, self.s + t * step.s)
        return low + inner(self.room + t * step.room, self.xi + t * step.xi)


def _predictor_corrector(problem: Problem, system: NormalEquations, tol: float, done: int) -> Iterator[Iterate]:
    """Mehrotra's method, counting on from the steps that were `done` before."""
    y, n = problem.narrow(problem.y), problem.rows.n
    pairs, give = len(y) * (1 if _is_unbounded(problem) else 2), _give(problem)
    at, headway, iteration = _start(problem, system), Headway(tol), done
    best = at
    while True:
        iteration += 1
        alpha = problem.widen(at.alpha)
        implied, balance = problem.weights(alpha), inner(at.alpha, y) if problem.fit_intercept else 0.0
        mu = at.products() / pairs
        primal = problem.primal(at.w, problem.widen(at.m))
        dual = _dual(problem, alpha, implied, balance)
        if primal < dual:  # rounding has moved the margins that steps carry along; c times that may be much
            at.m = problem.narrow(problem.margins(at.w, at.b))
            primal = problem.primal(at.w, problem.widen(at.m))
        ended = headway.ended(primal, dual, mu)
        if tol > PRECISE:  # one point is enough, and saves memory: only at the limit of precision do they get worse
            best = at
        elif headway.claim <= headway.best:
            best = replace(at, **{name: getattr(at, name).copy() for name in ("alpha", "room", "s", "xi", "m")})
        if ended:
            yield _snapped(problem, best, headway, iteration)
            if headway.waited > PATIENCE or headway.best <= PRECISE:
                alpha = problem.widen(best.alpha)
                yield Iterate(best.w, best.b, alpha, *headway.seen, 0.0, n, iteration)
                return
            headway.tol /= 10  # snapping α cost too much: it costs less nearer to the optimum
        else:
            hopeless = problem.hard and iteration % 8 == 0 and problem.hulls_seem_to_meet(alpha, implied)
            yield Iterate(at.w, at.b, alpha, *headway.seen, np.inf, n, iteration, inseparable=hopeless)

        # A row whose α has reached its bound weighs nothing; a step that is no number is not taken.
        with np.errstate(over="ignore", invalid="ignore"):
            system.weigh(problem.widen(1 / (at.s / at.alpha + at.xi / at.room + give)))
        residual = at.w - implied, balance
        step = _step(problem, system, at, residual, np.zeros_like(y), np.zeros_like(y))
        target = mu * (at.products(_longest(at, step), step) / pairs / mu) ** 3
        low, high = target - step.alpha * step.s, target - step.room * step.xi
        del step
        step = _step(problem, system, at, residual, low, high)
        if not step.finite():  # the system has lost its last digits: no way on from here
            yield _snapped(problem, best, headway, iteration)
            yield Iterate(best.w, best.b, problem.widen(best.alpha), *headway.seen, headway.best, n, iteration)
            return
        at.move(min(1.0, 0.995 * _longest(at, step)), step)
        del step, low, high


def _step(
    problem: Problem, system: NormalEquations, at: _Point, residual: tuple[Floats, float], low: Floats, high: Floats
) -> _Point:
    """The step that brings αs to `low` and (c − α)ξ to `high`, to first order, and every residual to 0."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _unchecked_step(problem, system, at, residual, low, high)


def _unchecked_step(
    problem: Problem, system: NormalEquations, at: _Point, residual: tuple[Floats, float], low: Floats, high: Floats
) -> _Point:
    low -= at.alpha * at.s
    unbounded = _is_unbounded(problem)
    high = np.zeros_like(low) if unbounded else high - at.room * at.xi
    r = problem.loss.kink + at.s
    r -= at.xi
    r -= _give(problem) * at.alpha
    r -= at.m
    r += low / at.alpha
    r -= high / at.room
    dw, db, dalpha, dm = system.solve(problem.widen(r), *residual)
    dalpha, dm = problem.narrow(dalpha), problem.narrow(dm)
    low -= at.s * dalpha
    low /= at.alpha
    high += at.xi * dalpha
    high /= at.room
    return _Point(dw, db, dalpha, np.zeros_like(dalpha) if unbounded else -dalpha, low, high, dm)


def _is_unbounded(problem: Problem) -> bool:
    """Whether α has no upper bound, nor ξ a part of its own."""
    return problem.hard or problem.loss.smooth


def _give(problem: Problem) -> Floats | float:
    """ξ/α, by which the squared hinge gives way."""
    if problem.hard or not problem.loss.smooth:
        return 0.0
    with np.errstate(over="ignore"):
        return 0.5 / problem.narrow(problem.c)


def _longest(at: _Point, step: _Point) -> float:
    """The longest part of the step that keeps α, c − α, s and ξ from falling below 0."""
    falls = [(at.alpha, step.alpha), (at.room, step.room), (at.s, step.s), (at.xi, step.xi)]
    return 1 / max(1e-10, *(-float((change / value).min()) for value, change in falls if value.any()))


def _start(problem: Problem, system: NormalEquations) -> _Point:
    """The w and b of weighted least squares, slacks that hold its margins with room to spare, α where μ is even.

    Or a multiple of that α, if there are more columns than rows.
    """
    c, kink, n = problem.narrow(problem.c), problem.loss.kink, problem.rows.n
    unbounded = _is_unbounded(problem)
    if unbounded:  # of the size that the rows ask for: least squares of their scale, whatever that is
        c = np.full_like(c, FIRST / max(problem.spread, 1e-150) ** 2)
    system.weigh(problem.widen(c))
    w, b, _, m = system.solve(np.ones(n), np.zeros(problem.rows.d), 0.0)
    m = problem.narrow(m)
    spare = float(np.abs(m - kink).mean()) + 1e-2
    s = np.maximum(m - kink, 0.0) + spare
    if unbounded:
        total = inner(w, w) if w.any() else 1 / max(problem.spread, 1e-150) ** 2  # Σ α = ‖w‖² at the optimum
        return _Point(w, b, np.full_like(s, total / len(s)), np.ones_like(s), s, np.zeros_like(s), m)
    xi = np.maximum(kink - m, 0.0) + spare
    alpha, room = c * xi / (s + xi), c * s / (s + xi)
    if problem.rows.d > n:  # where classes can be separated as a rule, and most α are far from c
        far = problem.weights(problem.widen(alpha))
        square, total = inner(far, far), kink * float(alpha.sum())
        if total < square < np.inf:  # the dual is largest at this multiple, but for the balance
            alpha *= total / square
            room = c - alpha
    return _Point(w, b, alpha, room, s, xi, m)


def _snapped(problem: Problem, at: _Point, headway: Headway, iteration: int) -> Iterate:
    """The iterate with α exactly 0 or c where complementarity says so and, on small problems, the rest exact too."""
    c = problem.narrow(problem.c)
    unbounded = _is_unbounded(problem)
    scale = at.alpha.max() if unbounded else c
    at_zero = at.alpha / scale < at.s
    at_bound = np.zeros_like(at_zero) if unbounded else at.room / scale < at.xi
    alpha = np.where(at_zero, 0.0, np.where(at_bound, c, at.alpha))
    w, b, claim = at.w, at.b, headway.best
    exact = headway.tol <= PRECISE and (problem.hard or not problem.loss.smooth)
    polished = _polished(problem, at, alpha, ~at_zero & ~at_bound) if exact else None
    if polished is not None:
        (w, b, alpha), claim = polished, 0.0
    return Iterate(w, b, problem.widen(alpha), *headway.seen, claim, problem.rows.n, iteration)


def _polished(
    problem: Problem, at: _Point, alpha: Floats, on_margin: NDArray[np.bool_]
) -> tuple[Floats, float, Floats] | None:
    """With the rows on the margin known, optimality is a linear system: m = kink there, and Σ αᵢyᵢ = 0.

    Solved for the smallest change of α, since α need not be unique, and refined. None if that did not satisfy all
    conditions better than the point it began with.
    """
    y, c, kink = problem.narrow(problem.y), problem.narrow(problem.c), problem.loss.kink
    chosen = np.flatnonzero(on_margin)
    if not 0 < len(chosen) <= min(MOST_POLISHED, TIES * (problem.rows.d + 1)):
        return None
    x = problem.rows.take(problem.live[chosen]) * y[chosen, None]
    border = y[chosen, None] if problem.fit_intercept else np.zeros((len(chosen), 0))
    corner = np.zeros((border.shape[1],) * 2)
    matrix = np.block([[x @ x.T, border], [border.T, corner]])
    inverse = np.linalg.pinv(matrix, rcond=1e-13, hermitian=True)
    polished, b = alpha.copy(), at.b
    for _ in range(4):
        w = problem.weights(problem.widen(polished))
        miss = kink - (x @ w + b * y[chosen])
        change = inverse @ (np.append(miss, -inner(polished, y)) if problem.fit_intercept else miss)
        polished[chosen] += change[: len(chosen)]
        b += float(change[-1]) if problem.fit_intercept else 0.0
    np.clip(polished, 0.0, c, out=polished)
    w = problem.weights(problem.widen(polished))

    def violation(w: Floats, b: float, alpha: Floats) -> float:
        m = problem.narrow(problem.margins(w, b)) - kink
        return float(np.maximum(np.where(alpha < c, -m, 0.0), np.where(alpha > 0, m, 0.0)).max())

    better = violation(w, b, polished) <= violation(at.w, at.b, alpha)
    return (w, b, polished) if better else None

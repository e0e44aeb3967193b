"""Newton's method with all second-order information: few, expensive steps, whatever the scaling and whatever C.

For tall data (n·d² per step) and for wide data (n³ per step). One linear system, two rules for the steps:

- hinge, perceptron and the hard margin: Mehrotra's predictor–corrector on the primal–dual conditions
      w = Σ αᵢyᵢxᵢ,  Σ αᵢyᵢ = 0,  mᵢ = kink + sᵢ − ξᵢ,  αᵢsᵢ = μ,  (cᵢ − αᵢ)ξᵢ = μ,  μ → 0;
  cᵢ = ∞ leaves ξ out. Ferris and Munson 2002; Gertz and Wright 2003.
- smooth losses need no barrier: αᵢ = −cᵢφ′(mᵢ), and the step is Newton's on the primal with an exact line search.
  Keerthi and DeCoste 2005; Chapelle 2007.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.normal_equations import NormalEquations, normal_equations

Floats = NDArray[np.float64]

#: Up to this many multiplications per step, machine precision costs nothing that anyone would notice.
SMALL = 1e7
#: The relative gap beyond which rounding decides.
PRECISE = 1e-13
#: Steps without progress after which there will be none.
PATIENCE = 8


def operations(problem: Problem) -> float:
    """Multiplications per step."""
    rows = problem.rows
    if rows.d > rows.n:
        return rows.n**3 / 3 + rows.n**2
    dense, pairs = rows.n * rows.d**2 / 2, 10 * rows.nonzeros**2 / rows.n
    return min(dense, pairs) + rows.d**3 / 3


def interior_point(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates until the caller is content or nothing can be gained; small problems, to machine precision.

    Nothing is drawn at random, and no start is better than its own: `seed` and `start` are there for the sake of a
    common signature.
    """
    if problem.loss.kink == 0:  # a loss that is 0 at margin 0 is minimised there
        yield Iterate(np.zeros(problem.rows.d), 0.0, np.zeros(problem.rows.n), 0.0, 0.0, 0.0, problem.rows.n, 1)
        return
    small = operations(problem) <= SMALL
    system = normal_equations(problem)
    steps = _newton if problem.loss.smooth and not problem.hard else _predictor_corrector
    yield from steps(problem, system, min(tol, PRECISE) if small else tol)


class _Progress:
    """The relative gap, and whether waiting for a smaller one is still worth while.

    Far from the optimum the gap may rise while the iterates improve: there, `measure` falling is progress enough.
    """

    def __init__(self, tol: float) -> None:
        self.tol, self.best, self.measure, self.waited = tol, np.inf, np.inf, 0
        self.seen = np.inf, -np.inf

    def ended(self, primal: float, dual: float, measure: float) -> bool:
        self.seen = primal, dual
        self.claim = abs(primal - dual) / dual if dual > 0 else np.inf if primal != dual else 0.0
        falls = self.claim < 0.9 * self.best or (self.best > 1e-9 and measure < 0.999 * self.measure)
        self.waited = 0 if falls else self.waited + 1
        self.best, self.measure = min(self.best, self.claim), min(self.measure, measure)
        return self.claim <= self.tol or self.waited > PATIENCE


def _dual(problem: Problem, alpha: Floats, implied: Floats, balance: float) -> float:
    """The dual at the feasible point next to α."""
    if balance == 0:
        return problem.dual(alpha, implied)
    feasible = problem.feasible(alpha)
    return problem.dual(feasible, problem.weights(feasible))


def _newton(problem: Problem, system: NormalEquations, tol: float) -> Iterator[Iterate]:
    loss, y, c, n = problem.loss, problem.y, problem.c, problem.rows.n
    w, b = np.zeros(problem.rows.d), problem.best_bias(np.zeros(n))
    m, progress, iteration = y * b, _Progress(tol), 0
    while True:
        iteration += 1
        alpha = -c * loss.slope(m)
        implied, balance = problem.weights(alpha), inner(alpha, y) if problem.fit_intercept else 0.0
        primal = problem.primal(w, m)
        ended = progress.ended(primal, _dual(problem, alpha, implied, balance), primal)
        yield Iterate(w, b, alpha, *progress.seen, progress.claim if ended else np.inf, n, iteration)
        if ended:
            return
        system.weigh(c * loss.curvature(m))
        step = system.solve(np.zeros(n), w - implied, balance)
        t = _line_search(problem, w, m, step.w, step.m)
        w, b, m = w + t * step.w, b + t * step.b, m + t * step.m


def _line_search(problem: Problem, w: Floats, m: Floats, dw: Floats, dm: Floats) -> float:
    """The root t of the objective's slope along the step, which only rises: Newton's method inside a bracket."""
    loss, c = problem.loss, problem.c
    linear, quadratic = inner(w, dw), inner(dw, dw)
    start = linear + inner(c * loss.slope(m), dm)
    t, low, high = 1.0, 0.0, np.inf
    for _ in range(60):
        at = m + t * dm
        slope = linear + t * quadratic + inner(c * loss.slope(at), dm)
        if abs(slope) <= 0.01 * abs(start):
            break
        low, high = (t, high) if slope < 0 else (low, t)
        bend = quadratic + inner(c * loss.curvature(at), dm**2)
        t -= slope / bend if bend > 0 else -np.inf
        if not low < t < high:
            t = (low + high) / 2 if np.isfinite(high) else 2 * low
    return t


class _Point(NamedTuple):
    """Where the predictor–corrector stands, or a step of it: over the rows that count."""

    w: Floats
    b: float
    alpha: Floats
    room: Floats  # c − α, kept apart: near the bound the difference would lose its digits
    s: Floats
    xi: Floats
    m: Floats

    def moved(self, t: float, step: _Point) -> _Point:
        """The point that lies t times the step from here."""
        return _Point(
            self.w + t * step.w,
            self.b + t * step.b,
            self.alpha + t * step.alpha,
            self.room + t * step.room,
            self.s + t * step.s,
            self.xi + t * step.xi,
            self.m + t * step.m,
        )


def _predictor_corrector(problem: Problem, system: NormalEquations, tol: float) -> Iterator[Iterate]:
    c, y, n = problem.c[problem.live], problem.y[problem.live], problem.rows.n
    pairs = len(c) * (1 if problem.hard else 2)
    at, progress, iteration = _start(problem, system), _Progress(tol), 0
    best = at
    while True:
        iteration += 1
        alpha = _spread(problem, at.alpha)
        implied, balance = problem.weights(alpha), inner(at.alpha, y) if problem.fit_intercept else 0.0
        mu = _complementarity(problem, at) / pairs
        primal = problem.primal(at.w, _spread(problem, at.m))
        ended = progress.ended(primal, _dual(problem, alpha, implied, balance), mu)
        if progress.claim <= progress.best:
            best = at
        if ended:
            yield _snapped(problem, best, progress, iteration)
            if progress.waited > PATIENCE or progress.best <= PRECISE:
                alpha = _spread(problem, best.alpha)
                yield Iterate(best.w, best.b, alpha, *progress.seen, progress.best, n, iteration)
                return
            progress.tol /= 10  # snapping α cost too much: it costs less nearer to the optimum
        else:
            hopeless = problem.hard and iteration % 8 == 0 and problem.hulls_seem_to_meet(alpha, implied)
            yield Iterate(at.w, at.b, alpha, *progress.seen, np.inf, n, iteration, inseparable=hopeless)

        system.weigh(_spread(problem, 1 / (at.s / at.alpha + at.xi / at.room)))
        residual = at.w - implied, balance
        guess = _step(problem, system, at, residual, np.zeros_like(c), np.zeros_like(c))
        ahead = at.moved(_longest(at, guess), guess)
        target = mu * (_complementarity(problem, ahead) / pairs / mu) ** 3
        low, high = target - guess.alpha * guess.s, target + guess.alpha * guess.xi
        step = _step(problem, system, at, residual, low, high)
        at = at.moved(min(1.0, 0.995 * _longest(at, step)), step)
        if not (np.isfinite(at.w).all() and np.isfinite(at.b)):
            at, progress.waited = best, PATIENCE


def _complementarity(problem: Problem, at: _Point) -> float:
    """Σ αs + Σ (c − α)ξ, which is 0 at the optimum."""
    return inner(at.alpha, at.s) + (0.0 if problem.hard else inner(at.room, at.xi))


def _step(
    problem: Problem, system: NormalEquations, at: _Point, residual: tuple[Floats, float], low: Floats, high: Floats
) -> _Point:
    """The step that brings αs to `low` and (c − α)ξ to `high`, to first order, and every residual to 0."""
    d_low = low - at.alpha * at.s
    d_high = np.zeros_like(low) if problem.hard else high - at.room * at.xi
    r = problem.loss.kink + at.s - at.xi - at.m + d_low / at.alpha - d_high / at.room
    dw, db, dalpha, dm = system.solve(_spread(problem, r), *residual)
    dalpha, dm = dalpha[problem.live], dm[problem.live]
    ds, dxi = (d_low - at.s * dalpha) / at.alpha, (d_high + at.xi * dalpha) / at.room
    return _Point(dw, db, dalpha, -dalpha, ds, dxi, dm)


def _spread(problem: Problem, values: Floats) -> Floats:
    """Values of the rows that count, with 0 for the others."""
    if len(values) == problem.rows.n:
        return values
    spread = np.zeros(problem.rows.n)
    spread[problem.live] = values
    return spread


def _longest(at: _Point, step: _Point) -> float:
    """The longest part of the step that keeps α, c − α, s and ξ from falling below 0."""
    falls = [(at.alpha, step.alpha), (at.room, step.room), (at.s, step.s), (at.xi, step.xi)]
    return 1 / max(1e-10, *(float((-change / value).max()) for value, change in falls if value.any()))


def _start(problem: Problem, system: NormalEquations) -> _Point:
    """The w and b of weighted least squares, slacks that hold its margins with room to spare, α where μ is even."""
    live, n = problem.live, problem.rows.n
    c, kink = problem.c[live], problem.loss.kink
    system.weigh(_spread(problem, np.ones(len(live)) if problem.hard else c))
    w, b, _, m = system.solve(np.ones(n), np.zeros(problem.rows.d), 0.0)
    m = m[live]
    spare = float(np.abs(m - kink).mean()) + 1e-2
    s = np.maximum(m - kink, 0.0) + spare
    if problem.hard:
        return _Point(w, b, np.full_like(s, 1 / len(s)), c, s, np.zeros_like(s), m)
    xi = np.maximum(kink - m, 0.0) + spare
    return _Point(w, b, c * xi / (s + xi), c * s / (s + xi), s, xi, m)


def _snapped(problem: Problem, at: _Point, progress: _Progress, iteration: int) -> Iterate:
    """The iterate with α exactly 0 or c where complementarity says so and, on small problems, the rest exact too."""
    scale = at.alpha.max() if problem.hard else problem.c[problem.live]
    at_zero = at.alpha / scale < at.s
    at_bound = np.zeros_like(at_zero) if problem.hard else at.room / scale < at.xi
    alpha = np.where(at_zero, 0.0, np.where(at_bound, problem.c[problem.live], at.alpha))
    w, b, claim = at.w, at.b, progress.best
    polished = _polished(problem, at, alpha, ~at_zero & ~at_bound) if progress.tol <= PRECISE else None
    if polished is not None:
        (w, b, alpha), claim = polished, 0.0
    return Iterate(w, b, _spread(problem, alpha), *progress.seen, claim, problem.rows.n, iteration)


def _polished(
    problem: Problem, at: _Point, alpha: Floats, on_margin: NDArray[np.bool_]
) -> tuple[Floats, float, Floats] | None:
    """With the rows on the margin known, optimality is a linear system: m = kink there, and Σ αᵢyᵢ = 0.

    Solved for the smallest change of α, since α need not be unique, and refined. None if that did not satisfy all
    conditions better than the point it began with.
    """
    live, kink = problem.live, problem.loss.kink
    y, c = problem.y[live], problem.c[live]
    chosen = np.flatnonzero(on_margin)
    if not 0 < len(chosen) <= 2000:
        return None
    x = problem.rows.take(live[chosen]) * y[chosen, None]
    border = y[chosen, None] if problem.fit_intercept else np.zeros((len(chosen), 0))
    corner = np.zeros((border.shape[1],) * 2)
    matrix = np.block([[x @ x.T, border], [border.T, corner]])
    inverse = np.linalg.pinv(matrix, rcond=1e-13, hermitian=True)
    polished, b = alpha.copy(), at.b
    for _ in range(4):
        w = problem.weights(_spread(problem, polished))
        miss = kink - (x @ w + b * y[chosen])
        change = inverse @ (np.append(miss, -inner(polished, y)) if problem.fit_intercept else miss)
        polished[chosen] += change[: len(chosen)]
        b += float(change[-1]) if problem.fit_intercept else 0.0
    np.clip(polished, 0.0, c, out=polished)
    w = problem.weights(_spread(problem, polished))

    def violation(w: Floats, b: float, alpha: Floats) -> float:
        m = problem.margins(w, b)[live] - kink
        return float(np.maximum(np.where(alpha < c, -m, 0.0), np.where(alpha > 0, m, 0.0)).max())

    better = violation(w, b, polished) <= violation(at.w, at.b, alpha)
    return (w, b, polished) if better else None

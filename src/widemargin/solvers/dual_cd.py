"""Dual coordinate descent: one αᵢ at a time, cheap passes, for data of any shape; the kernel is `dual_cd.hpp`.

Its passes fall from 16 rows' worth of memory order to a few active rows by shrinking. An unpenalised bias costs it
nothing extra: b is the multiplier of Σ αᵢyᵢ = 0, found by an augmented Lagrangian along with everything else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.problem import Problem
from widemargin.solvers.iterate import Iterate

Floats = NDArray[np.float64]


def dual_cd(
    problem: Problem, *, tol: float, seed: int, alpha: Floats | None = None, b: float | None = None,
    rho_scale: float = 10.0, shards: int = 1, rounds: int = 1, damping: float = 1.0
) -> Iterator[Iterate]:
    rows, y, c = problem.rows, problem.y, problem.c
    rng = np.random.default_rng(seed)
    norms = rows.square_norms()
    if alpha is None:
        alpha = np.zeros(rows.n) if problem.loss.name != "logistic" else c / 2
    else:
        alpha = np.clip(alpha, problem.loss.lower, problem.upper)
    w = problem.weights(alpha)
    s = float(alpha @ y)
    if b is None:
        b = problem.best_bias(np.zeros(rows.n))
    inverse_rho = 0.0
    if problem.fit_intercept:
        inverse_rho = float(norms[problem.live].mean()) / rho_scale
    active = problem.live.astype(np.int64)
    above, below = np.inf, -np.inf
    iteration = 0
    since = 0
    dual = 0.0
    while True:
        iteration += 1
        order = rng.permutation((len(active) + 15) // 16)
        s, gap, largest, smallest = _core.dual_cd_pass(
            problem.loss.name, rows.core, y, c, norms, alpha, w, b, s, inverse_rho, active, order,
            above, below, shards, rounds, damping, rows.threads)
        if problem.fit_intercept:
            b += s * inverse_rho
        whole = len(active) == len(problem.live)
        visited = len(active)
        active = active[active >= 0]
        since += visited
        if since >= len(problem.live):
            dual, since = problem.dual(alpha, w), 0
        claim = abs(gap) / abs(dual) if dual else np.inf
        above = largest if largest > 0 else np.inf
        below = smallest if smallest < 0 else -np.inf
        yield Iterate(w, b, alpha, claim, visited, iteration)
        if claim <= tol:
            active = problem.live.astype(np.int64)
            above, below = np.inf, -np.inf

"""The loop: a solver and a problem make a Fit, whose certificate no solver can reach.

Solvers are generators of iterates that claim a relative gap. This loop checks the claims that would do, and stops at
the first that is proved; what it watches in between serves the history and the progress line only, so that the answer
does not depend on the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import Certificate, certify, prove_inseparable
from widemargin.problem import Problem
from widemargin.solvers import SOLVERS, Iterate, Start

Floats = NDArray[np.float64]


class Record(NamedTuple):
    """One line of a fit's history."""

    iteration: int
    seconds: float
    primal: float
    dual: float
    gap: float
    active: int


@dataclass
class Fit:
    """Weights with their proof, and how they came about."""

    w: Floats
    b: float
    certificate: Certificate
    iterations: int
    history: list[Record] = field(repr=False)
    interrupted: bool = False

    @property
    def alpha(self) -> Floats:
        """The dual variables that the certificate vouches for."""
        return self.certificate.alpha


def fit(
    problem: Problem,
    *,
    solver: str = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    seed: int = 0,
    start: Start | None = None,
    watch: Callable[[int, float, float], None] | None = None,
) -> Fit:
    """Train until the relative gap is proved to be at most `tol`, or until the solver has nothing more to give.

    `watch` is called after each evaluation with the iteration, the seconds so far and the relative gap.
    """
    loop = _Loop(problem, tol, watch)
    if start is not None and loop.accept(_warm(problem, start), final=True):
        return loop.result()
    iterates = SOLVERS[solver](problem, tol=tol, seed=seed, start=start)
    last: Iterate | None = None
    try:
        for last in iterates:
            if loop.accept(last, final=last.claim <= tol):
                return loop.result()
            if max_iter is not None and last.iterations >= max_iter:
                break
    except KeyboardInterrupt:
        loop.interrupted = True
    if last is not None:
        loop.accept(last, final=True)
    return loop.result()


class _Loop:
    """Keeps the best proof, the history, and the share of time that goes into watching."""

    def __init__(self, problem: Problem, tol: float, watch: Callable[[int, float, float], None] | None) -> None:
        self.problem, self.tol, self.watch = problem, tol, watch
        self.began = time.perf_counter()
        self.watching = 0.0
        self.best: Fit | None = None
        self.history: list[Record] = []
        self.iterations = 0
        self.interrupted = False

    def accept(self, iterate: Iterate, *, final: bool) -> bool:
        """Whether this iterate is proved good enough. One that is not `final` is at most looked at."""
        self.iterations = iterate.iterations
        if iterate.inseparable:
            self._raise_if_inseparable(iterate)
        if not final:
            if self.watching <= 0.05 * (time.perf_counter() - self.began):
                self._proof(iterate)
            return False
        proof = self._proof(iterate)
        if self.best is None or proof.certificate.relative_gap <= self.best.certificate.relative_gap:
            self.best = proof
        return proof.certificate.relative_gap <= self.tol

    def _proof(self, iterate: Iterate) -> Fit:
        begin = time.perf_counter()
        b = self.problem.best_bias(self.problem.rows.scores(iterate.w))
        certificate = certify(self.problem, iterate.w, b, iterate.alpha)
        record = Record(
            iterate.iterations,
            begin - self.began,
            certificate.primal,
            certificate.dual,
            certificate.gap,
            iterate.active,
        )
        self.history.append(record)
        if self.watch is not None:
            self.watch(record.iteration, record.seconds, certificate.relative_gap)
        self.watching += time.perf_counter() - begin
        return Fit(iterate.w.copy(), b, certificate, iterate.iterations, self.history)

    def _raise_if_inseparable(self, iterate: Iterate) -> None:
        heavy = np.argsort(-iterate.alpha)[: 4 * self.problem.rows.d + 4]
        for candidates in (heavy, self.problem.live):
            proof = prove_inseparable(self.problem, candidates)
            if proof is not None:
                raise proof

    def result(self) -> Fit:
        assert self.best is not None
        self.best.iterations, self.best.interrupted = self.iterations, self.interrupted
        return self.best


def _warm(problem: Problem, start: Start) -> Iterate:
    alpha = problem.feasible(start.alpha)
    return Iterate(problem.weights(alpha), start.b, alpha, 0.0, problem.rows.n, 0)

"""Stochastic subgradient descent for every loss. The kernel is `sgd.hpp`.

min λ/2 ‖w‖² + (1/n) Σ gᵢφ(yᵢ(w·xᵢ + b)), which is our problem for λ = 1/Σcᵢ and gᵢ = cᵢ/mean(c). A step on row i:

    w ← (1 − ηₜλ) w − ηₜ gᵢφ′(mᵢ) yᵢxᵢ,    b ← b − ηₜ gᵢφ′(mᵢ) yᵢ,    ηₜ = rate/(t + offset)^power.

The rates of the lecture notes: fixed (power 0), 1/√t (power ½), 1/(λt) (power 1, rate 1/λ). The dual variable of a row
is the sum of its pulls, shrunk like w: w = Σ αᵢyᵢxᵢ at every step, and clipping α to its bounds gives a dual point to
prove a gap with. Bottou 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.lazy_weights import LazyWeights
from widemargin.solvers.sight import Sight

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: After this many passes over the rows the solver gives up.
PASSES = 300
#: Neighbouring rows that are visited together: a random row costs as much memory traffic as three in order.
BLOCK = 16
#: Weights of this size come from steps that diverge.
FAR = 1e100
#: The most steps whose rates are laid out at once.
CHUNK = 1 << 16


@dataclass(frozen=True)
class Sgd:
    """Passes over the rows in random order, with a rate that falls like rate/(t + offset)^power.

    Parameters
    ----------
    rate : float or None
        None is 1/λ = Σcᵢ, for which w forgets its beginning at the best speed if power is 1.
    power : float, from 0 to 1
        0 is a fixed rate, which ends in a neighbourhood of the optimum; ½ is 1/√t; 1 is 1/(λt).
    offset : float or None
        None is 0 if there is a rate; otherwise it makes the first step as long as the steepest row allows.
    average : bool
        Whether to answer with the mean of all w instead of the last.

    """

    rate: float | None = None
    power: float = 1.0
    offset: float | None = None
    average: bool = False
    name: ClassVar[str] = "sgd"

    def __post_init__(self) -> None:
        check_rate(self.rate, self.power, self.offset)
        check_switch("average", self.average)

    def __call__(self, problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
        """Iterates, one per pass."""
        rate, offset = schedule(problem, self.rate, self.offset, float(problem.norms[problem.live].max()))
        everyone, order = problem.live.astype(np.int64), np.random.default_rng(seed)
        draws = (shuffled_blocks(everyone, order) for _ in range(PASSES))
        yield from stochastic(problem, draws, rate=rate, power=self.power, offset=offset, average=self.average)


def check_rate(rate: float | None, power: float, offset: float | None) -> None:
    """Raises what is wrong with a schedule."""
    if not isinstance(power, Real) or not 0 <= power <= 1:
        raise ValueError(f"power={power!r}; it must lie between 0 (a fixed rate) and 1 (1/t)")
    if rate is None and power != 1:
        raise ValueError(f"rate=None is 1/λ, which goes with power=1; with power={power!r} give a rate > 0")
    if rate is not None and (not isinstance(rate, Real) or not 0 < rate < np.inf):
        raise ValueError(f"rate={rate!r}; it must be a finite number > 0, or None for 1/λ")
    if offset is not None and (not isinstance(offset, Real) or not 0 <= offset < np.inf):
        raise ValueError(f"offset={offset!r}; it must be a finite number ≥ 0, or None")


def check_switch(name: str, value: object) -> None:
    """Raises if this is neither on nor off."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r}; it must be True or False")


def schedule(problem: Problem, rate: float | None, offset: float | None, steepest: float) -> tuple[float, float]:
    """The rate and the offset where they were left open: 1/λ, and a first step as long as the loss allows."""
    inverse_lam = float(problem.c.sum())
    loss = problem.loss
    bend = 1.0 if not loss.smooth else 0.25 if np.isfinite(loss.upper) else 2.0
    if offset is None:
        offset = bend * steepest * inverse_lam if rate is None else 0.0
    return inverse_lam if rate is None else rate, offset


def shuffled_blocks(rows: Integers, order: np.random.Generator) -> Integers:
    """All rows in random order; of many rows, blocks of neighbours are kept together."""
    if len(rows) <= CHUNK:
        return rows[order.permutation(len(rows))]
    rows = np.roll(rows, order.integers(BLOCK))
    whole = len(rows) // BLOCK * BLOCK
    blocks = rows[:whole].reshape(-1, BLOCK)
    return np.concatenate([blocks[order.permutation(len(blocks))].ravel(), rows[whole:]])


def stochastic(
    problem: Problem,
    passes: Iterator[Integers],
    *,
    rate: float,
    power: float,
    offset: float,
    average: bool = False,
    batch: int = 1,
    radius: float = np.inf,
) -> Iterator[Iterate]:
    """Iterates, one per pass; the passes bring the rows to draw, in whole batches."""
    rows = problem.rows
    lam = 1 / float(problem.c.sum())
    equal = np.ptp(problem.c[problem.live]) == 0
    importance = np.zeros(0) if equal else problem.c * (len(problem.live) * lam)
    weights = LazyWeights(rows.d, duals=rows.n, average=average)
    sight = Sight(problem)
    for iteration, draws in enumerate(passes, 1):
        for begin in range(0, len(draws), CHUNK * batch):
            chunk = draws[begin : begin + CHUNK * batch]
            eta = rates(rate, power, offset, weights.steps, len(chunk) // batch)
            weights.sgd(
                problem.loss.name,
                rows,
                problem.y,
                chunk,
                eta,
                1 - eta * lam,
                importance=importance,
                batch=batch,
                bias=problem.fit_intercept,
                radius=radius,
                norms=problem.norms,
            )
        if not np.abs(weights.w).max() < FAR:
            raise ValueError(f"the steps diverged in pass {iteration}; use a smaller rate, or leave rate=None")
        yield sight.of(weights.w, weights.b, weights.alpha, iteration)


def rates(rate: float, power: float, offset: float, done: int, steps: int) -> Floats:
    """ηₜ of the next steps."""
    t = np.arange(done + 1, done + steps + 1, dtype=np.float64) + offset
    return np.asarray(rate / t**power)

"""Weights that shrink at no cost, their average and their dual variables. The kernels' side is `lazy_weights.hpp`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data import Rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_NOTHING = np.zeros(0)


class LazyWeights:
    """w and b on their way: what an online method keeps from one row to the next.

    w = scale·v, and α = scale·a where `duals` rows are followed: w = Σ αᵢyᵢxᵢ as long as w began at 0.
    """

    def __init__(
        self, d: int, *, duals: int = 0, average: bool = False, start: Floats | None = None, bias: float = 0.0
    ) -> None:
        self.v = np.zeros(d) if start is None else np.array(start, dtype=np.float64)
        self.v_missed = np.zeros(d) if average else _NOTHING
        self.a = np.zeros(duals)
        self.a_missed = np.zeros(duals) if average else _NOTHING
        self.numbers = np.array([1.0, 0.0, bias, 0.0])  # scale, mass, b, the sum of b
        self.steps = 0

    def sgd(
        self,
        rule: str,
        rows: Rows,
        y: Floats,
        draws: Integers,
        eta: Floats,
        shrink: Floats,
        *,
        importance: Floats = _NOTHING,
        batch: int = 1,
        bias: bool = False,
        radius: float = np.inf,
        norms: Floats = _NOTHING,
    ) -> int:
        """Stochastic subgradient steps on these draws; returns how many rows moved w. See `sgd.hpp`.

        A finite radius needs the rows' `norms`, ‖x‖².
        """
        self.steps += len(eta)
        return _core.sgd_steps(
            rule,
            rows.core,
            y,
            importance,
            self.v,
            self.v_missed,
            self.a,
            self.a_missed,
            self.numbers,
            draws,
            eta,
            shrink,
            batch,
            bias,
            radius,
            norms,
        )

    def mira(self, rows: Rows, y: Floats, draws: Integers, *, batch: int, bias: bool, p: float, limit: float) -> int:
        """MIRA's steps on these draws; returns how many rows had a margin of at most p. See `mira.hpp`."""
        self.steps += len(draws) // batch
        state = self.v, self.v_missed, self.numbers
        return _core.mira_steps(rows.core, y, *state, draws, batch, bias, p, limit)

    @property
    def w(self) -> Floats:
        """The last w, or the mean of all so far."""
        return self._now(self.v, self.v_missed)

    @property
    def alpha(self) -> Floats:
        """The dual variables of that w."""
        return self._now(self.a, self.a_missed)

    @property
    def b(self) -> float:
        """The bias that belongs to that w."""
        return float(self.numbers[3] / self.steps if self._averages else self.numbers[2])

    @property
    def _averages(self) -> bool:
        return len(self.v_missed) > 0 and self.steps > 0

    def _now(self, x: Floats, missed: Floats) -> Floats:
        if self._averages:
            return np.asarray((self.numbers[1] * x - missed) / self.steps)
        return np.asarray(self.numbers[0] * x)

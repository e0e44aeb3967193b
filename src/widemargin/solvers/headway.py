"""Whether a method of second order still makes headway: what its relative gap is, and when to wait no longer."""

from __future__ import annotations

import numpy as np

#: The relative gap beyond which rounding decides.
PRECISE = 1e-13
#: Steps without progress after which there will be none.
PATIENCE = 8
#: Steps that the hard margin may take until it separates the classes.
FEASIBLE = 100


class Headway:
    """The relative gap, and whether waiting for a smaller one is still worth while.

    Far from the optimum the gap may rise while the iterates improve: there, `measure` falling is progress enough.
    """

    def __init__(self, tol: float) -> None:
        self.tol, self.best, self.measure, self.waited = tol, np.inf, np.inf, 0
        self.seen, self.steps = (np.inf, -np.inf), 0

    def ended(self, primal: float, dual: float, measure: float) -> bool:
        """Whether there is nothing left to wait for; `claim` is the relative gap then, as always."""
        self.seen = primal, dual
        self.claim = abs(primal - dual) / dual if dual > 0 else np.inf if primal != dual else 0.0
        self.steps += 1
        lower = measure < 0.999 * self.measure  # than when it last counted as a fall: small ones add up
        falls = self.claim < 0.9 * self.best or (self.best > 1e-9 and lower)
        self.waited = 0 if falls or (np.isinf(primal) and self.steps < FEASIBLE) else self.waited + 1
        self.best, self.measure = min(self.best, self.claim), measure if lower else self.measure
        return self.claim <= self.tol or self.waited > PATIENCE

"""What a solver begins with and what it hands over after an iteration, or several short ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Numbers, strings, arrays and such dictionaries by name.
State = dict[str, Any]


class Start(NamedTuple):
    """A dual point, a bias and, where they are known, weights to begin at."""

    alpha: Floats
    b: float
    w: Floats | None = None
    #: Whether it may be good enough already, so that it is worth a proof.
    hopeful: bool = True
    #: How many it took to come there, and how long.
    iterations: int = 0
    seconds: float = 0.0
    #: What an iterate's `state` returned: the solver goes on from there as if it had never stopped.
    state: State | None = None


@dataclass
class Iterate:
    """A primal and a dual point, and what the solver thinks of them.

    A solver is a generator of these. It may reuse the arrays once it is resumed. `claim` is the relative gap that it
    believes to have reached, or ∞ if it would rather go on; the caller checks a claim that would do, and resumes the
    solver if the proof refuses it. `primal` and `dual` are what the solver saw on its way: for the record, not proved.
    `active` is how many rows are still in play, `visits` how often it looked at one since the last iterate.
    """

    w: Floats
    b: float
    alpha: Floats
    primal: float
    dual: float
    claim: float
    active: int
    iterations: int
    visits: int = 0
    #: The hard margin looks impossible: the classes seem to have a point in common.
    inseparable: bool = False
    #: The hyperplane has every row on its right side, where there is no penalty to keep w from growing for ever.
    separates: bool = False
    #: Those that come will be hardly worse: a proof that is not going to succeed need not be finished.
    improving: bool = False
    #: How many iterations the caller would take at once from here on; he may set it before he resumes the solver.
    at_once: int = 1
    #: Given `at_once`, all that the solver needs to go on from here, in another process if need be; None if it can only
    #: begin anew.
    state: Callable[[int], State] | None = None

"""What every algorithm of the textbook hands over after each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Step(NamedTuple):
    """The whole state after step t. The arrays are copies: the caller may keep or change them."""

    #: steps taken so far: 1, 2, …
    t: int
    #: the example or coordinate used, or several of them; None for a step over all examples
    i: int | tuple[int, ...] | None
    #: what the algorithm would return if it stopped now; empty with a kernel, where `alpha` stands for it
    w: Floats
    #: 0 where there is no bias
    b: float
    #: the dual variables, where the algorithm has them
    alpha: Floats | None
    #: the step size just used; nan where there is none
    eta: float
    #: the algorithm's own objective at (w, b), or at α for a dual method
    objective: float

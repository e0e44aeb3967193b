"""LOSS: φ(m) of the margin m = y(w·x + b), its derivatives, its conjugate, and what optimality asks of it.

Written in NumPy, one class of pure functions per loss; `losses.hpp` holds the same formulas for the kernels, and the
tests hold the two equal. The dual variable appears as a = α/c, in units of its row's strength, so that the dual of
min ½‖w‖² + Σ cᵢφ(mᵢ) is max −½‖Σ αᵢyᵢxᵢ‖² − Σ cᵢφ*(−aᵢ).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A set of slopes, its ends included."""

    low: float
    high: float

    def __contains__(self, slope: object) -> bool:
        return isinstance(slope, Real) and self.low <= float(slope) <= self.high

    def __repr__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"


class Loss(ABC):
    """A convex function of the margin. At optimality −a is a slope of φ at m, for every row."""

    name: str
    #: a may be anything between these; outside, the conjugate is infinite.
    lower: float = 0.0
    upper: float = np.inf
    #: φ is 0 from here on, which is where α = 0; ∞ for losses that never are.
    kink: float = np.inf
    #: whether φ has one slope everywhere, so that α = −cφ′(m) follows from the margin.
    smooth: bool = True

    @staticmethod
    @abstractmethod
    def value(m: Floats) -> Floats:
        """φ(m)."""

    @staticmethod
    @abstractmethod
    def slope(m: Floats) -> Floats:
        """φ′(m); at a kink, the end of the interval of slopes that is nearer to 0."""

    @classmethod
    def subdifferential(cls, m: float) -> Interval:
        """Every slope of a line through (m, φ(m)) that stays below φ: one number except at a kink.

        >>> hinge.subdifferential(1.0), hinge.subdifferential(0.0)
        ([-1, 0], [-1, -1])
        """
        slope = float(cls.slope(np.array([m]))[0])
        return Interval(slope, slope)

    @staticmethod
    def curvature(m: Floats) -> Floats:
        """φ″(m), from the right where it jumps."""
        raise NotImplementedError

    @classmethod
    def conjugate(cls, a: Floats) -> Floats:
        """φ*(−a) = sup over m of −am − φ(m)."""
        inside = (a >= cls.lower) & (a <= cls.upper)
        return np.where(inside, cls._conjugate(np.where(inside, a, 0.0)), np.inf)

    @staticmethod
    @abstractmethod
    def _conjugate(a: Floats) -> Floats:
        """φ*(−a) for a inside its bounds."""

    @classmethod
    def kkt_violation(cls, m: Floats, a: Floats) -> Floats:
        """How far (m, a) is from optimality: 0 where −a is a slope of φ at m."""
        return np.abs(a + cls.slope(m))


class _Box(Loss):
    """φ(m) = max(0, kink − m): a lies in [0, 1] and its place there says on which side of the kink m must lie."""

    upper = 1.0
    smooth = False

    @classmethod
    def subdifferential(cls, m: float) -> Interval:
        """[−1, 0] at the kink, one number elsewhere."""
        return Interval(-1.0, 0.0) if m == cls.kink else super().subdifferential(m)

    @classmethod
    def kkt_violation(cls, m: Floats, a: Floats) -> Floats:
        """How far m is from where a wants it: at most the kink where a > 0, at least the kink where a < 1."""
        beyond = m - cls.kink
        return np.maximum(np.where(a < 1, -beyond, 0.0), np.where(a > 0, beyond, 0.0)).clip(0.0)


class Hinge(_Box):
    """φ(m) = max(0, 1 − m). At m = 1 the slope is 0."""

    name = "hinge"
    kink = 1.0

    @staticmethod
    def value(m: Floats) -> Floats:
        return np.maximum(0.0, 1 - m)

    @staticmethod
    def slope(m: Floats) -> Floats:
        return np.where(m < 1, -1.0, 0.0)

    @staticmethod
    def _conjugate(a: Floats) -> Floats:
        return -a


class Perceptron(_Box):
    """φ(m) = max(0, −m). At m = 0 the slope is 0."""

    name = "perceptron"
    kink = 0.0

    @staticmethod
    def value(m: Floats) -> Floats:
        return np.maximum(0.0, -m)

    @staticmethod
    def slope(m: Floats) -> Floats:
        return np.where(m < 0, -1.0, 0.0)

    @staticmethod
    def _conjugate(a: Floats) -> Floats:
        return np.zeros_like(a)


class SquaredHinge(Loss):
    """φ(m) = max(0, 1 − m)². Smooth; its curvature jumps at m = 1."""

    name = "squared_hinge"
    kink = 1.0

    @staticmethod
    def value(m: Floats) -> Floats:
        return np.maximum(0.0, 1 - m) ** 2

    @staticmethod
    def slope(m: Floats) -> Floats:
        return -2 * np.maximum(0.0, 1 - m)

    @staticmethod
    def curvature(m: Floats) -> Floats:
        return np.where(m < 1, 2.0, 0.0)

    @staticmethod
    def _conjugate(a: Floats) -> Floats:
        return a * (a / 4 - 1)


class Squared(Loss):
    """φ(m) = (1 − m)², which is (w·x + b − y)² for y = ±1."""

    name = "squared"
    lower = -np.inf

    @staticmethod
    def value(m: Floats) -> Floats:
        return (1 - m) ** 2

    @staticmethod
    def slope(m: Floats) -> Floats:
        return -2 * (1 - m)

    @staticmethod
    def curvature(m: Floats) -> Floats:
        return np.full_like(m, 2.0)

    @staticmethod
    def _conjugate(a: Floats) -> Floats:
        return a * (a / 4 - 1)


class Logistic(Loss):
    """φ(m) = log(1 + e^−m) = −log σ(m)."""

    name = "logistic"
    upper = 1.0

    @staticmethod
    def value(m: Floats) -> Floats:
        return np.logaddexp(0.0, -m)

    @staticmethod
    def slope(m: Floats) -> Floats:
        return -sigmoid(-m)

    @staticmethod
    def curvature(m: Floats) -> Floats:
        return sigmoid(m) * sigmoid(-m)

    @staticmethod
    def _conjugate(a: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a > 0, a * np.log(a), 0.0) + np.where(a < 1, (1 - a) * np.log1p(-a), 0.0)


def sigmoid(t: Floats) -> Floats:
    """σ(t) = 1/(1 + e^−t), without overflow and with full relative precision at both ends."""
    from scipy.special import expit  # slow to import, and the hinge does without it

    return np.asarray(expit(t), dtype=np.float64)


hinge, squared_hinge, logistic, squared, perceptron = Hinge(), SquaredHinge(), Logistic(), Squared(), Perceptron()

#: Every loss by its name; the kernels' list in `losses.hpp` has the same names.
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (hinge, squared_hinge, logistic, squared, perceptron)}

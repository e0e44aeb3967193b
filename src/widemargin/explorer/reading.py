"""What a request may say: points, labels and numbers, each checked, each refusal with its reason."""

from __future__ import annotations

import json
import math
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: More points than this are no longer a drawing.
MOST_POINTS = 2_000
#: Coordinates beyond this are no place on a board.
FARTHEST = 1e6


class RefusedError(ValueError):
    """A request that is not served, with the reason in words and HTTP's number for it."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


def shown(value: object) -> str:
    """A value as an error quotes it: short, and printable whatever it is."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def read_json(body: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    try:
        value = json.loads(body, parse_constant=_no_number)
    except RefusedError:
        raise
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"the body is no JSON: {shown(str(error))}; send an object as the page does") from None
    if not isinstance(value, dict):
        raise RefusedError(f"the body is {shown(value)}; send a JSON object with points and labels")
    return value


def _no_number(name: str) -> None:
    raise RefusedError(f"the body contains {name}; every number must be finite")


def read_points(body: dict[str, Any]) -> tuple[Floats, Floats]:
    """The points and their labels ±1."""
    points, labels = body.get("points"), body.get("labels")
    if not isinstance(points, list) or not isinstance(labels, list):
        raise RefusedError("points and labels must be lists: [[x, y], …] and [1, -1, …]")
    if len(points) > MOST_POINTS:
        raise RefusedError(f"{len(points):,} points; the page takes at most {MOST_POINTS:,}", 413)
    if len(points) != len(labels):
        raise RefusedError(f"{len(points)} points but {len(labels)} labels; give one label for each point")
    if not (_are_places(points) and all(type(label) is int and label in (1, -1) for label in labels)):
        _check_each(points, labels)
    return np.array(points, dtype=np.float64).reshape(-1, 2), np.array(labels, dtype=np.float64)


def _are_places(points: list[Any]) -> bool:
    """Whether all are pairs of numbers on the board, seen at once: this is done for every event of a drag."""
    if not all(type(point) is list and len(point) == 2 for point in points):
        return False
    values = list(chain.from_iterable(points))
    return set(map(type, values)) <= {int, float} and all(-FARTHEST <= value <= FARTHEST for value in values)


def _check_each(points: list[Any], labels: list[Any]) -> None:
    """Look at them one by one, and say what is wrong with the first that is none."""
    for k, (point, label) in enumerate(zip(points, labels, strict=True)):
        if not isinstance(point, list) or len(point) != 2:
            raise RefusedError(f"points[{k}] is {shown(point)}; a point is a pair [x, y]")
        for value in point:
            read_number(value, f"points[{k}]", -FARTHEST, FARTHEST)
        if isinstance(label, bool) or label not in (1, -1):
            raise RefusedError(f"labels[{k}] is {shown(label)}; a label is 1 or -1")


def read_number(value: Any, name: str, low: float, high: float) -> float:
    """A finite number from `low` to `high`."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        number = math.inf
    if not low <= number <= high:
        raise RefusedError(f"{name} is {shown(value)}; it must be a number from {low:g} to {high:g}")
    return number


def read_whole(value: Any, name: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise RefusedError(f"{name} is {shown(value)}; it must be a whole number from {low} to {high}")
    return value


def read_switch(value: Any, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise RefusedError(f"{name} is {shown(value)}; it must be true or false")
    return value


def read_choice(value: Any, name: str, choices: Any) -> str:
    """One of the names that can be chosen."""
    if not isinstance(value, str) or value not in choices:
        raise RefusedError(f"{name} is {shown(value)}; choose from {', '.join(choices)}")
    return value

"""Labels, numbers and options as they are written."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from widemargin.data.labels import text_of

__all__ = ["gamma", "in_options", "number", "positive", "text_of", "whole"]

#: How errors of the library name what is an option here.
OPTIONS = {"zero_based=True": "--zero-based", "zero_based=False": "--one-based", "label=": "--label"}


def positive(text: str) -> float:
    """An option's number above 0, which may be inf."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number > 0")
    return number


def number(text: str) -> float:
    """An option's finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def gamma(text: str) -> float | str:
    """An option's γ: a finite number above 0, or how it follows from the data."""
    if text in ("scale", "auto"):
        return text
    try:
        value = positive(text)
    except argparse.ArgumentTypeError:
        value = math.inf
    if math.isinf(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number > 0, scale or auto")
    return value


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """An option's whole number, at least so large, and at most."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            limit = f"≥ {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {limit}")
        return value

    return number


def in_options(message: str) -> str:
    """An error of the library, in the words of the command line."""
    for theirs, ours in OPTIONS.items():
        message = message.replace(theirs, ours)
    return message

"""Labels, numbers and options as they are written."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from widemargin.data.labels import text_of

__all__ = ["in_options", "positive", "text_of", "whole"]

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

"""Labels and numbers as they are written."""

from __future__ import annotations

from typing import Any


def text_of(label: Any) -> str:
    """A label as it stands in files: 1, not 1.0."""
    if not isinstance(label, float):
        return str(label)
    short = f"{label:g}"
    return short if float(short) == label else repr(label)

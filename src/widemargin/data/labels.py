"""A label as it is written."""

from __future__ import annotations

import numpy as np


def text_of(label: object) -> str:
    """A label as it stands in files: 1, not 1.0; two labels that differ have texts that differ."""
    if isinstance(label, float | np.floating) and float(label).is_integer() and abs(float(label)) < 1e16:
        return str(int(label))
    return str(label)

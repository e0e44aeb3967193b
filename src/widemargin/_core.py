"""The compiled kernels, in the build that suits this machine best."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

from widemargin import _core_v1

_NAME = "widemargin._core_v{}"


def _best() -> object:
    """The build for the highest x86-64 level that the machine runs; WIDEMARGIN_CPU_LEVEL asks for a lower one."""
    asked = os.environ.get("WIDEMARGIN_CPU_LEVEL") or "4"
    if asked not in ("1", "2", "3", "4"):
        raise ImportError(f"WIDEMARGIN_CPU_LEVEL={asked!r}; it must be a level of x86-64: 1, 2, 3 or 4")
    most = min(_core_v1.cpu_level(), int(asked))
    level = max(build for build in (1, 3, 4) if build == 1 or (build <= most and find_spec(_NAME.format(build))))
    return import_module(_NAME.format(level))


_build = _best()
globals().update({name: value for name, value in vars(_build).items() if not name.startswith("_")})

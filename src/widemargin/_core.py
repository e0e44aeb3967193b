"""The compiled kernels, in the build that suits this machine best."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from widemargin import _cpu

_NAME = "widemargin._core_v{}"
#: The levels of x86-64 that there are builds for.
_BUILDS = tuple(level for level in (1, 3, 4) if find_spec(_NAME.format(level)))


def _best() -> ModuleType:
    """The build for the highest x86-64 level that the machine runs; WIDEMARGIN_CPU_LEVEL asks for a lower one."""
    asked = os.environ.get("WIDEMARGIN_CPU_LEVEL") or "4"
    if asked not in ("1", "2", "3", "4"):
        raise ImportError(f"WIDEMARGIN_CPU_LEVEL={asked!r}; it must be a level of x86-64: 1, 2, 3 or 4")
    most = min(_cpu.level, int(asked))
    levels = [level for level in _BUILDS if level <= most]
    if not levels:
        raise ImportError(
            f"widemargin has compiled kernels for the x86-64 levels {_BUILDS}, and level {most} is wanted; build it on "
            "this machine (make clean demo), install a wheel, or unset WIDEMARGIN_CPU_LEVEL"
        )
    return import_module(_NAME.format(levels[-1]))


_build = _best()
globals().update({name: value for name, value in vars(_build).items() if not name.startswith("_")})

"""The compiled kernels, in the build that suits this machine best."""

from __future__ import annotations

import os
from importlib import import_module

from widemargin import _core_v1


def _best() -> object:
    """The highest x86-64 level that the machine runs; WIDEMARGIN_CPU_LEVEL=1 asks for a lower one."""
    level = min(_core_v1.cpu_level(), int(os.environ.get("WIDEMARGIN_CPU_LEVEL", "4")))
    return import_module(f"widemargin._core_v{level}")


_build = _best()
globals().update({name: value for name, value in vars(_build).items() if not name.startswith("_")})

"""How much memory something takes, as the system sees it."""

from __future__ import annotations

import math
from pathlib import Path


class PeakMemory:
    """The most memory this process had above what it began with, in MB; NaN where the system does not tell."""

    def __enter__(self) -> PeakMemory:
        try:
            Path("/proc/self/clear_refs").write_text("5")
            self.before = self._status("VmRSS")
        except OSError:
            self.before = math.nan
        return self

    def __exit__(self, *_: object) -> None:
        self.megabytes = math.nan if math.isnan(self.before) else (self._status("VmHWM") - self.before) * 1024 / 1e6

    def _status(self, name: str) -> float:
        lines = Path("/proc/self/status").read_text().splitlines()
        return float(next(line for line in lines if line.startswith(name)).split()[1])

"""Tables and progress; nothing moves where nobody looks."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from widemargin.progress import PATIENCE_SECONDS


def show(title: str, facts: Iterable[tuple[str, Any]]) -> None:
    """A column of names and one of values."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, _plain(value))
    _under(title, table)


def show_table(title: str, heads: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    """A table; numbers to the right."""
    from rich.table import Table

    lines = [list(line) for line in lines]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for k, head in enumerate(heads):
        numbers = all(
            not isinstance(line[k], str) or line[k][:1].isdigit() or line[k] in ("–", "inf") for line in lines
        )
        table.add_column(head, justify="right" if numbers and k else "left", overflow="fold")
    for line in lines:
        table.add_row(*map(_plain, line))
    _under(title, table)


def _under(title: str, table: Any) -> None:
    """A table under its title, which may be wider."""
    console = _console()
    console.print(_plain(title), style="bold")
    console.print(table)


def say(text: str = "") -> None:
    """A line or more of text."""
    print(text)


def note(text: str) -> None:
    """A remark beside the output."""
    print(f"widemargin: {text}", file=sys.stderr)


def show_json(value: Any) -> None:
    """One line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def _console() -> Any:
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:  # theirs ends the program with 1, which means something here
            raise BrokenPipeError

    return Ours(highlight=False, width=None if sys.stdout.isatty() else 110)


def _plain(value: Any) -> Any:
    from rich.text import Text

    if isinstance(value, float):
        value = f"{value:.6g}"
    elif isinstance(value, int) and not isinstance(value, bool):
        value = f"{value:,}"
    return Text(str(value))


@contextmanager
def reading_bar(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar of the bytes read: on a terminal, and from two seconds on."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
    task, began = bar.add_task(label), time.monotonic()

    def update(done: int, total: int) -> None:
        if not bar.live.is_started and time.monotonic() - began > PATIENCE_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total or None)

    try:
        yield update
    finally:
        bar.stop()

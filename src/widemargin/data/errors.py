"""What is said of a file that cannot be read or written: `file:line: what is wrong; what to do`."""

from __future__ import annotations


class DataError(ValueError):
    """A data file, or an option for one, is at fault. The message is one line; `source` and `line` say where."""

    def __init__(self, source: str, what: str, advice: str, *, line: int | None = None) -> None:
        self.source, self.what, self.advice, self.line = source, what, advice, line
        place = printable(source, 500) if line is None else f"{printable(source, 500)}:{line}"
        super().__init__(f"{place}: {what}; {advice}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.source, self.what, self.advice, self.line)


def _rebuild(source: str, what: str, advice: str, line: int | None) -> DataError:
    return DataError(source, what, advice, line=line)


def printable(text: str, most: int = 20) -> str:
    """Text for a message: on one line, without control characters, cut to `most` characters."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: most + 1])
    return shown if len(text) <= most and len(shown) <= 4 * most else shown[:most] + "…"


def quote(text: str | bytes) -> str:
    """A value from a file, in quotes, printable and cut to about 20 characters."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return f"'{printable(text)}'"


def because(error: OSError) -> tuple[str, str]:
    """What went wrong with a file, in the system's words, and what to do about it."""
    advice = {
        FileNotFoundError: "check the path",
        PermissionError: "ask for the right to read it, or copy it",
        IsADirectoryError: "name a file",
    }
    return (error.strerror or str(error) or type(error).__name__).lower(), advice.get(type(error), "check the disk")

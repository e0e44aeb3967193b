"""What is said of a file that cannot be read or written: `file:line: what is wrong; what to do`."""

from __future__ import annotations

import errno


class DataError(ValueError):
    """Data that cannot be used, or an option that means nothing to them: one line, `where: what; what to do`."""

    source: str = ""
    line: int | None = None
    what: str = ""
    advice: str = ""

    @classmethod
    def at(cls, source: str, what: str, advice: str, *, line: int | None = None) -> DataError:
        """The error of a file, with the line if it is known."""
        place = printable(source, 500) if line is None else f"{printable(source, 500)}:{line}"
        error = cls(f"{place}: {what}; {advice}")
        error.source, error.line, error.what, error.advice = source, line, what, advice
        return error


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
    if error.errno == errno.ENOMEM:
        return "not enough memory for it", "free some, or allow the process more"
    advice = {
        FileNotFoundError: "check the path",
        PermissionError: "ask for the right to read it, or copy it",
        IsADirectoryError: "name a file",
        NotADirectoryError: "check the path",
        FileExistsError: "choose another name",
    }
    return (error.strerror or str(error) or type(error).__name__).lower(), advice.get(type(error), "check the disk")

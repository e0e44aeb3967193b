"""The state of a training run on disk: another process goes on from it and ends with the same bits.

One file, written aside and renamed, so that at any moment it is whole. A state is a dictionary of numbers, strings,
arrays and such dictionaries or lists; arrays become members of an uncompressed .npz file, whose checksums are verified
when it is read, and everything else becomes JSON.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.whole_files import written_aside

State = dict[str, Any]

#: The name of the file, and what it says of its format.
NAME, VERSION = "state.npz", 4
#: What a damaged file may raise.
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, RecursionError)

#: What some parts of a run's description are called in messages.
WORDS = {"bytes": "data of so many bytes:", "changed": "data last changed at"}


class CheckpointError(ValueError):
    """A state that cannot be used; one line that says why and what to do."""


class Stopped(Exception):  # noqa: N818  # not an error: what was asked for
    """Training was asked to stop, and has saved its state."""


class Checkpoint:
    """Keeps the state of one run in a directory.

    `run` describes the run: data, parameters, version. A state is only taken up by a run of the same description.
    """

    def __init__(self, directory: str | os.PathLike[str], run: State, *, every: float = 60.0) -> None:
        self.file, self.run, self.every = Path(directory) / NAME, run, every
        from tempfile import TemporaryFile  # slow to import

        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.file.parent):  # or every state would be lost
                pass
        except OSError as error:
            raise CheckpointError(
                f"{directory}: no state can be saved: {error.strerror}; name another place"
            ) from error
        self.stopping = False
        self.saved = time.monotonic()

    def described(self) -> State | None:
        """The run that left a state, None if none did or its state cannot be read."""
        with suppress(*UNREADABLE), self.file.open("rb") as file, np.load(file, allow_pickle=False) as members:
            return dict(json.loads(bytes(members["tree"]))["run"])
        return None

    def load(self) -> State | None:
        """The state that an earlier run left, None if it left none."""
        try:
            with self.file.open("rb") as file, np.load(file, allow_pickle=False) as members:
                tree = json.loads(bytes(members["tree"]))
                if tree["version"] != VERSION:
                    raise ValueError(f"version {tree['version']}")
                run, state = dict(tree["run"]), _planted(tree["state"], members)
        except FileNotFoundError:
            return None
        except UNREADABLE as error:
            raise CheckpointError(f"{self.file}: not a readable state ({error}); remove it and begin anew") from error
        for name in {**run, **self.run}:
            before, now = run.get(name), json.loads(json.dumps(self.run.get(name)))
            if before != now:
                raise CheckpointError(
                    f"{self.file}: this state is of a run with {WORDS.get(name, name)} {before}, now it is {now}; "
                    "repeat the command as it was, or remove the file and begin anew"
                )
        result: State = state
        return result

    def visit(self, state: Callable[[], State]) -> None:
        """Saves the state when its time has come or training was asked to stop, which raises :class:`Stopped`.

        A disk that is full for a while ends no training: there will be a next time.
        """
        if self.stopping:
            self.save(state())
            raise Stopped
        if time.monotonic() - self.saved >= self.every:
            with suppress(CheckpointError):
                self.save(state())
            self.saved = time.monotonic()

    def save(self, state: State) -> None:
        """Replaces the file; a failure leaves the one before."""
        arrays: dict[str, Any] = {}
        tree = {"version": VERSION, "run": self.run, "state": _felled(state, arrays)}
        try:
            with written_aside(self.file) as beside, beside.open("wb") as file:
                np.savez(file, tree=np.frombuffer(json.dumps(tree).encode(), np.uint8), **arrays)
        except OSError as error:
            raise CheckpointError(f"{self.file}: {error.strerror}; the state before it is untouched") from error
        self.saved = time.monotonic()

    def clear(self) -> None:
        """Removes the state, and the directory if nothing else is in it."""
        with suppress(FileNotFoundError):  # of a directory that somebody has removed meanwhile
            for left in self.file.parent.glob(f".{NAME}.*"):  # by a process that was killed while it wrote
                left.unlink(missing_ok=True)
            self.file.unlink(missing_ok=True)
            if not any(self.file.parent.iterdir()):
                self.file.parent.rmdir()


def _felled(value: Any, arrays: dict[str, Any]) -> Any:
    """The value as JSON, its arrays moved to `arrays`."""
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {"tree": {name: _felled(one, arrays) for name, one in value.items()}}
    if isinstance(value, list | tuple):
        return [_felled(one, arrays) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _planted(value: Any, arrays: Any) -> Any:
    """What `_felled` was given."""
    if isinstance(value, dict):
        if "array" in value:
            return arrays[value["array"]]
        return {name: _planted(one, arrays) for name, one in value["tree"].items()}
    return [_planted(one, arrays) for one in value] if isinstance(value, list) else value

"""Text and models with bytes changed at random, for so many seconds: arrays, a model, or an error of one line.

`make fuzz` runs it on kernels built with the address and undefined-behaviour sanitizers.
"""

from __future__ import annotations

import io
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from widemargin import LinearModel
from widemargin.data import DataError
from widemargin.data.svmlight import read_svmlight, stream_svmlight
from widemargin.model import ModelError

LINES = [
    b"1 1:0.5 3:-2e-3 7:1\n",
    b"-1 qid:3 2:0.1 4:9007199254740993\n",
    b"+1 0:1 5:0.000000000000000000001 # a comment\r\n",
    b"\n",
    b"# only that\n",
    b"3.5 2147483648:1 9223372036854775806:2\n",
    b"2\n",
    b"1 1:0.1234567890123456789 2:1e308 3:-4.9e-324\n",
]
PIECES = [
    b":",
    b" ",
    b"\n",
    b"\r",
    b"\t",
    b"#",
    b"qid:",
    b"nan",
    b"inf",
    b"1e999",
    b"-",
    b"+",
    b".",
    b"0",
    b"\x00",
    b"\xff",
]


def mutated(text: bytes, rng: random.Random) -> bytes:
    """Some bytes replaced, inserted, removed, doubled or cut off."""
    data = bytearray(text)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                data[at:at] = rng.choice(PIECES)
            case 2:
                del data[at : at + rng.randrange(1, 20)]
            case 3:
                data[at:at] = data[at : at + rng.randrange(1, 200)]
            case _:
                if rng.random() < 0.2:
                    del data[at:]
    return bytes(data)


def one_line(error: Exception) -> None:
    """What is said of bad input is one printable line."""
    assert str(error).isprintable(), error


def feed_parser(rng: random.Random) -> None:
    """Whole, and in blocks: the same rows or an error."""
    text = mutated(b"".join(rng.choice(LINES) for _ in range(rng.randrange(30))), rng)
    try:
        whole = read_svmlight(io.BytesIO(text), threads=rng.randrange(1, 3))
        assert len(whole.X.data) <= len(text)
    except DataError as error:
        one_line(error)
    try:
        for _ in stream_svmlight(io.BytesIO(text), rows=rng.randrange(1, 9)):
            pass
    except DataError as error:
        one_line(error)


def feed_loader(rng: random.Random, place: Path, models: list[bytes]) -> None:
    """A model, or an error."""
    place.write_bytes(mutated(rng.choice(models), rng))
    try:
        model = LinearModel.load(place)
        assert model.coef.nbytes <= 2 * place.stat().st_size + 4096
    except ModelError as error:
        one_line(error)


def main() -> None:
    """Runs for the seconds given, from the seed given or a new one, which is printed."""
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4))
    rng, ends, runs = random.Random(seed), time.monotonic() + seconds, 0
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        place, models = Path(directory, "model"), []
        model = LinearModel(np.eye(3), np.ones(3), np.array([1, 2, 3]), loss="hinge", C=1.0)
        for form in ("safetensors", "liblinear"):
            model.save(place, format=form)
            models.append(place.read_bytes())
        while time.monotonic() < ends:
            feed_parser(rng)
            feed_loader(rng, place, models)
            runs += 1
    print(f"{runs:,} texts and as many models in {seconds:.0f} s: no crash", flush=True)


if __name__ == "__main__":
    main()

"""Bytes in and out: plain, .gz, .bz2 and .zst files and standard input, read as a stream; files written aside.

What a file is compressed with is told by its first bytes when it is read, and by its suffix when it is written.
"""

from __future__ import annotations

import bz2
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from widemargin.data.errors import DataError, because
from widemargin.whole_files import written_aside

#: The first bytes of files that are no text, and what they are.
MAGICS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "npz or zip",
    b"PAR1": "Parquet",
    b"ARROW1": "Arrow",
    b"FEA1": "Feather (version 1)",
    b"\x93NUMPY": "npy",
}
COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
#: Compressed bytes given to the zstd decoder at a time: even the densest unfold to some megabytes only.
ZSTD_BITE = 1 << 10


class Source(AbstractContextManager["Source"]):
    """A file, or standard input for `-`, or a binary stream: `readinto` gives its bytes, decompressed.

    `name` is for messages, `kind` what the first bytes say it is (None for text and the unknown), `size` the bytes of
    the file as it is, 0 if that is unknown, and `done` how many of them were read.
    """

    def __init__(self, source: str | os.PathLike[str] | IO[bytes]) -> None:
        self.size, self._owned, self._closed, self._ahead = 0, False, False, b""
        if isinstance(source, str | os.PathLike) and os.fspath(source) != "-":
            self.name = os.fspath(source)
            try:
                self._file: Any = io.FileIO(source)
            except OSError as error:
                raise DataError.at(self.name, *because(error)) from None
            self._owned = True
            self.size = os.fstat(self._file.fileno()).st_size
        else:
            self._file = sys.stdin.buffer if isinstance(source, str | os.PathLike) else source
            self.name = "-" if isinstance(source, str | os.PathLike) else str(getattr(source, "name", "stream"))
        self._counted = _Counted(self._file)
        plain = io.BufferedReader(self._counted, 1 << 16)
        try:
            self.kind = magic(self._counted.look())
            self._stream: Any = plain
            if self.kind == "gzip":
                self._stream = gzip.GzipFile(fileobj=plain)
            elif self.kind == "bzip2":
                self._stream = bz2.BZ2File(plain)
            elif self.kind == "zstd":
                self._stream = _open_zstd(plain, self.name)
        except OSError as error:
            self.close()
            raise DataError.at(self.name, *because(error)) from None
        except DataError:
            self.close()
            raise

    @property
    def compressed(self) -> bool:
        """Whether the bytes are decompressed on the way."""
        return self.kind in COMPRESSED.values()

    @property
    def done(self) -> int:
        """Bytes of the file read so far."""
        return self._counted.count

    def head(self, size: int) -> bytes:
        """The first bytes, decompressed, `size` of them if there are as many; they are still read afterwards."""
        while len(self._ahead) < size:
            more = self._guarded(self._stream.read, size - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def readinto(self, room: memoryview) -> int:
        """Fill `room` as far as the bytes go; fewer than its length only at the end."""
        filled = min(len(room), len(self._ahead))
        room[:filled], self._ahead = self._ahead[:filled], self._ahead[filled:]
        while filled < len(room):
            got = self._guarded(self._stream.readinto, room[filled:])
            if not got:
                break
            filled += got
        return filled

    def read(self, size: int = -1) -> bytes:
        """Read as a file does, for other readers; all of it if no size is given."""
        if self._ahead:
            size = len(self._ahead) if size < 0 else size
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
            return taken
        return bytes(self._guarded(self._stream.read, size))

    def readable(self) -> bool:
        """True."""
        return True

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def _guarded(self, call: Any, argument: Any) -> Any:
        try:
            return call(argument)
        except EOFError:
            raise DataError.at(
                self.name, f"the {self.kind} data end too early", "get the whole file, or compress it again"
            ) from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError.at(
                self.name, f"the gzip data are corrupt ({error})", "get or compress the file again"
            ) from None
        except OSError as error:
            if error.errno is None:  # bz2's way to say it
                raise DataError.at(
                    self.name, f"the {self.kind} data are corrupt ({error})", "get or compress the file again"
                ) from None
            raise DataError.at(self.name, *because(error)) from None
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
            raise DataError.at(
                self.name, f"the zstd data are corrupt ({error})", "get or compress the file again"
            ) from None

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._closed = True
        if self._owned:
            self._file.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Counted(io.RawIOBase):
    """A stream that counts the bytes read from it, and stays open when its reader goes."""

    def __init__(self, file: Any) -> None:
        self.file, self.count, self.first = file, 0, b""

    def look(self) -> bytes:
        """The first bytes, which a pipe may hand out one by one; they are still to be read."""
        while len(self.first) < 8 and (more := self.file.read(8 - len(self.first))):
            self.first += more
        return self.first

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        if self.first:
            got = min(len(room), len(self.first))
            room[:got], self.first = self.first[:got], self.first[got:]
        elif hasattr(self.file, "readinto"):
            got = self.file.readinto(room) or 0
        else:
            data = self.file.read(len(room))
            got = len(data)
            room[:got] = data
        self.count += got
        return int(got)


class _ZstdReader(io.RawIOBase):
    """Frames of zstd, decompressed; a file that ends within one is an error, which zstandard's own reader lets pass."""

    def __init__(self, file: Any, make: Any) -> None:
        self.file, self.make, self.decoder = file, make, make()
        self.ready, self.rest = memoryview(b""), b""

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while not self.ready:
            bite = self.rest or self.file.read(ZSTD_BITE)
            self.rest = b""
            if not bite:
                if not self.decoder.eof:
                    raise EOFError
                return 0
            if self.decoder.eof:
                self.decoder = self.make()
            self.ready = memoryview(self.decoder.decompress(bite))
            if self.decoder.eof:
                self.rest = self.decoder.unused_data
        got = min(len(room), len(self.ready))
        room[:got] = self.ready[:got]
        self.ready = self.ready[got:]
        return got


def _zstd(name: str) -> Any:
    """The stdlib's module, or else the package."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return zstd
    except ImportError:
        try:
            import zstandard
        except ImportError:
            raise DataError.at(name, "zstd needs a package", "run: pip install 'widemargin[zstd]'") from None
        return zstandard


def _open_zstd(file: Any, name: str) -> Any:
    module = _zstd(name)
    if hasattr(module, "ZstdFile"):
        return module.ZstdFile(file)
    return io.BufferedReader(_ZstdReader(file, lambda: module.ZstdDecompressor().decompressobj()), 1 << 16)


def magic(head: bytes) -> str | None:
    """What a file that begins like this is, if that can be told."""
    return next((kind for start, kind in MAGICS.items() if head.startswith(start)), None)


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream whose bytes become the file at `path` all at once, at the end; nothing is left behind if that fails.

    They are compressed if the suffix says so.
    """
    with aside(path) as temporary:
        raw = temporary.open("wb")
        with raw, _compressing(raw, Path(path)) as stream:
            yield stream


@contextmanager
def aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside `path` to write to, which then takes its place; removed if anything fails."""
    target = Path(path)
    if target.is_dir():
        raise DataError.at(str(target), "it is a directory", "name a file")
    try:
        with written_aside(target) as beside:
            yield beside
    except OSError as error:
        advice = "make room, or write elsewhere" if error.errno in (28, 122) else "write elsewhere"
        raise DataError.at(str(target), f"it cannot be written: {because(error)[0]}", advice) from None


class _Finished(AbstractContextManager["_Finished"]):
    """zstandard's compressor as a stream."""

    def __init__(self, file: Any, compressor: Any) -> None:
        self.file, self.compressor = file, compressor

    def write(self, data: Any) -> int:
        self.file.write(self.compressor.compress(data))
        return len(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.file.write(self.compressor.flush())


def _compressing(raw: Any, path: Path) -> Any:
    kind = COMPRESSED.get(path.suffix.lower())
    if kind == "gzip":  # no name and no time in it: the same rows make the same bytes
        return gzip.GzipFile("", "wb", fileobj=raw, mtime=0, compresslevel=6)
    if kind == "bzip2":
        return bz2.BZ2File(raw, "wb")
    if kind == "zstd":
        module = _zstd(str(path))
        if hasattr(module, "ZstdFile"):
            return module.ZstdFile(raw, "wb")
        return _Finished(raw, module.ZstdCompressor().compressobj())
    return raw

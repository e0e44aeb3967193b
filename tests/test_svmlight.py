import bz2
import gzip
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from widemargin.data import svmlight, svmlight_writer
from widemargin.data.errors import DataError
from widemargin.data.streams import magic
from widemargin.data.svmlight import read_svmlight, stream_svmlight
from widemargin.data.svmlight_writer import write_svmlight

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class SlowError(Exception):
    """The line at fault."""


def slow(text, zero_based="auto", n_features=None):
    """The format once more, in plain Python: labels, qids, rows of (index, value), or the line of the first error."""

    def need(condition):
        if not condition:
            raise SlowError(number)

    def finite(token):
        need(NUMBER.fullmatch(token))
        need(np.isfinite(float(token)))
        return float(token)

    labels, qids, rows, places = [], [], [], []
    text = text.removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(text.split(b"\n"), 1):
        tokens = line.partition(b"#")[0].split()
        if not tokens:
            continue
        label = finite(tokens.pop(0))
        qid = None
        if tokens and tokens[0].startswith(b"qid:"):
            need(re.fullmatch(rb"-?\d+", tokens[0][4:]))
            qid = int(tokens.pop(0)[4:])
            need(-(2**63) <= qid < 2**63)
        row = []
        for token in tokens:
            index, colon, value = token.partition(b":")
            need(colon and re.fullmatch(rb"\d+", index) and int(index) < 2**63 - 1)
            need(not row or int(index) > row[-1][0])
            row.append((int(index), finite(value)))
        need(not row or zero_based is not False or row[0][0] > 0)
        need(not row or n_features is None or row[-1][0] < n_features + (zero_based is not True))
        need(not qids or (qids[-1] is None) == (qid is None))
        for into, what in ((labels, label), (qids, qid), (rows, row), (places, number)):
            into.append(what)
    number = 1
    need(rows)
    if zero_based == "auto":
        zero_based = any(row and row[0][0] == 0 for row in rows)
        wide = [place for place, row in zip(places, rows, strict=True) if row and row[-1][0] == n_features]
        if zero_based and wide:
            raise SlowError(wide[0])
    return labels, None if qids[0] is None else qids, [[(j - (not zero_based), x) for j, x in row] for row in rows]


def assert_same_rows(got, X, y):
    """The same numbers, stored in the same order, of the same bits."""
    assert got.X.shape == X.shape
    np.testing.assert_array_equal(got.X.indptr, X.indptr)
    np.testing.assert_array_equal(got.X.indices, X.indices)
    assert got.X.dtype == X.dtype
    assert got.X.data.tobytes() == X.data.tobytes()
    assert got.y.dtype == np.float64
    assert got.y.tobytes() == np.asarray(y, dtype=np.float64).tobytes()


def read(text, **options):
    """The rows of a text."""
    return read_svmlight(io.BytesIO(text), **options)


def cut_finely(monkeypatch, chunk, piece):
    """Let the edges of chunks and pieces fall everywhere."""
    monkeypatch.setattr(svmlight, "CHUNK", chunk)
    monkeypatch.setattr(svmlight, "PIECE", piece)


def some_text(n=400, seed=0, qid=False):
    """Rows of many lengths with all that may stand between them."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        index = np.flatnonzero(rng.random(60) < rng.choice([0, 0.1, 0.9])) + 1
        values = rng.standard_normal(len(index)) * 10.0 ** rng.integers(-9, 9, len(index))
        shown = [f"{x:.{rng.integers(1, 18)}g}" for x in values]
        group = [f"qid:{i // 7}"] if qid else []
        blank = rng.choice([" ", "  ", "\t", " \t "])
        line = blank.join([str(rng.choice(["+1", "-1", "2.5"])), *group, *map("{}:{}".format, index, shown)])
        lines += [line + rng.choice(["", " ", " # a:b 3:x", "#"]), *["", "# 1:2", "  "][: rng.integers(0, 4)]]
    return rng.choice(["\n", "\r\n"]).join(lines).encode()


LIKE_SCIKIT_LEARN = {
    "comments": (b"# a first line\n-1 2:2.5 10:-5.2 15:1.5 # behind\n1 5:1.0 12:-3\n\n2 20:27\n# the end\n", {}),
    "columns": (b"1 2:2.5 10:-5.2\n2 5:1.0\n", {"n_features": 22}),
    "zero based": (b"-1 4:1.\n1 0:1\n", {}),
    "said to be zero based": (b"-1 4:1.\n1 1:1\n", {"zero_based": True}),
    "said to be one based": (b"1 2:1\n1 3:2\n", {"zero_based": False}),
    "labels alone": (b"1\n-1\n2.5\n", {}),
    "some labels alone": (b"1 1:0.5\n-1\n3 2:1\n", {}),
    "queries": (b"-1 qid:1 2:2.5\n1 qid:1 5:1\n2 qid:7 1:1\n", {}),
    "long queries": (
        b"\n 1 qid:0 0:1 1:2\n 0 qid:72048431380967004 1:72048431380967004\n"
        b" 0 qid:-9223372036854775807 2:236784985\n 3 qid:9223372036854775807  0:1440446648",
        {},
    ),
    "no line end": (b"1 1:1 2:2\n0 2:1", {}),
    "windows": (b"1 1:1 2:2\r\n0 2:1\r\n", {}),
    "blanks": (b" +1\t1:1   2:2 \n\t-1 \t 3:1e-3\t\n", {}),
    "stored zeros": (b"1 1:0 3:0.0 4:-0.0\n1 2:1\n", {}),
    "exponents": (b"1e0 1:1e5 2:1E-5 3:+.5 4:5. 5:-1.25e+300 6:4.9e-324 7:1e-999\n", {}),
    "single": (b"1 1:0.1 2:3.4e38 3:1e-46\n-1 2:16777217\n", {"dtype": np.float32}),
}


@pytest.mark.parametrize("name", LIKE_SCIKIT_LEARN)
def test_reads_as_scikit_learn_does(name):
    """Arrays equal scikit-learn's, on the kinds of input that its own tests have."""
    text, options = LIKE_SCIKIT_LEARN[name]
    X, y, qid = load_svmlight_file(io.BytesIO(text), query_id=True, **options)
    got = read(text, **options)
    assert_same_rows(got, X, y)
    assert (got.qid is None and not len(qid)) or got.qid.tolist() == qid.tolist()
    assert got.X.indices.dtype == np.int32
    assert isinstance(got.X, sp.csr_array)


@pytest.mark.parametrize("qid", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("chunk", "piece"), [(8, 1), (100, 30), (5000, 700), (1 << 23, 1 << 18)])
def test_cuts_do_not_matter(monkeypatch, chunk, piece, threads, qid):
    """However text is cut into chunks and pieces and shared out over threads: scikit-learn's arrays."""
    text = some_text(qid=qid)
    X, y, groups = load_svmlight_file(io.BytesIO(text), query_id=True)
    cut_finely(monkeypatch, chunk, piece)
    got = read(text, threads=threads)
    assert_same_rows(got, X, y)
    if qid:
        np.testing.assert_array_equal(got.qid, groups)


def test_wide_indices_late(monkeypatch):
    """An index beyond 32 bits in a late chunk makes all indices int64, those before it included (slow reference)."""
    lines = [b"1 1:1 5:2"] * 50 + [b"1 2:1 2147483648:7"] + [b"-1 3:1"] * 50
    cut_finely(monkeypatch, 64, 16)
    got = read(b"\n".join(lines), threads=2)
    assert got.X.indices.dtype == got.X.indptr.dtype == np.int64
    rows = slow(b"\n".join(lines))[2]
    assert got.X.indices.tolist() == [j for row in rows for j, _ in row]


decimals = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "+", "-"]),
    st.text("0123456789", min_size=1, max_size=25),
    st.one_of(st.just(""), st.text("0123456789", max_size=25).map(".".__add__)),
    st.one_of(st.just(""), st.integers(-345, 330).map("e{}".format)),
)


@settings(max_examples=300)
@given(decimals)
@example("9007199254740993")
@example("9007199254740992e22")
@example("2.4703282292062327208e-324")
@example("2.4703282292062328e-324")
@example("1.7976931348623158e308")
@example("1.7976931348623159e308")
@example("0." + "0" * 400 + "1e401")
@example("1" + "0" * 400 + "e-401")
@example("0" * 30 + "e999999999999999999999")
@example("-1e-99999999999999999999")
@example("123456789012345678901234567890")
def test_numbers_equal_python(text):
    """Values and labels have the bits of Python's float()."""
    expected = np.float64(float(text))
    line = f"{text} 1:{text}\n".encode()
    if np.isinf(expected):
        with pytest.raises(DataError, match="not a finite number"):
            read(line)
        return
    got = read(line)
    assert got.X.data.tobytes() == got.y.tobytes() == expected.tobytes()


tokens = st.one_of(
    st.sampled_from(
        [
            *("1", "-1", "+1", "0:1", "1:1", "2:0.5", "3:-7e-3", "3:", ":3", "4:nan", "5:inf", "17:1", "23:x", "a"),
            *(
                "-3:1",
                "1,2",
                "qid:3",
                "qid:-9223372036854775808",
                "qid:9223372036854775808",
                "qid:x",
                "6:1e400",
                "#",
                "\r",
                "\x0b",
                "\0",
                "1:2:3",
                "\xff",
            ),
            *("9223372036854775806:1", "9223372036854775808:2", "4294967296:1", "12345678:1", "1:0.12345678901234567"),
        ]
    ).map(lambda token: token.encode("latin1")),
    st.integers(0, 30).map(lambda j: b"%d:1" % j),
    st.binary(max_size=4),
)
texts = st.lists(
    st.tuples(st.sampled_from([b"1", b"-1", b"+1", b"2.5", b"", b"#", b"1 qid:2"]), st.lists(tokens, max_size=4)).map(
        lambda parts: b" ".join([parts[0], *parts[1]])
    ),
    max_size=8,
).map(b"\n".join)
good_texts = st.lists(
    st.tuples(st.sampled_from([b"1", b"-1", b"", b"# 1:1"]), st.sets(st.integers(0, 30), max_size=5)).map(
        lambda parts: b" ".join([parts[0], *(b"%d:%d.5" % (j, j) for j in sorted(parts[1]) if parts[0])])
    ),
    max_size=12,
).map(b"\n".join)


def outcome(function, *arguments):
    """What a call returns, or the SlowError that it raises."""
    try:
        return function(*arguments)
    except SlowError as error:
        return error


@settings(max_examples=400)
@given(
    st.one_of(texts, good_texts, st.binary(max_size=60)),
    st.sampled_from(["auto", True, False]),
    st.sampled_from([None, 5, 20]),
    st.sampled_from([(8, 1), (16, 5), (40, 1000), (1 << 20, 1 << 18)]),
    st.sampled_from([1, 2]),
)
def test_any_bytes(text, zero_based, n_features, cuts, threads):
    """Any bytes at all: the arrays of a slow parser in plain Python, or an error on the line where it has one."""
    assume(magic(text) is None)
    with pytest.MonkeyPatch.context() as monkeypatch:
        cut_finely(monkeypatch, *cuts)
        expected = outcome(slow, text, zero_based, n_features)
        if isinstance(expected, SlowError):
            with pytest.raises(DataError) as caught:
                read(text, zero_based=zero_based, n_features=n_features, threads=threads)
            assert caught.value.line == expected.args[0]
            assert str(caught.value).isprintable()
            return
        labels, qids, rows = expected
        got = read(text, zero_based=zero_based, n_features=n_features, threads=threads)
    assert got.y.tolist() == labels
    assert (None if got.qid is None else got.qid.tolist()) == qids
    assert got.X.indices.tolist() == [j for row in rows for j, _ in row]
    assert got.X.data.tolist() == [x for row in rows for _, x in row]
    assert np.diff(got.X.indptr).tolist() == [len(row) for row in rows]
    assert got.X.shape[1] == (n_features or 1 + max([j for row in rows for j, _ in row], default=0))


BAD_LINES = {
    "1 3:": ("'3:' has no value", {}),
    "1 3: 4:1": ("'3:' has no value", {}),
    "1 3": ("'3' is not a pair", {}),
    "1 3:x": ("'3:x' has no number", {}),
    "1 3:0x10": ("'3:0x10' has no number", {}),
    "1 x:3": ("'x:3' is not a pair", {}),
    "1 3:1_0": ("'3:1_0' has no number", {}),
    "spam 3:1": ("'spam' is not a label", {}),
    "3:1 4:1": ("'3:1' is not a label", {}),
    "1 0:1 2:1": ("index 0 where columns count from 1; pass zero_based=True", {"zero_based": False}),
    "1 99999999999999999999:1": ("index 99999999999999999999 is too large", {}),
    "1 9223372036854775808:1": ("index 9223372036854775808 is too large", {}),
    "1 -3:1": ("index -3 is negative", {}),
    "1 3:nan": ("'3:nan' is not a finite", {}),
    "1 3:-INF": ("'3:-INF' is not a finite", {}),
    "nan 3:1": ("'nan' is not a finite", {}),
    "1 3:1e400": ("'3:1e400' is not a finite", {}),
    "1 3:1e39": ("'3:1e39' is not a finite", {"dtype": np.float32}),
    "1 23:1 17:2": ("index 17 after 23; indices must increase within a line", {}),
    "1 17:1 17:2": ("index 17 after 17; indices must increase", {}),
    "1 qid:3 1:1": ("a qid here, none on the lines before", {}),
    "1 qid:x 1:1": ("'qid:x' is not a query id", {}),
    "1,2 3:4": ("'1,2' are several labels; give one label per line", {}),
    "1 \0\1\2\3": (r"'\x00\x01\x02\x03' looks like binary data", {}),
    "1 ab\xffcd\xfe:3": ("looks like binary data", {}),
    "1 51:1": ("index 51 with n_features=50; raise n_features", {"n_features": 50}),
    "1 50:1": ("index 50 with n_features=50; raise n_features", {"n_features": 50, "zero_based": True}),
    "1 " + 1000 * "z": ("'" + 20 * "z" + "…'", {}),
}


@pytest.mark.parametrize("cuts", [(1 << 23, 1 << 18), (300, 100)], ids=["one piece", "many"])
@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: ascii(line)[:30])
def test_bad_lines(monkeypatch, tmp_path, line, cuts):
    """A bad line among good ones, then another: the first is named with its number, whatever piece it lies in."""
    message, options = BAD_LINES[line]
    good = ["1 2:0.5 7:1", "# 1:x", "", "-1 1:1"] * 50
    path = tmp_path / "train.svm"
    path.write_bytes("\r\n".join([*good, line, *good, "1 2:bad", *good]).encode("latin1"))
    cut_finely(monkeypatch, *cuts)
    with pytest.raises(DataError) as caught:
        read_svmlight(path, threads=2, **options)
    assert str(caught.value).startswith(f"{path}:201: ")
    assert message in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 150


def test_bad_qid_in_the_middle(monkeypatch):
    """A line without a qid behind lines with one is named, also if a piece begins with it."""
    cut_finely(monkeypatch, 1000, 1)
    with pytest.raises(DataError, match=r":3: no qid here, unlike the lines before"):
        read(b"1 qid:1 1:1\n1 qid:1 1:1\n1 1:1\n1 1:1\n")


def test_too_wide_in_hindsight(monkeypatch):
    """The last index that a one-based file may have is named if an index 0 comes to light behind it."""
    cut_finely(monkeypatch, 16, 1)
    with pytest.raises(DataError, match=r":2: index 5 with n_features=5; raise n_features"):
        read(b"1 1:1\n1 5:1\n1 5:1\n1 0:1\n", n_features=5)


def test_bad_files(tmp_path):
    """What is no text at all is refused in one line that says what it is."""
    cases = {
        b"": (":1: the file is empty; give lines like", "empty"),
        b"\n# nothing\n": (":1: no rows, only comments", "comments"),
        b"PAR1\x15\x04": (":1: the file is not text but looks like Parquet", "parquet"),
        b"PK\x03\x04...": ("looks like npz or zip", "npz"),
        b"\x93NUMPY\x01": ("looks like npy", "npy"),
        b"\xfd7zXZ\x00...": ("looks like xz", "xz"),
        gzip.compress(b"PAR1\x15"): ("looks like Parquet", "inner"),
        b"\x1f\x8b" + b"\xff" * 40: ("the gzip data are corrupt", "junk.gz"),
        gzip.compress(some_text())[:-20]: ("the gzip data end too early", "short.gz"),
        gzip.compress(some_text())[:-8] + b"12345678": ("the gzip data are corrupt (CRC", "crc.gz"),
        bz2.compress(some_text())[:-20]: ("the bzip2 data end too early", "short.bz2"),
        b"BZh9" + b"\xff" * 40: ("the bzip2 data are corrupt", "junk.bz2"),
        b"\x28\xb5\x2f\xfd" + b"\xff" * 40: ("the zstd data are corrupt", "junk.zst"),
        zstd(some_text())[:-20]: ("the zstd data end too early", "short.zst"),
        b"\x00\x01\x02\x03": ("looks like binary data", "junk"),
    }
    for content, (message, name) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=re.escape(message)) as caught:
            read_svmlight(path)
        assert str(caught.value).startswith(f"{path}:1: ")
    with pytest.raises(DataError, match="no such file or directory; check the path"):
        read_svmlight(tmp_path / "missing")
    with pytest.raises(DataError, match="is a directory; name a file"):
        read_svmlight(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    """A file that one may not read is refused in one line."""
    path = tmp_path / "secret.svm"
    path.write_bytes(b"1 1:1\n")
    path.chmod(0)
    with pytest.raises(DataError, match="permission denied; ask for the right"):
        read_svmlight(path)


def test_permission_is_the_systems(monkeypatch, tmp_path):
    """What the system says of a file is what the message says."""

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(io, "FileIO", refuse)
    with pytest.raises(DataError, match=r"x\.svm: permission denied; ask for the right"):
        read_svmlight(tmp_path / "x.svm")


def test_long_lines(monkeypatch):
    """A line beyond the limit is refused with its number; one below it is read, though longer than a chunk."""
    cut_finely(monkeypatch, 64, 64)
    monkeypatch.setattr(svmlight, "LONGEST_LINE", 5000)
    row = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 600))
    assert read(b"1 1:1\n" + row + b"\n1 1:1\n").X.nnz == 601
    with pytest.raises(DataError, match=r":3: a line of more than 0 MB; give one row per line"):
        read(b"1 1:1\n1 1:1\n" + b"1" * 6000 + b"\n1 1:1\n")


def test_a_line_of_100_mb_takes_no_memory(tmp_path):
    """A file that is one endless line is refused with less memory than twice its size (the system's own count)."""
    path = tmp_path / "long.svm"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(b"1 " * (1 << 19))
    code = (
        "import resource, sys\n"
        "from widemargin.data.svmlight import read_svmlight\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: read_svmlight(sys.argv[1])\n"
        "except ValueError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    message, peak = run.stdout.splitlines()
    assert ":1: a line of more than 64 MB" in message
    assert int(peak) * 1024 < 200e6


@pytest.mark.parametrize("packed", [False, True])
def test_memory_of_reading(tmp_path, packed):
    """Reading takes the result, one chunk and what the system keeps, not a second copy of anything (its own count)."""
    path = tmp_path / "big.svm"
    line = b"1 " + b" ".join(b"%d:0.0532" % j for j in range(1000, 4500, 50)) + b"\n"
    text = line * 50_000
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    code = (
        "import resource, sys\n"
        "from widemargin.data import svmlight\n"
        "svmlight.CHUNK = 1 << 20\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "rows = svmlight.read_svmlight(sys.argv[1])\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(1024 * peak, rows.X.data.nbytes + rows.X.indices.nbytes + rows.X.indptr.nbytes + rows.y.nbytes)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    peak, size = map(int, run.stdout.split())
    assert size > 40e6
    assert peak < size + 12e6


def zstd(data):
    """The data as the zstd package compresses it."""
    try:
        from compression.zstd import compress
    except ImportError:
        from zstandard import compress
    return compress(data)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zstd], ids=["gzip", "bzip2", "zstd"])
def test_compressed_equals_plain(monkeypatch, tmp_path, pack):
    """Compressed, in one part or two, whatever the suffix: the arrays of the plain text."""
    text = some_text()
    plain = read(text)
    cut_finely(monkeypatch, 1000, 300)
    half = text.index(b"\n", len(text) // 2) + 1
    for packed in (pack(text), pack(text[:half]) + pack(text[half:])):
        path = tmp_path / "data.svm"
        path.write_bytes(packed)
        assert_same_rows(read_svmlight(path), plain.X, plain.y)


class Dribble(io.RawIOBase):
    """A pipe that hands out its bytes one by one."""

    def __init__(self, content):
        self.content = io.BytesIO(content)

    def readable(self):
        """Say yes, as a stream has to."""
        return True

    def readinto(self, room):
        """One byte."""
        return self.content.readinto(memoryview(room)[:1])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
def test_slow_pipes(pack):
    """A pipe that gives one byte at a time is told apart and read as a file is."""
    text = some_text(20)
    plain = read(text)
    assert_same_rows(read_svmlight(Dribble(pack(text))), plain.X, plain.y)


def test_without_zstd(monkeypatch):
    """Without a package for zstd, the message has the command that installs it."""
    packed = zstd(some_text(20))
    for module in ("zstandard", "compression", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError, match=r"zstd needs a package; run: pip install 'widemargin\[zstd\]'"):
        read(packed)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".zst"])
def test_written_reads_back(tmp_path, suffix):
    """What is written, compressed or not, reads back to the same bits, also by scikit-learn."""
    rows = read(some_text(qid=True))
    path = tmp_path / f"copy.svm{suffix}"
    write_svmlight(path, rows.X, rows.y, qid=rows.qid)
    again = read_svmlight(path, n_features=60)
    assert_same_rows(again, rows.X, rows.y)
    np.testing.assert_array_equal(again.qid, rows.qid)
    assert os.listdir(tmp_path) == [path.name]
    if suffix in ("", ".gz", ".bz2"):
        X, y = load_svmlight_file(str(path), n_features=60)
        assert_same_rows(rows, X, y)


@st.composite
def matrices(draw):
    """CSR arrays of any finite bits, both precisions and index types."""
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    width = draw(st.sampled_from([3, 40, 2**40]))
    finite = st.floats(allow_nan=False, allow_infinity=False, width=64 if dtype == np.float64 else 32)
    rows = draw(st.lists(st.dictionaries(st.integers(0, width - 1), finite, max_size=5), min_size=1, max_size=6))
    indices = [j for row in rows for j in sorted(row)]
    data = np.array([row[j] for row in rows for j in sorted(row)], dtype=dtype)
    starts = np.cumsum([0, *map(len, rows)])
    return sp.csr_array((data, np.array(indices, dtype=np.int64), starts), shape=(len(rows), width))


@settings(max_examples=100)
@given(matrices(), st.booleans(), st.data())
def test_round_trip(tmp_path_factory, X, zero_based, data):
    """Any finite numbers come back with the same bits from text."""
    y = np.array(
        data.draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=X.shape[0], max_size=X.shape[0]))
    )
    path = tmp_path_factory.mktemp("trip") / "x.svm"
    write_svmlight(path, X, y, zero_based=zero_based)
    got = read_svmlight(path, n_features=X.shape[1], zero_based=zero_based, dtype=X.dtype)
    assert_same_rows(got, X, y)


def test_written_text(tmp_path):
    """The text itself: whole numbers without a point, others in as few digits as bring them back."""
    path = tmp_path / "x.svm"
    write_svmlight(path, np.array([[0, 0.1, 1e5], [0, 0, 0], [1e-7, -0.5, 3e22]]), np.array([1, -1, 0.5]))
    assert path.read_text() == "1 2:0.1 3:100000\n-1\n0.5 1:1e-07 2:-0.5 3:3e+22\n"
    write_svmlight(path, np.array([[0.1]], dtype=np.float32), zero_based=True)
    assert path.read_text() == "0 0:0.1\n"


def test_writer_refuses(tmp_path):
    """What could not be read back is not written, and nothing is left behind."""
    X = sp.csr_array(np.array([[1.0, 0], [0, np.nan]]))
    cases = [
        (X, [0, 1], {}, "row 1 of X holds nan or inf"),
        (X[:1], [np.inf], {}, "label 0 is not finite"),
        (X[:1], ["a"], {}, "labels such as 'a'; number the classes"),
        (X[:1], [1, 2], {}, r"y has shape \(2,\) for 1 rows"),
        (X[:1], [1], {"qid": [1, 2]}, r"qid has shape \(2,\) for 1 rows"),
    ]
    for matrix, y, options, message in cases:
        with pytest.raises(DataError, match=message):
            write_svmlight(tmp_path / "x.svm", matrix, np.array(y), **options)
    with pytest.raises(DataError, match="cannot be written: no such file or directory"):
        write_svmlight(tmp_path / "none" / "x.svm", X[:1])
    assert not os.listdir(tmp_path)


def test_a_full_disk_leaves_nothing(monkeypatch, tmp_path):
    """A write that fails half-way is an error that says so; the old file stands, and nothing lies beside it."""
    path = tmp_path / "x.svm"
    path.write_text("1 1:1\n")
    real = svmlight._core.svmlight_text
    calls = []

    def full(*arguments):
        calls.append(1)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(svmlight._core, "svmlight_text", full)
    monkeypatch.setattr(svmlight_writer, "WRITTEN_AT_ONCE", 10)
    with pytest.raises(DataError, match="cannot be written: no space left on device; make room"):
        write_svmlight(path, np.ones((100, 3)))
    assert os.listdir(tmp_path) == ["x.svm"]
    assert path.read_text() == "1 1:1\n"


@pytest.mark.parametrize("rows", [1, 7, 100, 10_000])
@pytest.mark.parametrize("qid", [False, True])
def test_blocks_make_the_whole(monkeypatch, rows, qid):
    """Blocks of any size, put together, are the whole file."""
    text = some_text(150, qid=qid)
    whole = read(text)
    cut_finely(monkeypatch, 2000, 500)
    blocks = list(stream_svmlight(io.BytesIO(text), rows=rows, n_features=60))
    assert [len(block.y) for block in blocks[:-1]] == [rows] * (len(blocks) - 1)
    assert 1 <= len(blocks[-1].y) <= rows
    X = sp.vstack([block.X for block in blocks], format="csr")
    np.testing.assert_array_equal(X.toarray(), whole.X.toarray())
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), whole.y)
    if qid:
        np.testing.assert_array_equal(np.concatenate([block.qid for block in blocks]), whole.qid)


def test_blocks_settle_early(monkeypatch):
    """A first index 0 in a later chunk is an error on its line, since earlier rows were read as counting from 1."""
    cut_finely(monkeypatch, 8, 8)
    with pytest.raises(DataError, match=r":3: index 0 after lines read as counting from 1; pass zero_based=True"):
        list(stream_svmlight(io.BytesIO(b"1 1:1\n1 2:1\n1 0:1\n"), rows=1))
    zero = list(stream_svmlight(io.BytesIO(b"1 0:1\n1 2:1\n1 4:1\n"), rows=1))
    assert [block.X.indices.tolist() for block in zero] == [[0], [2], [4]]
    assert [block.X.shape[1] for block in zero] == [1, 3, 5]


def test_a_pipe_in_constant_memory(tmp_path):
    """Rows from a pipe many times larger than the memory that reading it takes (the system's own count)."""
    code = (
        "import resource, sys\n"
        "from widemargin.data import svmlight\n"
        "svmlight.CHUNK = 1 << 20\n"
        "blocks = svmlight.stream_svmlight('-', rows=1000, n_features=50)\n"
        "total = len(next(blocks).y)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "total += sum(len(block.y) for block in blocks)\n"
        "print(total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    block = b"1 3:0.5 7:1.25 50:1\n" * 50_000
    for _ in range(60):
        process.stdin.write(block)
    total, peak = map(int, process.communicate()[0].split())
    assert total == 3_000_000
    assert peak * 1024 < 15e6


def test_progress_and_interrupt(monkeypatch, tmp_path):
    """Progress runs to the size of the file, packed or not, and what it raises ends the reading."""
    cut_finely(monkeypatch, 1000, 300)
    for name, content in (("a.svm", some_text()), ("a.svm.gz", gzip.compress(some_text()))):
        path = tmp_path / name
        path.write_bytes(content)
        seen = []
        read_svmlight(path, progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert len(seen) > 5
        assert seen == sorted(seen)
        assert seen[-1] == (len(content), len(content))

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_svmlight(path, progress=stop)


def test_options_are_checked():
    """Every option acts or raises."""
    for options, message in (
        ({"n_features": 0}, "n_features=0"),
        ({"zero_based": "yes"}, "zero_based='yes'"),
        ({"dtype": np.int32}, "dtype=int32"),
        ({"threads": -1}, "-1 threads"),
    ):
        with pytest.raises(DataError, match=message):
            read(b"1 1:1\n", **options)
    with pytest.raises(DataError, match="rows=0"):
        list(stream_svmlight(io.BytesIO(b"1 1:1\n"), rows=0))


def test_rows_to_train_on_need_no_scipy(tmp_path):
    """What is read as rows equals the array, and scipy.sparse is imported for the array only."""
    path = tmp_path / "x.svm"
    path.write_text("1 1:0.5 3:2\n-1 2:1\n1\n")
    code = """
import sys
from widemargin import data
found = data.open(sys.argv[1], as_rows=True)
assert "scipy.sparse" not in sys.modules
print(found.X.shape, found.X.X.toarray().tolist() == data.open(sys.argv[1]).X.toarray().tolist())
"""
    printed = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True).stdout
    assert printed.split("\n")[0] == "(3, 3) True"

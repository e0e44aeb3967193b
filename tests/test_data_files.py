import bz2
import gzip
import io
import os
import sys
import threading
import types
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from widemargin import data
from widemargin.data import DataError, Dataset


def rows(n=30, d=7, seed=0):
    """A sparse matrix and labels."""
    rng = np.random.default_rng(seed)
    return sp.csr_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)), rng.choice([-1.0, 1.0], n)


def dense(X):
    """X as an array, however it is stored."""
    return X if isinstance(X, np.ndarray) else X.toarray()


SUFFIXES = [".svm", ".libsvm", ".svmlight", ".svm.gz", ".svm.bz2", ".svm.zst", ".csv", ".tsv", ".csv.gz", ".parquet"]
SUFFIXES += [".pq", ".arrow", ".feather", ".npz", ".npy"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_format_comes_back(tmp_path, suffix, dtype):
    """What save wrote, open and blocks read with the same bits; nothing else is left in the directory."""
    X, y = rows()
    X = X.astype(dtype)
    path = tmp_path / f"d{suffix}"
    data.save(path, X.toarray() if suffix == ".npy" else X, y)
    got = data.open(path, dtype=dtype, n_features=7)
    assert isinstance(got, Dataset)
    assert got.source == str(path)
    assert got.X.dtype == dtype
    assert_array_equal(dense(got.X), X.toarray())
    assert_array_equal(got.y, y)
    parts = list(data.blocks(path, rows=8, dtype=dtype, n_features=7))
    assert [len(part.y) for part in parts] == [8, 8, 8, 6]
    assert_array_equal(np.vstack([dense(part.X) for part in parts]), X.toarray())
    assert_array_equal(np.concatenate([part.y for part in parts]), y)
    assert {part.X.dtype for part in parts} == {np.dtype(dtype)}
    assert sorted(os.listdir(tmp_path)) == sorted([path.name] + (["d.y.npy"] if suffix == ".npy" else []))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_progress_reaches_the_end(tmp_path, suffix):
    """Progress is called with bytes that end at the size of the file."""
    X, y = rows()
    path = tmp_path / f"d{suffix}"
    data.save(path, X.toarray(), y)
    for read in (data.open, lambda path, progress: list(data.blocks(path, progress=progress))):
        seen = []
        read(path, progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen[-1] == (path.stat().st_size, path.stat().st_size)


CONTENTS = {
    "svmlight": (b"+1 3:0.5 7:1\n-1 1:2\n", "a9a"),
    "svmlight with tabs": (b"+1\t3:0.5\t7:1\n-1 1:2\n", "tabs.txt"),
    "svmlight behind comments": (b"# one, two\n\n1 qid:1 3:0.5 # x,y\n2 qid:1 1:1\n", "news.t"),
    "svmlight, first a label": (b"1\n2 1:1\n", "labels"),
    "csv": (b"a,b,label\n1,2,3\n", "data.txt"),
    "csv of text": (b"name;label\nAda: a;3\n", "data"),
    "tsv": (b"a\tb\tlabel\n1\t2\t3\n", "data.dat"),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("name", CONTENTS)
def test_told_by_content(tmp_path, name, pack):
    """A file whose suffix says nothing is read as what its first lines look like."""
    content, file = CONTENTS[name]
    (tmp_path / file).write_bytes(pack(content))
    got = data.open(tmp_path / file)
    assert (got.encoding is None) == name.startswith("svmlight")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".parquet", ".arrow"])
def test_told_by_magic(tmp_path, suffix):
    """A file without a suffix is told by its first bytes."""
    X, y = rows()
    data.save(tmp_path / f"d{suffix}", X.toarray(), y)
    (tmp_path / f"d{suffix}").rename(tmp_path / "d")
    assert_array_equal(dense(data.open(tmp_path / "d").X), X.toarray())


def test_scipy_and_numpy_read_ours_and_we_theirs(tmp_path):
    """.npz goes both ways through SciPy, as matrix and as array, .npy through NumPy, labels beside either."""
    X, y = rows()
    data.save(tmp_path / "a.npz", X, y)
    assert_array_equal(sp.load_npz(tmp_path / "a.npz").toarray(), X.toarray())
    for matrix in (X, sp.csr_matrix(X), X.astype(np.int64)):
        sp.save_npz(tmp_path / "b.npz", matrix)
        got = data.open(tmp_path / "b.npz")
        assert_array_equal(got.X.toarray(), matrix.toarray())
        assert isinstance(got.X, sp.csr_array)
        assert got.y is None
    np.save(tmp_path / "b.y.npy", y)
    assert_array_equal(data.open(tmp_path / "b.npz").y, y)
    np.save(tmp_path / "c.npy", np.asfortranarray(X.toarray()))
    got = data.open(tmp_path / "c.npy")
    assert_array_equal(got.X, X.toarray())
    assert got.y is None
    np.save(tmp_path / "c.y.npy", np.array(["a", "b"] * 15))
    assert data.open(tmp_path / "c.npy").y.tolist() == ["a", "b"] * 15


def npz(path, **arrays):
    """An npz of these arrays, and the parts of a sound CSR where none are given."""
    sound = {"data": [1.0, 2], "indices": [0, 2], "indptr": [0, 1, 2], "shape": [2, 3]}
    np.savez(path, **{name: np.asarray(value) for name, value in (sound | arrays).items()})


def test_bad_arrays(tmp_path):
    """Arrays that do not fit together are refused before they are trusted."""
    path = tmp_path / "x.npz"
    npz(path, y=[0, 1])
    assert data.open(path).y.tolist() == [0, 1]
    for arrays, message in (
        ({"indices": [0, 3]}, "an index outside of the 3 columns"),
        ({"indices": [0, -1]}, "an index outside of the 3 columns"),
        ({"indices": [0.0, 1.0]}, "do not make a CSR matrix"),
        ({"indptr": [0, 3, 2]}, "do not make a CSR matrix"),
        ({"indptr": [0, 1, 5]}, "do not make a CSR matrix"),
        ({"indptr": [1, 1, 2]}, "do not make a CSR matrix"),
        ({"indptr": [0, 2]}, "do not make a CSR matrix"),
        ({"indptr": []}, "do not make a CSR matrix"),
        ({"data": [[1.0, 2.0]]}, "do not make a CSR matrix"),
        ({"data": ["a", "b"]}, "do not make a CSR matrix"),
        ({"data": [1.0, np.nan]}, "1 values are nan or infinite"),
        ({"shape": [2]}, "do not make a CSR matrix"),
        ({"shape": [2**62, 3]}, "do not make a CSR matrix"),
        ({"format": b"csc"}, "a matrix in the format b'csc'; save it as CSR"),
        ({"y": [1, 2, 3]}, r"labels of shape \(3,\) for 2 rows"),
        ({"y": [1, np.nan]}, "labels of type float64 that are no names or finite numbers"),
    ):
        npz(path, **arrays)
        with pytest.raises(DataError, match=message):
            data.open(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(DataError, match="no array 'data' in the npz"):
        data.open(path)
    for array, message in (
        (np.ones(3), "an array of 1 dimensions"),
        (np.array([["a"]]), "an array of type <U1"),
        (np.array([[np.inf, 1]]), "1 values are nan or infinite"),
    ):
        np.save(tmp_path / "x.npy", array)
        with pytest.raises(DataError, match=message):
            data.open(tmp_path / "x.npy")


def header(shape, descr="<f8"):
    """The start of an npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def test_hostile_arrays(tmp_path):
    """A header that promises more than the file holds takes no memory; pickles are not opened."""
    path = tmp_path / "x.npy"
    for content, message in (
        (header((10**9, 10**6)), "its header speaks of shape"),
        (header((2**40, 2**40)) + bytes(64), "its header speaks of shape"),
        (header((2, 2)) + bytes(31), "its header speaks of shape"),
        (header((2, 2)) + bytes(33), "its header speaks of shape"),
        (header((-1, 2)), "its header speaks of shape"),
        (header((1, 1), "|O") + bytes(8), "an array of Python objects"),
        (b"\x93NUMPY\x09\x00", "not a sound npy array"),
        (b"", "not a sound npy array"),
        (b"junk" * 10, "not a sound npy array"),
    ):
        path.write_bytes(content)
        for read in (data.open, lambda path: list(data.blocks(path))):
            with pytest.raises(DataError, match=message):
                read(path)
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr("data.npy", content)
        with pytest.raises(DataError, match=message):
            data.open(tmp_path / "x.npz")
    (tmp_path / "x.npz").write_bytes(b"PK\x03\x04" + bytes(30))
    with pytest.raises(DataError, match="not a sound npz file"):
        data.open(tmp_path / "x.npz")
    for name in ("none.npz", "none.npy", "none.svm", "none"):
        with pytest.raises(DataError, match="no such file or directory; check the path"):
            data.open(tmp_path / name)


def test_stale_labels_are_not_taken(tmp_path):
    """Rows saved without labels beside somebody's labels would be read with them: that is refused."""
    data.save(tmp_path / "x.npy", np.ones((2, 2)), [0, 1])
    with pytest.raises(DataError, match=r"x\.y\.npy beside it would be taken for its labels; remove that file first"):
        data.save(tmp_path / "x.npy", np.zeros((2, 2)))
    assert data.open(tmp_path / "x.npy").X.all()


def test_options_that_mean_nothing(tmp_path):
    """Every option acts or raises, whatever the format."""
    X, y = rows()
    encoding = data.Encoding((data.Column("x1", "number"),), "label")
    paths = {suffix: tmp_path / f"d{suffix}" for suffix in (".svm", ".csv", ".parquet", ".npz", ".npy")}
    for path in paths.values():
        data.save(path, X.toarray(), y)
    for suffix, path in paths.items():
        is_table = suffix in (".csv", ".parquet")
        for options in ({"label": "x1"}, {"encoding": encoding}) if not is_table else ({"zero_based": False},):
            for read in (data.open, lambda path, **options: list(data.blocks(path, **options))):
                wanted = f"{next(iter(options))}.* means nothing to .* files; leave it out"
                if "encoding" in options:
                    wanted = "the columns asked for are those of a table, this is .*; give a table"
                with pytest.raises(DataError, match=wanted):
                    read(path, **options)
        with pytest.raises(DataError, match=r"dtype=int32; use float64 or float32"):
            data.open(path, dtype=np.int32)
        with pytest.raises(DataError, match=r"dtype=int32; use float64 or float32"):
            list(data.blocks(path, dtype=np.int32))
        if suffix != ".svm":
            with pytest.raises(DataError, match="7 columns, asked for were 9"):
                data.open(path, n_features=9)
            with pytest.raises(DataError, match="7 columns, asked for were 9"):
                list(data.blocks(path, n_features=9))
            with pytest.raises(DataError, match="zero_based=True means nothing"):
                data.save(path, X, y, zero_based=True)
            with pytest.raises(DataError, match="qid= means nothing"):
                data.save(path, X, y, qid=np.arange(30))
        if not is_table:
            with pytest.raises(DataError, match="names= means nothing"):
                data.save(path, X, y, names=list("abcdefg"))
        for read in (data.open, data.blocks):
            with pytest.raises(DataError, match="-1 threads"):
                read(path, threads=-1)
        with pytest.raises(DataError, match="rows=0"):
            list(data.blocks(path, rows=0))
    assert data.open(paths[".svm"], n_features=9).X.shape == (30, 9)


def test_save_refuses(tmp_path):
    """What cannot be written, or not read back, is refused, and no file appears."""
    X, y = rows(3)
    for path, matrix, labels, options, message in (
        ("x.doc", X, y, {}, "no format ends in '.doc'; use one of .svm"),
        ("x.npz.gz", X, y, {}, "no format ends in '.gz'"),
        ("x", X, y, {}, "no format ends in ''"),
        ("x.npy", X, y, {}, "X is sparse, .npy is dense; save it as .npz"),
        ("x.svm", X, ["a", "b", "c"], {}, "labels such as 'a'; number the classes"),
        ("x.csv", X, y[:2], {}, r"y has shape \(2,\) for 3 rows"),
        ("x.csv", X, [0, 1, np.nan], {}, "labels of type float64 that are no names or finite"),
        ("x.npz", X, np.array([1, None, "a"], dtype=object), {}, "labels of type object"),
        ("x.csv", np.full((3, 2), np.inf), y, {}, "X holds nan or inf"),
        ("x.csv", np.ones(3), y, {}, "X has 1 dimensions"),
        ("x.csv", np.ones((0, 3)), None, {}, r"X has shape \(0, 3\)"),
        ("x.csv", X, y, {"names": ["a"]}, "1 names for 7 columns"),
        ("x.csv", X, y, {"names": ["label", *"bcdefg"]}, "a feature is called 'label'"),
        ("no/x.csv", X, y, {}, "cannot be written: no such file or directory"),
        ("no/x.npz", X, y, {}, "cannot be written: no such file or directory"),
        ("no/x.parquet", X, y, {}, "cannot be written: no such file or directory"),
    ):
        with pytest.raises(DataError, match=message):
            data.save(tmp_path / path, matrix, labels, **options)
        assert not os.listdir(tmp_path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_nothing(monkeypatch, tmp_path, suffix):
    """If the system cannot bring the file onto the disk, the error says so, and the old file stands alone."""
    X, y = rows()
    path = tmp_path / f"d{suffix}"
    path.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="cannot be written: no space left on device; make room, or write elsewhere"):
        data.save(path, X.toarray(), y)
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "old"


@pytest.mark.parametrize("stored", [sp.csr_array, sp.csr_array.toarray])
def test_a_stores_rows(tmp_path, stored):
    """A store written from a file is opened by name, and its blocks are the file's rows in the store's own order."""
    from widemargin.data.store_writer import write_store

    X, y = rows()
    write_store(tmp_path / "s", [Dataset(stored(X), y)])
    whole = data.open(tmp_path / "s", threads=2)
    parts = list(data.blocks(tmp_path / "s", rows=8, n_features=7))
    assert [part.X.shape for part in parts] == [(8, 7), (8, 7), (8, 7), (6, 7)]
    got = np.column_stack([np.vstack([dense(part.X) for part in parts]), np.concatenate([part.y for part in parts])])
    wanted = np.column_stack([X.toarray(), y])
    assert_array_equal(got[np.lexsort(got.T)], wanted[np.lexsort(wanted.T)])
    assert_array_equal(dense(whole.X.X), got[:, :7])


def test_a_named_pipe(tmp_path):
    """A named pipe, which cannot be read twice, is read as the stream that it is."""
    X, y = rows()
    data.save(tmp_path / "d.svm", X, y)
    os.mkfifo(tmp_path / "pipe")
    text = (tmp_path / "d.svm").read_bytes()
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(text), daemon=True)
    writer.start()
    got = data.open(tmp_path / "pipe", n_features=7)
    writer.join()
    assert_array_equal(got.X.toarray(), X.toarray())


def test_query_ids_and_standard_input(monkeypatch, tmp_path):
    """svmlight text keeps its query ids through save and open, and is read from standard input as from a file."""
    X, y = rows()
    path = tmp_path / "d.svm"
    data.save(path, X, y, qid=np.arange(30) // 4, zero_based=True)
    got = data.open(path)
    assert_array_equal(got.qid, np.arange(30) // 4)
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    piped = list(data.blocks("-", rows=7, n_features=7))
    assert_array_equal(np.vstack([part.X.toarray() for part in piped]), got.X.toarray())
    assert_array_equal(np.concatenate([part.qid for part in piped]), got.qid)
    assert piped[0].source == "-"

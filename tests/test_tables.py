import builtins
import gzip
import io
import json
import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin import data
from widemargin.data import Column, DataError, Encoding, table_files


def dense(X):
    """X as an array, however it is stored."""
    return X if isinstance(X, np.ndarray) else X.toarray()


def frame(n=200, seed=0):
    """Numbers, booleans and text, with a label of each kind to choose from."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.standard_normal(n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "count": rng.integers(-5, 5, n),
            "old": rng.random(n) < 0.5,
            "y": rng.choice([-1, 1], n),
            "town": rng.choice(["Ulm", "Bonn", "a,b", 'say "hi"'], n),
        }
    )


def written(table, path):
    """The frame in a file of the suffix's format."""
    kind = path.name.partition(".")[2]
    if kind == "parquet":
        table.to_parquet(path, row_group_size=37)
    elif kind == "feather":
        table.to_feather(path)
    elif kind == "arrow":
        batch = pa.RecordBatch.from_pandas(table, preserve_index=False)
        with pa.ipc.new_stream(path, batch.schema) as writer:
            writer.write_batch(batch)
    else:
        table.to_csv(path, index=False, sep="\t" if kind.startswith("tsv") else ";" if kind == "x.csv" else ",")
    return path


def expected(table, columns):
    """pandas' one-hot of these columns: values sorted, all kept."""
    parts = []
    for name in columns:
        column = table[name]
        if column.dtype.kind in "biuf":
            parts.append(column.astype(float).rename(name).to_frame())
        else:
            parts.append(pd.get_dummies(column, prefix=name, prefix_sep="=", dtype=float))
    return pd.concat(parts, axis=1)


FILES = ["t.csv", "t.x.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.feather", "t.arrow"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("block", [400, 1 << 20])
def test_equals_pandas(monkeypatch, tmp_path, name, block):
    """Columns, names and labels equal pandas' get_dummies, in every format and however it is cut."""
    monkeypatch.setattr(table_files, "CSV_BLOCK", block)
    monkeypatch.setattr(table_files, "BATCH", block)
    table = frame()
    got = data.open(written(table, tmp_path / name))
    wanted = expected(table, ["size", "colour", "count", "old", "town"])
    assert got.names == tuple(wanted.columns)
    assert_array_equal(dense(got.X), wanted.to_numpy())
    assert_array_equal(got.y, table["y"].to_numpy(float))
    assert got.y.dtype == np.float64
    assert isinstance(got.X, np.ndarray)
    assert got.X.flags.c_contiguous
    single = data.open(tmp_path / name, dtype=np.float32)
    assert_array_equal(single.X, wanted.to_numpy(np.float32))


def test_many_categories_are_sparse(monkeypatch, tmp_path):
    """One-hot columns below a density of 0.3 come as CSR without stored zeros, equal to pandas' dense ones."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 3, 300), "id": [f"v{k}" for k in rng.integers(0, 40, 300)]})
    table["class"] = rng.choice(["spam", "ham"], 300)
    monkeypatch.setattr(table_files, "CSV_BLOCK", 500)
    got = data.open(written(table, tmp_path / "t.csv"))
    assert isinstance(got.X, sp.csr_array)
    assert got.X.indices.dtype == np.int32
    assert got.X.has_canonical_format
    assert (got.X.data != 0).all()
    wanted = expected(table, ["a", "id"])
    assert got.names == tuple(wanted.columns)
    assert_array_equal(got.X.toarray(), wanted.to_numpy())
    assert_array_equal(got.y, table["class"].to_numpy(str))


@pytest.mark.parametrize("name", FILES)
def test_encoding_carries_over(tmp_path, name):
    """Another file, with its columns in another order and fewer categories, gets the columns of the first (pandas')."""
    first, second = frame(), frame(30, seed=1)
    encoding = data.open(written(first, tmp_path / name)).encoding
    encoding = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    second["colour"] = "green"
    wanted = expected(second, ["size", "colour", "count", "old", "town"]).reindex(columns=encoding.names, fill_value=0)
    shuffled = second[["town", "y", "old", "count", "size", "colour"]]
    path = written(shuffled, tmp_path / f"second.{name.partition('.')[2]}")
    got = data.open(path, encoding=encoding)
    assert_array_equal(got.X, wanted.to_numpy())
    assert_array_equal(got.y, second["y"])
    unlabelled = written(shuffled.drop(columns="y"), tmp_path / f"third.{name.partition('.')[2]}")
    got = data.open(unlabelled, encoding=encoding)
    assert_array_equal(got.X, wanted.to_numpy())
    assert got.y is None


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
@pytest.mark.parametrize("known", [True, False])
def test_blocks_make_the_whole(monkeypatch, tmp_path, name, rows, known):
    """Blocks of any size, put together, are the whole file, whether its encoding is given or learnt."""
    monkeypatch.setattr(table_files, "CSV_BLOCK", 700)
    monkeypatch.setattr(table_files, "BATCH", 50)
    whole = data.open(written(frame(), tmp_path / name))
    parts = list(data.blocks(tmp_path / name, rows=rows, encoding=whole.encoding if known else None))
    assert [len(part.y) for part in parts] == [rows] * (200 // rows) + [200 % rows] * bool(200 % rows)
    assert_array_equal(np.vstack([part.X for part in parts]), whole.X)
    assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)
    assert all(part.encoding == whole.encoding for part in parts)


def test_a_stream_of_csv(tmp_path):
    """CSV from a stream, with the encoding of a file: the file's rows; without it an error that says so."""
    path = written(frame(), tmp_path / "t.csv")
    whole = data.open(path)
    parts = list(data.blocks(io.BytesIO(path.read_bytes()), rows=64, encoding=whole.encoding))
    assert_array_equal(np.vstack([part.X for part in parts]), whole.X)
    packed = list(data.blocks(io.BytesIO(gzip.compress(path.read_bytes())), rows=64, encoding=whole.encoding))
    assert_array_equal(np.vstack([part.X for part in packed]), whole.X)


def test_late_surprises(monkeypatch, tmp_path):
    """What a column holds is decided by the whole file: numbers with text behind them are categories from the start."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,label\n" + "1,1,0\n" * 100 + "x,2.5,1\n" + "true,3,0\n")
    monkeypatch.setattr(table_files, "CSV_BLOCK", 64)
    got = data.open(path)
    assert got.names == ("a=1", "a=true", "a=x", "b")
    assert dense(got.X).sum(axis=0).tolist() == [100, 1, 1, 105.5]


def test_files_without_names(tmp_path):
    """A label given by number means a file without names; later ones may come without the label."""
    path = tmp_path / "t.csv"
    path.write_text("1,5.5,red\n0,6,blue\n1,7,red\n")
    got = data.open(path, label=0)
    assert got.names == ("f1", "f2=blue", "f2=red")
    assert_array_equal(dense(got.X), [[5.5, 0, 1], [6, 1, 0], [7, 0, 1]])
    assert got.y.tolist() == [1, 0, 1]
    path.write_text("5.5,red\n")
    later = data.open(path, encoding=got.encoding)
    assert_array_equal(dense(later.X), [[5.5, 0, 1]])
    assert later.y is None
    path.write_text("5.5,red,9\n")
    assert data.open(path, label=-1).y.tolist() == [9]


@pytest.mark.parametrize(("values", "kind"), [(["a", "b"], "U"), ([True, False], "b"), ([1, 2], "f"), ([0.5, 1], "f")])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_labels(tmp_path, values, kind, name):
    """Labels are numbers, truth values or names, as they stand in the file."""
    for column in ("Label", "Y", "target", "CLASS"):
        table = pd.DataFrame({"x": [1.5, 2], column: values})
        got = data.open(written(table, tmp_path / name))
        assert got.y.tolist() == values
        assert got.y.dtype.kind == kind
        assert got.encoding.label == column


def test_typed_columns(tmp_path):
    """Every type of number, truth value and text that Arrow has becomes the numbers written down here."""
    table = pa.table(
        {
            "i8": pa.array([1, 2, 3], pa.int8()),
            "u64": pa.array([1, 2, 2**60], pa.uint64()),
            "f16": pa.array(np.array([0.5, 1, 2], np.float16)),
            "decimal": pa.array([1, 2, 3], pa.int32()).cast(pa.decimal128(12, 2)),
            "flag": pa.array([True, False, True]),
            "large": pa.array(["b", "a", "b"], pa.large_string()),
            "dictionary": pa.array(["q", "p", "q"]).dictionary_encode(),
            "numbered": pa.array([7, 8, 7]).dictionary_encode(),
            "y": [0, 1, 0],
        }
    )
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    got = data.open(tmp_path / "t.arrow")
    names = ["i8", "u64", "f16", "decimal", "flag", "large=a", "large=b", "dictionary=p", "dictionary=q"]
    names += ["numbered=7", "numbered=8"]
    assert list(got.names) == names
    rows = [
        [1, 1, 0.5, 1, 1, 0, 1, 0, 1, 1, 0],
        [2, 2, 1, 2, 0, 1, 0, 1, 0, 0, 1],
        [3, 2**60, 2, 3, 1, 0, 1, 0, 1, 1, 0],
    ]
    assert_array_equal(got.X, rows)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_dictionaries_that_differ(tmp_path, rows):
    """Batches whose dictionaries differ are the text that they stand for."""
    batches = [
        pa.record_batch({"c": pa.array(values).dictionary_encode(), "y": pa.array([0, 1])})
        for values in (["b", "a"], ["c", "b"], ["a", "a"])
    ]
    with pa.ipc.new_stream(tmp_path / "t.arrow", batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    parts = list(data.blocks(tmp_path / "t.arrow", rows=rows))
    assert parts[0].names == ("c=a", "c=b", "c=c")
    assert np.vstack([dense(part.X) for part in parts]).argmax(axis=1).tolist() == [1, 0, 2, 1, 0, 0]


BAD_TABLES = {
    "": ":1: the file is empty",
    "a,label\n": ": no rows; give a line for each row",
    "a,b\n1,2\n": "no column is called label; name it with label=, or give its number",
    "y,label,a\n1,2,3\n": "the columns 'y', 'label' may all be the label; name it with label=",
    "a,a,label\n1,2,3\n": "the column 'a' comes twice",
    "label\n1\n": "no columns besides the label",
    "a,b,label\n1,,0\n,NA,1\n3,4,\n": ": 4 missing values, in 'a' (1), 'b' (2), 'label' (1); fill them in",
    "a,label\n2020-01-31,1\n2021-12-01,0\n": "the column 'a' holds values of type date; make numbers or text of it",
    "a,label\n12:30:00,1\n": "the column 'a' holds values of type time",
    "a,label\n1,2\n3\n": ":3: 1 fields where there are 2 columns; quote fields",
    "a,label\n1,inf\n": "row 1: 'inf' in the column 'label' is not a finite number",
    "a,label\ninf,1\n": "row 1: 'inf' in the column 'a' is not a finite number",
    "a,label\n1,\0\n": ":1: the file looks like binary data",
    "a,label\n1,\udcff\n": "the file is not UTF-8 text; save it as UTF-8",
}


@pytest.mark.parametrize("text", BAD_TABLES, ids=lambda text: ascii(text)[:40])
def test_bad_tables(tmp_path, text):
    """Each bad table is refused in one line that says what, where and what to do."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=re.escape(BAD_TABLES[text])) as caught:
        data.open(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).isprintable()


def test_missing_values_are_all_counted(monkeypatch, tmp_path):
    """Nulls and NaN are counted over the whole file, with an encoding or without, and named block by block."""
    monkeypatch.setattr(table_files, "BATCH", 16)
    table = frame()
    encoding = data.open(written(table, tmp_path / "t.parquet")).encoding
    table.loc[50:54, "size"] = np.nan
    table.loc[[70, 180], "colour"] = None
    path = written(table, tmp_path / "t.parquet")
    for known in (None, encoding):
        with pytest.raises(DataError, match=r"7 missing values, in 'size' \(5\), 'colour' \(2\); fill them in"):
            data.open(path, encoding=known)
    with pytest.raises(DataError, match=r"5 missing values, in 'size' \(5\), the first in row 51; fill"):
        list(data.blocks(path, rows=20, encoding=encoding))


def test_another_file_must_match(monkeypatch, tmp_path):
    """What the second file lacks, adds or spells anew is named, with its row."""
    encoding = data.open(written(frame(), tmp_path / "t.csv")).encoding
    other = frame(50, seed=2)
    path = tmp_path / "u.csv"
    monkeypatch.setattr(table_files, "CSV_BLOCK", 300)

    def refused(table, message):
        for read in (data.open, lambda *args, **options: list(data.blocks(*args, rows=9, **options))):
            with pytest.raises(DataError, match=message):
                read(written(table, path), encoding=encoding)

    refused(other.drop(columns="size"), "the column 'size' is missing; the columns are 'colour', 'count'")
    refused(other.drop(columns=["size", "old"]), "columns are missing: 'size', 'old'")
    refused(other.assign(more=1, again=2), "columns that were not there before: 'more', 'again'; drop them")
    unknown = other.copy()
    unknown.loc[33, "colour"] = "mauve"
    refused(unknown, "row 34: 'mauve' in the column 'colour' is none of the values known: 'blue', 'green', 'red'; ")
    letters = other.astype({"count": str})
    letters.loc[21, "count"] = "many"
    refused(letters, "row 22: 'many' in the column 'count' is not a number")
    refused(other.assign(old="perhaps"), "row 1: 'perhaps' in the column 'old' is not true or false")
    pq.write_table(pa.table(other.assign(size=pd.Timestamp("2020-01-01"))), tmp_path / "u.parquet")
    with pytest.raises(DataError, match="the column 'size' is of type timestamp"):
        data.open(tmp_path / "u.parquet", encoding=encoding)


def test_bad_files(tmp_path):
    """What is no table, whatever it is called, is refused in one line."""
    cases = {
        "junk.parquet": (b"junk", "not a sound Parquet file"),
        "cut.parquet": (b"PAR1" + bytes(50), "not a sound Parquet file"),
        "junk.arrow": (b"junk", "not a sound Arrow file"),
        "really.csv": (b"PAR1junk", "not text but looks like Parquet"),
        "cut.csv.gz": (gzip.compress(b"a,label\n" + os.urandom(20).hex().encode())[:-12], "gzip data end too early"),
    }
    for name, (content, message) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=message) as caught:
            data.open(path)
        assert str(caught.value).isprintable()
    for name in ("none.csv", "none.parquet", "none.arrow"):
        with pytest.raises(DataError, match="no such file or directory; check the path"):
            data.open(tmp_path / name)
    path = written(frame(), tmp_path / "t.csv")
    for label, message in (
        ("z", "no column 'z'; the columns are 'size'"),
        (5, "t.csv:1: the first line looks like names: 'size', 'colour'"),
    ):
        with pytest.raises(DataError, match=message):
            data.open(path, label=label)
    (tmp_path / "plain.csv").write_text("1,a\n2,b\n")
    for label, message in ((2, "no column 2 among 2"), (-3, "no column -3")):
        with pytest.raises(DataError, match=message):
            data.open(tmp_path / "plain.csv", label=label)


def test_without_pyarrow(monkeypatch, tmp_path):
    """Without pyarrow, the message has the command that installs it."""
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    (tmp_path / "t.csv").write_text("a,label\n1,2\n")
    with pytest.raises(DataError, match=r"tables need pyarrow; run: pip install 'widemargin\[tables\]'"):
        data.open(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet", "t.feather", "t.arrow"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_written_reads_back(monkeypatch, tmp_path, name, dtype):
    """What is written reads back to the same bits, labels and names, dense or sparse."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(table_files, "BATCH", 7)
    X = (rng.standard_normal((40, 3)) * 10.0 ** rng.integers(-30, 30, (40, 3)) * (rng.random((40, 3)) < 0.6)).astype(
        dtype
    )
    for matrix in (X, sp.csr_array(X)):
        for y in (rng.standard_normal(40), rng.choice(["a b", 'c"d', "e,f"], 40), rng.integers(0, 2, 40)):
            data.save(tmp_path / name, matrix, y, names=["p", "q,r", "s"])
            got = data.open(tmp_path / name, dtype=dtype)
            assert got.names == ("p", "q,r", "s")
            assert_array_equal(got.X, X)
            assert got.X.dtype == dtype
            assert_array_equal(got.y, y)
    assert os.listdir(tmp_path) == [name]


columns = st.one_of(
    st.builds(Column, st.text(max_size=5), st.sampled_from(["number", "boolean"])),
    st.builds(
        lambda name, values: Column(name, "category", tuple(sorted(values))),
        st.text(max_size=5),
        st.sets(st.text(max_size=5), min_size=1, max_size=4),
    ),
)
encodings = st.builds(
    Encoding,
    st.lists(columns, min_size=1, max_size=5, unique_by=lambda column: column.name).map(tuple),
    st.one_of(st.none(), st.just("the label itself")),
    st.sampled_from(["number", "boolean", "category"]),
    st.booleans(),
)


@given(encodings)
def test_encoding_as_json(encoding):
    """An encoding comes back from JSON text as it was, and has a name for each column of X."""
    assert Encoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding
    assert len(encoding.names) == sum(column.width for column in encoding.columns)


GOOD = {
    "columns": [{"name": "a", "kind": "number"}, {"name": "b", "kind": "category", "categories": ["u", "v"]}],
    "label": "y",
    "label_kind": "number",
    "header": True,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: [], "is not an object"),
        (lambda data: data | {"more": 1}, "has not the fields of one"),
        (lambda data: data | {"columns": []}, "has no columns"),
        (lambda data: data | {"columns": "ab"}, "has no columns"),
        (lambda data: data | {"columns": [3]}, "a column that is not an object"),
        (lambda data: data | {"columns": [{"kind": "number"}]}, "a column without a name"),
        (lambda data: data | {"columns": [{"name": "a", "kind": "code"}]}, "a column of no known kind"),
        (lambda data: data | {"columns": [{"name": "a", "kind": ["number"]}]}, "a column of no known kind"),
        (lambda data: data | {"columns": [{"name": "a", "kind": "number", "run": "x"}]}, "a column of odd fields"),
        (lambda data: data | {"columns": [{"name": "a", "kind": "category"}]}, "a column of odd fields"),
        (lambda data: data | {"columns": [data["columns"][1] | {"categories": []}]}, "without categories"),
        (lambda data: data | {"columns": [data["columns"][1] | {"categories": 3}]}, "categories that are no list"),
        (lambda data: data | {"columns": [data["columns"][1] | {"categories": [1]}]}, "a category that is no text"),
        (lambda data: data | {"columns": [data["columns"][1] | {"categories": ["v", "u"]}]}, "categories out of order"),
        (lambda data: data | {"columns": [data["columns"][1] | {"categories": ["u", "u"]}]}, "categories out of order"),
        (lambda data: data | {"columns": data["columns"] * 2}, "names a column twice"),
        (lambda data: data | {"label": 3}, "a label that is no name"),
        (lambda data: data | {"label": "a"}, "has its label among the columns"),
        (lambda data: data | {"label_kind": "x"}, "a label of no known kind"),
        (lambda data: data | {"label_kind": []}, "a label of no known kind"),
        (lambda data: data | {"header": 1}, "a header that is not true or false"),
    ],
)
def test_hostile_encodings(change, message):
    """Anything that to_json would not write is refused."""
    assert Encoding.from_json(GOOD).names == ("a", "b=u", "b=v")
    with pytest.raises(DataError, match=message):
        Encoding.from_json(change(GOOD), source="model")

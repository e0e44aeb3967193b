"""Mistakes at the command line: each is answered by one line that says what, where and what to do."""

import bz2
import gzip
import io
import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import widemargin
from heart import heart, run, svmlight, table
from widemargin.data import svmlight as svmlight_reader


def write(name, content):
    """Makes a file, bytes or text, of a mistake's folder."""

    def make(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def altered(name, change, source=None):
    """Makes a file of another's bytes, changed."""

    def make(folder):
        (folder / name).write_bytes(change((folder / (source or name)).read_bytes()))

    return make


def model(**changes):
    """Bytes of a model whose metadata say something else."""

    def change(content):
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + size])
        about = json.loads(header["__metadata__"]["widemargin"]) | changes
        header["__metadata__"]["widemargin"] = json.dumps(about)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + content[8 + size :]

    return altered("bad.safetensors", change, "heart.safetensors")


def proof(**changes):
    """A model whose certificate says something else."""
    return model(certificate=changes)


def store(**changes):
    """A store whose description says something else."""

    def make(folder):
        shutil.copytree(folder / "heart.store", folder / "bad.store")
        place = folder / "bad.store" / "store.json"
        place.write_text(json.dumps(json.loads(place.read_text()) | changes))

    return make


def damaged(array, change):
    """A store with another array."""

    def make(folder):
        shutil.copytree(folder / "heart.store", folder / "bad.store")
        altered(array, change)(folder / "bad.store")

    return make


def flipped(content):
    """One bit is another."""
    return content[:100] + bytes([content[100] ^ 4]) + content[101:]


def directory(name):
    """Makes a directory with something in it."""

    def make(folder):
        (folder / name).mkdir()
        (folder / name / "note").write_text("mine")

    return make


def state(*arguments, change=None):
    """Leaves the state of a run of these options."""

    def make(folder):
        from widemargin.checkpoint import Checkpoint

        saved = []

        def visit(self, state):
            if not saved:
                saved.append(self.save(state()))
                raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpoint, "visit", visit)
            assert run("train", "heart.svm", "--checkpoint", "state", *arguments) == 130
        if change:
            altered("state.npz", change)(folder / "state")

    return make


def npz(**arrays):
    """Bytes of an .npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array, **options):
    """Bytes of an .npy file."""
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def cut(content):
    """The first half."""
    return content[: len(content) // 2]


class Hostile:
    """Runs code when a pickle of it is loaded."""

    def __reduce__(self):
        return open, ("run", "w")


X, Y = heart()
TEXT = svmlight(X, Y)
TABLE = table(X, Y)
LINES = TABLE.splitlines(keepends=True)
HEAD = "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 13\nbias -1\nw\n"


class Mistake(NamedTuple):
    """What is typed, what must stand in the line, and what is made before."""

    command: str
    says: str
    make: Any = None


TRAIN = "train bad.svm -o m.safetensors"
CSV = "train bad.csv --label disease -o m.safetensors"
PREDICT = "predict bad.safetensors heart.svm"

MISTAKES = {
    # the text of svmlight
    "a pair cut off": Mistake(TRAIN, r"bad.svm:271: '3:' .*; write", write("bad.svm", TEXT + "1 1:2 3:")),
    "a pair without a colon": Mistake(TRAIN, r"bad.svm:1: '7' .*; write pairs", write("bad.svm", "1 3:1 7\n-1 1:1\n")),
    "more columns than memory": Mistake(
        TRAIN,
        r"bad.svm: 2,000,000,000,000 columns, .* 64,000 GB; number",
        write("bad.svm", "1 1:1\n-1 2000000000000:1\n"),
    ),
    "a blank behind the colon": Mistake(TRAIN, r"bad.svm:1: '3:' .*; write", write("bad.svm", "1 3: 1\n-1 1:1\n")),
    "indices out of order": Mistake(
        TRAIN, r"bad.svm:2: index 17 after 23; indices must increase", write("bad.svm", "1 1:1\n-1 23:1 17:1\n")
    ),
    "an index twice": Mistake(TRAIN, r"bad.svm:1: index 3 after 3; ", write("bad.svm", "1 3:1 3:1\n-1 1:1\n")),
    "index 0, counted from 1": Mistake(
        TRAIN + " --one-based", r"bad.svm:1: index 0 .*; pass --zero-based", write("bad.svm", "1 0:1\n-1 1:1\n")
    ),
    "index 2^63": Mistake(
        TRAIN, r"bad.svm:2: index 9223372036854775808 is too large; ", write("bad.svm", f"1 1:1\n-1 {2**63}:1\n")
    ),
    "an index beyond all integers": Mistake(
        TRAIN, r"bad.svm:1: index 9{20}… is too large; ", write("bad.svm", f"1 {'9' * 400}:1\n-1 1:1\n")
    ),
    "a negative index": Mistake(TRAIN, r"bad.svm:1: index -3 is negative; ", write("bad.svm", "1 -3:1\n-1 1:1\n")),
    "NaN": Mistake(TRAIN, r"bad.svm:2: '2:nan' is not a finite number; remove", write("bad.svm", "1 1:1\n-1 2:nan\n")),
    "inf": Mistake(TRAIN, r"bad.svm:2: '2:-inf' is not a finite number; ", write("bad.svm", "1 1:1\n-1 2:-inf\n")),
    "a number too large": Mistake(TRAIN, r"bad.svm:1: '2:1e999' .*; ", write("bad.svm", "1 2:1e999\n-1 1:1\n")),
    "letters": Mistake(TRAIN, r"bad.svm:2: '2:abc' .*; write pairs", write("bad.svm", "1 1:1\n-1 2:abc\n")),
    "prose": Mistake(TRAIN, r"bad.svm:1: 'Dear' is not a label; begin each", write("bad.svm", "Dear Sir or Madam\n")),
    "a label that is NaN": Mistake(TRAIN, r"bad.svm:1: 'nan' .*; ", write("bad.svm", "nan 1:1\n-1 1:1\n")),
    "several labels": Mistake(TRAIN, r"bad.svm:1: '1,2' are several labels; ", write("bad.svm", "1,2 1:1\n-1 1:1\n")),
    "a qid on some lines": Mistake(
        TRAIN, r"bad.svm:2: no qid here, .*; give every line", write("bad.svm", "1 qid:1 1:1\n-1 1:1\n")
    ),
    "binary junk": Mistake(
        TRAIN, r"bad.svm:1: .* looks like binary data; give text", write("bad.svm", bytes(range(256)) * 99)
    ),
    "a line without end": Mistake(
        TRAIN, r"bad.svm:1: a line of more than 2 MB; give one row", write("bad.svm", "1" + " 1:1" * 750_000)
    ),
    "an empty file": Mistake(TRAIN, r"bad.svm:1: the file is empty; give lines like", write("bad.svm", "")),
    "only comments": Mistake(TRAIN, r"bad.svm:1: no rows, only comments .*; ", write("bad.svm", "# a\n\n# b\n")),
    "a picture": Mistake(TRAIN, r"bad.svm:1: .*; give text", write("bad.svm", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")),
    # files that are not there, or not what they seem
    "no such file": Mistake("train gone.svm", r"gone.svm: no such file or directory; check the path"),
    "no such test file": Mistake("train heart.svm --test gone.svm", r"gone.svm: no such file .*; check the path"),
    "no such file to cache": Mistake("train gone.svm --cache", r"gone.svm: no such file or directory; check the path"),
    "no such file for a state": Mistake("train gone.svm --checkpoint a/b", r"gone.svm: no such file .*; check"),
    "no such model": Mistake(
        "predict gone.safetensors heart.svm", r"gone.safetensors: no such file .*; check the path"
    ),
    "nothing to tell about": Mistake("info gone", r"gone: no such file or directory; check the path"),
    "a directory that is no store": Mistake(
        "train folder", r"folder: a directory without a store.json; name a file", directory("folder")
    ),
    "a directory as model": Mistake("predict heart.store heart.svm", r"heart.store: a directory, not a model; give"),
    "a text file as directory": Mistake("train heart.svm/x.svm", r"heart.svm/x.svm: not a directory; check the path"),
    "gzip cut short": Mistake(
        "train bad.svm.gz",
        r"bad.svm.gz:\d+: the gzip data end too early; get the whole file",
        write("bad.svm.gz", cut(gzip.compress(TEXT.encode()))),
    ),
    "bzip2 cut short": Mistake(
        "train bad.svm.bz2",
        r"bad.svm.bz2:1: the bzip2 data end too early; get",
        write("bad.svm.bz2", cut(bz2.compress(TEXT.encode()))),
    ),
    "gzip with a bit flipped": Mistake(
        "train bad.svm.gz",
        r"bad.svm.gz:1: the gzip data are corrupt.*; get",
        write("bad.svm.gz", flipped(gzip.compress(TEXT.encode()))),
    ),
    "gzip of junk": Mistake(
        "train bad.svm.gz",
        r"bad.svm.gz:1: .* looks like binary data; give text",
        write("bad.svm.gz", gzip.compress(bytes(range(256)) * 9)),
    ),
    "gzip of a zip": Mistake(
        "train bad.svm.gz", r"bad.svm.gz:1: .*looks like npz or zip; ", write("bad.svm.gz", gzip.compress(npz(a=X)))
    ),
    "a compression that is not ours": Mistake(
        TRAIN, r"bad.svm:1: .*looks like xz; ", write("bad.svm", b"\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46")
    ),
    "Parquet by another name": Mistake(
        TRAIN, r"bad.svm:1: .*looks like Parquet; name it", write("bad.svm", b"PAR1" * 9)
    ),
    "Parquet that is none": Mistake(
        "info bad.parquet", r"bad.parquet: not a sound Parquet file .*; write it again", write("bad.parquet", "PAR1 no")
    ),
    "Arrow that is none": Mistake(
        "info bad.arrow", r"bad.arrow: not a sound Arrow file .*; write it again", write("bad.arrow", "ARROW1 no")
    ),
    "npz that is none": Mistake(
        "info bad.npz", r"bad.npz: not a sound npz .*; write it", write("bad.npz", "PK\3\4 no")
    ),
    "npz of something else": Mistake(
        "info bad.npz", r"bad.npz: no array 'data' .*; write CSR", write("bad.npz", npz(weights=X))
    ),
    "npz with a column too many": Mistake(
        "train bad.npz",
        r"bad.npz: an index outside of the 2 columns; write it again",
        write("bad.npz", npz(data=[1.0], indices=[2], indptr=[0, 1], shape=[1, 2], y=[1])),
    ),
    "npy of Python objects": Mistake(
        "train bad.npy", r"bad.npy: an array of Python objects; save numbers", write("bad.npy", npy([[Hostile()]]))
    ),
    "npy without labels": Mistake("train bad.npy", r"bad.npy: no labels; give", write("bad.npy", npy(X))),
    "npy cut short": Mistake("info bad.npy", r"bad.npy: its header .*; write", write("bad.npy", cut(npy(X)))),
    "npy with NaN": Mistake(
        "predict heart.safetensors bad.npy", r"bad.npy: .* nan .*; ", write("bad.npy", npy(np.full((3, 13), np.nan)))
    ),
    # labels
    "one class": Mistake(TRAIN, r"bad.svm: only one class, 1; give rows", write("bad.svm", svmlight(X, abs(Y)))),
    "quantities as labels": Mistake(
        TRAIN, r"bad.svm: the label 0.5 is no class .*; give whole", write("bad.svm", "0.5 1:1\n1 1:2\n2.25 1:3\n")
    ),
    "other labels in the test file": Mistake(
        "train heart.svm --test bad.svm",
        r"bad.svm: its labels are 0, 2, the model knows -1, 1; write them alike",
        write("bad.svm", svmlight(X, Y + 1)),
    ),
    "other labels to evaluate": Mistake(
        "evaluate heart.safetensors bad.svm",
        r"bad.svm: its labels are 5, .*; ",
        write("bad.svm", svmlight(X, 0 * Y + 5)),
    ),
    "words as labels for LIBLINEAR": Mistake(
        "train heart.csv --label disease --format liblinear", r"heart.model: the class 'no' is no label .*; number"
    ),
    "words as labels for svmlight": Mistake(
        "convert heart.csv new.svm --label disease", r"new.svm: labels such as '(yes|no)'; number"
    ),
    # tables
    "missing values": Mistake(
        CSV,
        r"bad.csv: 3 missing values, in 'age' \(2\), 'town' \(1\); fill them in",
        write(
            "bad.csv",
            re.sub("^[^,]*,", ",", "".join(LINES[:3]), count=0, flags=re.M).replace(",sex", "age,sex", 1)
            + re.sub(r"Bern|Oslo|Rome", "NA", LINES[3])
            + "".join(LINES[4:]),
        ),
    ),
    "no label column": Mistake("train heart.csv", r"heart.csv: no column is called label; name it with --label"),
    "no such label column": Mistake(
        "train heart.csv --label sick", r"heart.csv: no column 'sick'; the columns are 'age', .* and 7 more"
    ),
    "a label by number in a file with names": Mistake(
        "train heart.csv --label 14", r"heart.csv:1: the first line looks like names: 'age', .*; give --label the name"
    ),
    "a label column beyond the last": Mistake(
        "train bad.csv --label 9", r"bad.csv: no column 9 among 2; columns count from 0", write("bad.csv", "1,2\n3,4\n")
    ),
    "a label for svmlight": Mistake("train heart.svm --label 3", r"heart.svm: --label means nothing .*; leave it out"),
    "the base of a table": Mistake(
        "train heart.csv --label disease --zero-based", r"heart.csv: --zero-based means nothing to csv files; leave"
    ),
    "a column missing": Mistake(
        "predict table.safetensors bad.csv",
        r"bad.csv: the column 'age' is missing; the columns are 'sex'",
        write("bad.csv", re.sub("^[^,]*,", "", TABLE, flags=re.M)),
    ),
    "a column that was not there": Mistake(
        "evaluate table.safetensors bad.csv",
        r"bad.csv: columns that were not there before: 'new'; drop them",
        write("bad.csv", "".join(f"{'1' if k else 'new'},{line}" for k, line in enumerate(LINES))),
    ),
    "a category never seen": Mistake(
        "predict table.safetensors bad.csv",
        r"bad.csv: row \d+: 'Paris' in the column 'town' is none of the values known: 'Bern'.*; replace it",
        write("bad.csv", TABLE.replace("Oslo", "Paris", 1)),
    ),
    "a category never seen, in the test file": Mistake(
        "train heart.csv --label disease --test bad.csv",
        r"bad.csv: row \d+: 'Paris' .*; replace it",
        write("bad.csv", TABLE.replace("Oslo", "Paris", 1)),
    ),
    "a word among numbers": Mistake(
        "predict table.safetensors bad.csv",
        r"bad.csv: row 1: 'old' in the column 'age' is not a number; ",
        write("bad.csv", LINES[0] + re.sub("^[^,]*", "old", LINES[1])),
    ),
    "a row too short": Mistake(
        CSV, r"bad.csv:\d+: 2 fields where there are 15 columns; quote", write("bad.csv", TABLE + "1,2\n")
    ),
    "a column twice": Mistake(
        CSV, r"bad.csv: the column 'age' comes twice; give each", write("bad.csv", TABLE.replace("sex", "age", 1))
    ),
    "names and no rows": Mistake(CSV, r"bad.csv: no rows; give a line", write("bad.csv", LINES[0])),
    "an empty table": Mistake(CSV, r"bad.csv:1: the file is empty; give a line of column names", write("bad.csv", "")),
    "the label alone": Mistake(CSV, r"bad.csv: no columns besides the label; ", write("bad.csv", "disease\na\nb\n")),
    "a table in Latin-1": Mistake(
        CSV,
        r"bad.csv: the file is not UTF-8 text; save",
        write("bad.csv", TABLE.replace("Rome", "Zürich").encode("latin-1")),
    ),
    "a table for a model of none, too narrow": Mistake(
        "predict heart.safetensors bad.csv --label 2",
        r"bad.csv: 2 columns, the model has 13; use the columns",
        write("bad.csv", "1,2,1\n3,4,-1\n"),
    ),
    "svmlight for a model of a table": Mistake(
        "predict table.safetensors heart.svm",
        r"heart.svm: the columns asked for are those of a table, .*; give a table",
    ),
    "a store for a model of another table": Mistake(
        "predict table.safetensors heart.store", r"heart.store: its columns are not those .*; give the table"
    ),
    "a narrower dense array": Mistake(
        "predict heart.safetensors bad.npy",
        r"bad.npy: 12 columns, the model has 13; use",
        write("bad.npy", npy(X[:, 1:])),
    ),
    # models
    "an empty model": Mistake(PREDICT, r"bad.safetensors: an empty file; save", write("bad.safetensors", "")),
    "a model cut short": Mistake(
        PREDICT,
        r"bad.safetensors: a damaged .*; copy or save",
        altered("bad.safetensors", lambda b: b[:-8], "heart.safetensors"),
    ),
    "a model cut in its header": Mistake(
        PREDICT, r"bad.safetensors: .* cut short .*; copy or save", altered("bad.safetensors", cut, "heart.safetensors")
    ),
    "a model of junk": Mistake(
        PREDICT, r"bad.safetensors: neither .*; save one", write("bad.safetensors", b"\1\2" * 99)
    ),
    "a model that claims 2^60 bytes": Mistake(
        PREDICT, r"bad.safetensors: .*; copy", write("bad.safetensors", struct.pack("<Q", 1 << 60) + b"{}")
    ),
    "a pickle": Mistake(
        PREDICT,
        r"bad.safetensors: a pickle, which could run any code; load",
        write("bad.safetensors", pickle.dumps(Hostile())),
    ),
    "data as model": Mistake(
        "predict heart.svm heart.svm", r"heart.svm: svmlight data, not a model; train on it first"
    ),
    "a newer model": Mistake(PREDICT, r"bad.safetensors: of format 99, .*; pip install --upgrade", model(format=99)),
    "a model of unknown loss": Mistake(PREDICT, r"bad.safetensors: unknown loss 'evil'; choose", model(loss="evil")),
    "a model with too many classes": Mistake(
        PREDICT, r"bad.safetensors: coef has shape .*; ", model(classes={"type": "int", "values": list(range(10**4))})
    ),
    "a model whose C is text": Mistake(
        "info bad.safetensors", r"bad.safetensors: its C is not .*; save", model(C="much")
    ),
    "a certificate of lists": Mistake(
        "info bad.safetensors", r"bad.safetensors: its certificate is not one .*; save", proof(relative_gap=[1], tol={})
    ),
    "a certificate with odd weights": Mistake(
        "certify bad.safetensors heart.svm", r"bad.safetensors: its certificate .*; save", proof(class_weight=[[[], 1]])
    ),
    "a certificate of odd parts": Mistake(
        "report bad.safetensors heart.svm", r"bad.safetensors: its certificate .*; save", proof(each=["all"])
    ),
    "an encoding that is none": Mistake(
        "predict bad.safetensors heart.csv", r"bad.safetensors: the encoding .*; take", model(encoding={"columns": 3})
    ),
    "an encoding of another width": Mistake(
        "predict bad.safetensors heart.csv",
        r"bad.safetensors: its encoding makes 1 columns, it has weights for 13; train",
        model(
            encoding={
                "columns": [{"name": "a", "kind": "number"}],
                "label": "b",
                "label_kind": "number",
                "header": True,
            }
        ),
    ),
    "a LIBLINEAR model cut short": Mistake(
        "predict bad.model heart.svm",
        r"bad.model:6: .* should follow.*; the file is cut short",
        write("bad.model", HEAD + "1\n2\n"),
    ),
    "a LIBLINEAR model with letters": Mistake(
        "predict bad.model heart.svm",
        r"bad.model:7: a weight that is not .*; train",
        write("bad.model", HEAD + "one \n" * 13),
    ),
    "a LIBLINEAR model of regression": Mistake(
        "predict bad.model heart.svm",
        r"bad.model:1: .* is a regression, .*; train a classifier",
        write("bad.model", HEAD.replace("SVC", "SVR") + "1 \n" * 13),
    ),
    "a LIBLINEAR model without C": Mistake(
        "certify bad.model heart.svm", r"bad.model: says no C; say it with -C", write("bad.model", HEAD + "1 \n" * 13)
    ),
    "probabilities of a hinge model": Mistake(
        "predict heart.safetensors heart.svm --proba", r"heart.safetensors: a model of the hinge loss .*; use --scores"
    ),
    # stores
    "a newer store": Mistake("train bad.store", r"bad.store: a store of version 99, .*; update", store(version=99)),
    "a cache that is a store of its own": Mistake(
        "train heart.svm --cache heart.store", r"heart.store: a store that was not made by --cache; choose another name"
    ),
    "a store of something else": Mistake(
        "info bad.store", r"bad.store/store.json: not the .*; remove it and convert", store(format="x")
    ),
    "a store of odd types": Mistake(
        "info bad.store", r"bad.store/store.json: not .*; remove it and convert", store(arrays={"x": "?!"})
    ),
    "a store with an array outside": Mistake(
        "info bad.store",
        r"bad.store/store.json: not .*; remove it and convert",
        store(arrays={"x": "<f8", "rows": "<i8", "../y": "<i4"}),
    ),
    "a store with a damaged array": Mistake(
        "train bad.store", r"bad.store: part 0 is damaged, .*; remove it", damaged("x", flipped)
    ),
    "a store with damaged labels": Mistake(
        "train bad.store", r"bad.store: the labels are damaged, .*; remove it", damaged("labels", flipped)
    ),
    "a store with an array cut short": Mistake(
        "evaluate heart.safetensors bad.store",
        r"bad.store: columns is missing or .*; remove it and convert",
        damaged("columns", cut),
    ),
    "a cache over a directory of mine": Mistake(
        "train heart.svm --cache folder", r"folder: exists and is no store; choose another name", directory("folder")
    ),
    # where to write
    "no such directory for a model": Mistake("train heart.svm -o a/m", r"a/m: there is no directory a; make it first"),
    "no such directory for a page": Mistake(
        "report heart.safetensors heart.svm -o a/r", r"a/r: there is no .*; make it"
    ),
    "no such directory for a picture": Mistake("demo -o a/d.png", r"a/d.png: there is no directory a; make it first"),
    "no such directory for predictions": Mistake(
        "predict heart.safetensors heart.svm -o a/p", r"a/p: there is no directory a; make it first"
    ),
    "no such directory for data": Mistake(
        "convert heart.svm a/new.npz", r"a/new.npz: there is no directory a; make it"
    ),
    "no such directory for a store": Mistake("convert heart.svm a/new", r"a/new: there is no directory a; make it"),
    "a directory in a model's place": Mistake(
        "train heart.svm -o heart.store", r"heart.store: a directory; name a file"
    ),
    "a directory in a page's place": Mistake(
        "report heart.safetensors heart.svm -o heart.store", r"heart.store: a directory; name a file"
    ),
    "a directory in predictions' place": Mistake(
        "predict heart.safetensors heart.svm -o heart.store", r"heart.store: a directory; name a file"
    ),
    "a model over its data": Mistake(
        "train heart.svm -o heart.svm", r"heart.svm: input and output are the same; choose"
    ),
    "predictions over the data": Mistake(
        "predict heart.safetensors heart.svm -o ./heart.svm", r"heart.svm: input and output are the same; choose"
    ),
    "the same input and output": Mistake(
        "convert heart.svm heart.svm", r"heart.svm: input and output .*; choose another"
    ),
    "the same store in and out": Mistake(
        "convert heart.store heart.store", r"heart.store: input and output .*; choose"
    ),
    "a format of no name": Mistake(
        "convert heart.svm heart.xyz", r"heart.xyz: no format ends in '.xyz'; use one of .svm"
    ),
    "a picture of no format": Mistake("demo -o demo.doc", r"demo.doc: no picture ends in '.doc'; use one of .png"),
    "data to standard output": Mistake("convert heart.svm -", r"-: data are not written to standard output; name"),
    "a store over a file": Mistake(
        "convert heart.svm mine", r"mine: exists and is no store; choose", write("mine", "x")
    ),
    "sparse rows as npy": Mistake("convert heart.svm new.npy", r"new.npy: X is sparse, .*; save it as .npz"),
    # numbers and options
    "-C 0": Mistake("train heart.svm -C 0", r"argument -C/--C: '0' is not a number > 0; see"),
    "-C nan": Mistake("train heart.svm -C nan", r"argument -C/--C: 'nan' is not a number > 0; see"),
    "-C one": Mistake("train heart.svm -C one", r"argument -C/--C: 'one' is not a number > 0; see"),
    "-C for demo": Mistake("demo 0", r"argument C: '0' is not a number > 0; see"),
    "--tol 0": Mistake("train heart.svm --tol 0", r"argument --tol: '0' is not a number > 0; see"),
    "--tol -1": Mistake("train heart.svm --tol -1", r"argument --tol: '-1' is not a number > 0; see"),
    "certify --tol 0": Mistake("certify heart.safetensors heart.svm --tol 0", r"argument --tol: '0' .*; see"),
    "--max-iter 0": Mistake("train heart.svm --max-iter 0", r"argument --max-iter: '0' is not a whole number ≥ 1; see"),
    "--threads x": Mistake("info heart.svm --threads x", r"argument --threads: 'x' is not a whole number ≥ 0; see"),
    "--seed -1": Mistake(
        "train heart.svm --seed -1", r"argument --seed: '-1' is not a whole number from 0 to 4294967295; see"
    ),
    "--every 0": Mistake("train heart.svm --every 0", r"argument --every: '0' is not a number > 0; see"),
    "no command": Mistake("", r"the following arguments are required: COMMAND; see 'widemargin --help'"),
    "an unknown command": Mistake("fit heart.svm", r"invalid choice: 'fit' .*; see 'widemargin --help'"),
    "a file too many": Mistake(
        "train heart.svm heart.svm", r"heart.svm is one too many; see 'widemargin train --help'"
    ),
    "an unknown option": Mistake("train heart.svm --fast", r"there is no --fast; see 'widemargin train --help'"),
    "an unknown loss": Mistake(
        "train heart.svm --loss hing", r"invalid choice: 'hing' .*; see 'widemargin train --help'"
    ),
    "an unknown solver": Mistake(
        "train heart.svm --solver magic", r"--solver magic: there is none .*; for .* use auto"
    ),
    "a solver for another loss": Mistake(
        "train heart.svm --solver smo --loss logistic",
        r"--solver smo: not one for these .*; for --loss logistic .* use",
    ),
    "a solver for the hard margin": Mistake(
        "train heart.svm --solver pegasos -C inf", r"--solver pegasos: not one .*; "
    ),
    "a loss that LIBLINEAR has not": Mistake(
        "train heart.svm --loss squared --format liblinear", r"heart.model: LIBLINEAR has no .*; save as safetensors"
    ),
    "a weight for an unknown class": Mistake(
        "train heart.svm --class-weight 7:2", r"--class-weight 7:2: there is no class '7'; the classes of .* are -1, 1"
    ),
    "a weight that is none": Mistake(
        "train heart.svm --class-weight 1:much", r"--class-weight 1:much: .*; the classes"
    ),
    "a weight of 0": Mistake("train heart.svm --class-weight 1:0", r"--class-weight 1:0: .*; "),
    "the hard margin of inseparable rows": Mistake(
        "train heart.svm -C inf",
        r"heart.svm: -C inf asks for a hyperplane that separates the classes, .*; use a finite C",
    ),
    "the hard margin of three classes": Mistake(
        "train bad.svm -C inf",
        r"bad.svm: .* separates the class [012].0 against the rest, and there is none; use a finite C",
        write("bad.svm", svmlight(*heart(classes=(0, 1, 2)))),
    ),
    "the maximum likelihood of separable rows": Mistake(
        "train bad.svm -C inf --loss logistic",
        r"bad.svm: -C inf asks for the maximum likelihood, .* separates the classes; use a finite C",
        write("bad.svm", svmlight(X, np.where(X[:, 0] > 0, 1, -1))),
    ),
    # states
    "--every without --checkpoint": Mistake("train heart.svm --every 5", r"--every says how often .*; say where with"),
    "--resume without --checkpoint": Mistake("train heart.svm --resume", r"--resume goes on .*; say where it is with"),
    "a state that is in the way": Mistake(
        "train heart.svm --checkpoint state",
        r"state/state.npz: an earlier run left its state; go on with --resume",
        state(),
    ),
    "the state of another run": Mistake(
        "train heart.svm --checkpoint state --resume -C 2",
        r"state/state.npz: this state is of a run with C 1.0, now it is 2.0; repeat the command",
        state(),
    ),
    "the state of rows in another order": Mistake(
        "train heart.svm --cache --checkpoint state --resume",
        r"state/state.npz: this state is of a run with rows in memory, now it is in a store, all together; ",
        state(),
    ),
    "a damaged state": Mistake(
        "train heart.svm --checkpoint state --resume",
        r"state/state.npz: not a readable state .*; remove",
        state(change=cut),
    ),
    "a state of junk": Mistake(
        "train heart.svm --checkpoint state --resume",
        r"state/state.npz: not a readable state .*; remove",
        state(change=lambda _: b"junk"),
    ),
    "a file in a state's place": Mistake(
        "train heart.svm --checkpoint heart.csv", r"heart.csv: no state can be saved: File exists; name another place"
    ),
    "a state where none can be saved": Mistake(
        "train heart.svm --checkpoint /proc/state", r"/proc/state: no state can be saved: .*; name another place"
    ),
    # proofs of other rows
    "rows of a class that the model does not know": Mistake(
        "certify heart.safetensors other.svm",
        r"other.svm: the model knows no class 5; give the rows that the model was trained on",
        write("other.svm", svmlight(X, np.where(Y > 0, 1, 5))),
    ),
    "no rows of a class that the model knows": Mistake(
        "certify heart.safetensors other.svm",
        r"other.svm: no rows of class -?\d; give the rows that the model was trained on",
        write("other.svm", svmlight(X, np.full(len(X), 1))),
    ),
    "a state of standard input": Mistake("train - --checkpoint state", r"-: standard input comes only once; save it"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder where all is well."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "heart.svm").write_text(TEXT)
    (folder / "heart.csv").write_text(TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (
            "train heart.svm --json",
            "train heart.csv --label disease -o table.safetensors --json",
            "convert heart.svm heart.store",
        ):
            assert run(*command.split()) == 0
    return folder


def listing(folder):
    """Every name below a folder, with the content of files."""
    return {str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(folder, name, capsys, monkeypatch):
    """One line that names the file and says what to do, exit code 2, no output, and not a byte changed on the disk."""
    monkeypatch.setattr(svmlight_reader, "LONGEST_LINE", 1 << 21)
    monkeypatch.setattr(svmlight_reader, "CHUNK", 1 << 20)
    command, says, make = MISTAKES[name]
    if make is not None:
        make(folder)
    capsys.readouterr()
    before = listing(folder.parent)
    code = run(*command.split())
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert re.match("widemargin: " + (".*" if says.startswith(("invalid", "unrec")) else "") + says, err), err
    assert listing(folder.parent) == before


def test_no_permission(folder):
    """The same for a file that may not be read and a directory that may not be written to, tried as nobody."""
    if os.getuid() != 0:
        pytest.skip("only root can become nobody")
    (folder / "heart.svm").chmod(0o600)
    (folder / "closed").mkdir(mode=0o755)
    folder.chmod(0o777)
    (folder.parent / "warm").mkdir()
    mistakes = {
        "train heart.svm -o m.safetensors": "heart.svm: permission denied; ask for the right to read it, or copy it",
        "convert heart.csv closed/new.npz --label disease": "closed/new.npz: its directory takes no file: permission",
    }
    script = (  # nobody may not be able to import anything: root does all that is asked for once, before
        "import os, sys\nfrom widemargin.cli import main\n"
        "main(['train', 'heart.svm', '-o', '../warm/m.safetensors'])\n"
        "main(['convert', 'heart.csv', '../warm/new.npz', '--label', 'disease'])\n"
        "print('now')\nos.setuid(65534)\nprint([main(command.split()) for command in sys.argv[1:]])"
    )
    before = listing(folder)
    done = subprocess.run([sys.executable, "-c", script, *mistakes], capture_output=True, text=True, cwd=folder)
    assert done.stdout.partition("now\n")[2] == "[2, 2]\n"
    lines = done.stderr.splitlines()
    assert [line[: len(says) + 12] for line, says in zip(lines, mistakes.values(), strict=True)] == [
        f"widemargin: {says}" for says in mistakes.values()
    ]
    assert listing(folder) == before


def test_columns_in_another_order(folder, capsys):
    """No mistake: a table is read by the names of its columns, so that predictions are those of the same rows."""
    (folder / "other.csv").write_text(table(X, Y, order=np.random.default_rng(0).permutation(15)))
    for name in ("heart.csv", "other.csv"):
        assert run("predict", "table.safetensors", name, "-o", f"{name}.txt", "--scores") == 0
    assert (folder / "heart.csv.txt").read_text() == (folder / "other.csv.txt").read_text()


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("rich", "cli", "train heart.svm"),
        ("rich", "cli", "info heart.svm"),
        ("safetensors", "cli", "train heart.svm"),
        ("matplotlib", "plots", "demo"),
        ("matplotlib", "plots", "report heart.safetensors heart.svm"),
    ],
)
def test_a_package_that_is_missing(folder, monkeypatch, capsys, package, extra, command):
    """One line that names the extra, which pyproject.toml has."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    before = listing(folder)
    assert run(*command.split()) == 2
    assert capsys.readouterr().err == f"widemargin: this needs {package}; pip install 'widemargin[{extra}]'\n"
    assert listing(folder) == before
    assert extra in widemargin_extras()


def widemargin_extras():
    """Those of the package as it is installed."""
    from importlib.metadata import metadata

    return metadata("widemargin").get_all("Provides-Extra")


def test_the_table_is_long_enough():
    """At least sixty."""
    assert len(MISTAKES) >= 60
    assert widemargin.__version__

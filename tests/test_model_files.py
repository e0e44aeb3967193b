"""Files of models: every bit back, other programs' readers and writers as oracles, and hostile bytes."""

import json
import os
import pickle
import re
import stat
import struct
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import ROUNDING, noisy
from widemargin import LinearModel, LinearSVM, LogisticRegression, ModelError, model_safetensors
from widemargin.data import Rows

FIELDS = ("feature_names", "encoding", "loss", "C", "certificate")
#: Any text, lone surrogates, newlines, equals signs and NUL included.
texts = st.text(st.characters(), max_size=12)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
finite = st.floats(allow_nan=False, allow_infinity=False)
KINDS = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": finite.map(lambda x: x + 0.0),
    "str": texts,
    "bool": st.booleans(),
}


@st.composite
def models(draw, kinds=KINDS):
    """Two to five classes of every type, one to six features, all that a model may carry."""
    kind = draw(st.sampled_from(list(kinds)))
    most = 2 if kind == "bool" else 5
    values = sorted(draw(st.lists(kinds[kind], min_size=2, max_size=most, unique=True)))
    classes = np.array(values, dtype=object if kind == "str" else {"int": np.int64}.get(kind))
    k, d = 1 if len(values) == 2 else len(values), draw(st.integers(1, 6))
    numbers = draw(st.lists(finite, min_size=k * (d + 1), max_size=k * (d + 1)))
    weights = np.array(numbers).reshape(k, d + 1)
    return LinearModel(
        weights[:, :d].copy(order=draw(st.sampled_from("CF"))),
        weights[:, d],
        classes,
        feature_names=draw(st.none() | st.tuples(*[texts] * d)),
        encoding=draw(st.none() | st.dictionaries(texts, plain, max_size=3)),
        loss=draw(st.sampled_from([None, "hinge", "logistic", "squared"])),
        C=draw(st.none() | st.floats(0, exclude_min=True, allow_nan=False)),
        certificate=draw(st.none() | st.dictionaries(texts, plain, max_size=3)),
    )


def example(classes=2, d=3, **more):
    """A model of whole numbers as labels, with a bias."""
    rng = np.random.default_rng(classes)
    k = 1 if classes == 2 else classes
    return LinearModel(rng.standard_normal((k, d)), rng.standard_normal(k), np.arange(classes), loss="hinge", **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("models")


@given(models())
def test_every_bit_comes_back(folder, model):
    """What was saved is loaded: weights to the bit, types of classes, all else equal; equal models make equal files."""
    path = folder / "m.safetensors"
    model.save(path)
    again = LinearModel.load(path)
    assert again.coef.tobytes() == np.ascontiguousarray(model.coef).tobytes()
    assert again.intercept.tobytes() == model.intercept.tobytes()
    assert again.coef.shape == model.coef.shape
    assert again.classes.tolist() == model.classes.tolist()
    assert {type(name) for name in again.classes.tolist()} == {type(name) for name in model.classes.tolist()}
    for name in FIELDS:
        assert getattr(again, name) == getattr(model, name), name
    again.save(folder / "again.safetensors")
    assert (folder / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("classes", [2, 3])
def test_safetensors_reads_our_files(tmp_path, classes):
    """The safetensors package's own loader finds the same arrays, and any JSON parser the rest."""
    model = example(classes, feature_names=("a", "b=c", "é\n"))
    model.save(tmp_path / "m")
    arrays = safetensors.numpy.load_file(tmp_path / "m")
    np.testing.assert_array_equal(arrays["coef"], model.coef)
    np.testing.assert_array_equal(arrays["intercept"], model.intercept)
    with safetensors.safe_open(tmp_path / "m", framework="numpy") as file:
        known = json.loads(file.metadata()["widemargin"])
    assert known["classes"] == {"type": "int", "values": list(range(classes))}
    assert known["feature_names"] == ["a", "b=c", "é\n"]


def test_many_feature_names(tmp_path):
    """100,000 names come back."""
    model = example(d=100_000, feature_names=tuple(f"word \N{SNOWMAN} {k}" for k in range(100_000)))
    model.save(tmp_path / "m")
    assert LinearModel.load(tmp_path / "m").feature_names == model.feature_names


def test_a_long_class_name_takes_no_room_for_the_others(tmp_path):
    """NumPy would give each of 2,000 names the room of the longest, 800 MB; the peak stays below 4 MB."""
    names = np.array(sorted([*(str(k) for k in range(2000)), "z" * 100_000]), dtype=object)
    model = LinearModel(np.zeros((2001, 1)), np.zeros(2001), names)
    model.save(tmp_path / "m")
    tracemalloc.start()
    again = LinearModel.load(tmp_path / "m")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert again.classes.tolist() == names.tolist()
    assert peak < 4_000_000


def test_a_trained_model_from_a_file(tmp_path):
    """A loaded model predicts, and gives probabilities, as the estimator did; the proof comes along."""
    X, y = noisy(80, 3)
    clf = LogisticRegression(C=float("inf")).fit(X, y)
    LinearModel.from_estimator(clf, encoding={"kind": "one-hot"}).save(tmp_path / "m")
    model = LinearModel.load(tmp_path / "m")
    np.testing.assert_array_equal(model.probabilities(model.scores(Rows(X))), clf.predict_proba(X))
    assert np.isinf(model.C)
    assert model.encoding == {"kind": "one-hot"}
    assert model.certificate["each"][0]["primal"] == clf.certificate_.primal


def test_nothing_half_written(tmp_path, monkeypatch):
    """If the disk fails, the old file stays as it was and nothing lies beside it; the new one has the usual rights."""
    model, path = example(), tmp_path / "m"
    for format in ("safetensors", "liblinear"):
        path.write_bytes(b"old")
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(OSError, match="No space"):
                model.save(path, format=format)
        assert (os.listdir(tmp_path), path.read_bytes()) == (["m"], b"old")
        path.unlink()
        model.save(path, format=format)
        (tmp_path / "usual").touch()
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)
        (tmp_path / "usual").unlink()


def test_what_cannot_be_saved(tmp_path, monkeypatch):
    """Each with its reason, and no file."""
    good, path = example(3, feature_names=("a", "b", "c")), tmp_path / "m"
    dates = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]")
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for model, words in (
        (replace(good, coef=good.coef * np.inf), "NaN or infinite"),
        (replace(good, coef=good.coef[:2]), "3 classes; they ask for 3"),
        (replace(good, intercept=good.intercept[:2]), "biases of shape"),
        (replace(good, classes=np.array([0, 1])), "2 classes; they ask for 1"),
        (replace(good, classes=np.array([0, 2, 1])), "ascending"),
        (replace(good, classes=np.array([0, 1, 1])), "ascending"),
        (replace(good, classes=np.array([0, 1, np.nan])), "ascending"),
        (replace(good, classes=np.array([0, 1, "a"], dtype=object)), "ascending"),
        (replace(good, classes=dates), "cannot be saved"),
        (replace(good, classes=np.array([0, 1, 2**64 - 1], dtype=np.uint64)), "64 bits"),
        (replace(good, feature_names=("a",)), "1 feature names for 3"),
        (replace(good, loss="huber"), "unknown loss"),
        (replace(good, encoding={"a": {1, 2}}), "not plain JSON"),
        (replace(good, encoding={"a": float("nan")}), "not plain JSON"),
        (replace(good, encoding={"a": deep}), "not plain JSON"),
    ):
        with pytest.raises(ModelError, match=words):
            model.save(path)
    monkeypatch.setattr(model_safetensors, "LONGEST_HEADER", 2000)
    good.save(path)
    path.unlink()
    with pytest.raises(ModelError, match="leave the feature names out"):
        replace(good, encoding={"a": "x" * 1000}).save(path)
    with pytest.raises(ModelError, match="not a regular file"):
        good.save(tmp_path)
    with pytest.raises(ValueError, match="'safetensors', 'liblinear'"):
        good.save(path, format="pickle")
    assert os.listdir(tmp_path) == []


def test_without_the_package(tmp_path, monkeypatch):
    """The error names the pip command; LIBLINEAR's format needs nothing."""
    example().save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for act in (lambda: example().save(tmp_path / "n"), lambda: LinearModel.load(tmp_path / "m")):
        with pytest.raises(ImportError, match=r"pip install 'widemargin\[cli\]'"):
            act()
    example().save(tmp_path / "n", format="liblinear")
    assert LinearModel.load(tmp_path / "n").loss == "hinge"


GOOD = {
    "format": 1,
    "version": "0.1.0",
    "classes": {"type": "int", "values": [0, 1, 2]},
    "feature_names": ["a", "b"],
    "encoding": None,
    "loss": "hinge",
    "C": 1.0,
    "certificate": None,
}
ARRAYS = {"coef": np.arange(6.0).reshape(3, 2), "intercept": np.zeros(3)}


def packed(known=None, arrays=ARRAYS, **changes):
    """A safetensors file by the package's own writer; `known` replaces the JSON text."""
    return safetensors.numpy.save(arrays, {"widemargin": json.dumps({**GOOD, **changes}) if known is None else known})


def raw(header, data=b"", length=None):
    """A safetensors file byte by byte."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensors(coef, intercept, data, known=GOOD):
    """A header that places two arrays of float64."""
    sizes = {
        name: {"dtype": "F64", "shape": shape, "data_offsets": offsets}
        for name, (shape, offsets) in (("coef", coef), ("intercept", intercept))
    }
    return raw({"__metadata__": {"widemargin": json.dumps(known)}, **sizes}, data)


#: What is wrong stands behind it, in the words of the package's version.
BROKEN = "a damaged safetensors file ("
HOSTILE = {
    "empty": (b"", "empty file; save the model again"),
    "one byte": (b"\x10", "neither a safetensors file"),
    "junk": (bytes(range(255, 155, -1)), "neither a safetensors file"),
    "zeros": (bytes(100), "neither a safetensors file"),
    "blanks": (b"\n" * 100, "neither a safetensors file"),
    "pickle": (pickle.dumps(ARRAYS), "a pickle, which could run any code"),
    "npz": (b"PK\x03\x04" + bytes(60), "a zip archive"),
    "gzip": (b"\x1f\x8b" + bytes(60), "decompress it first"),
    "numpy": (b"\x93NUMPY\x01\x00" + bytes(60), "a NumPy array"),
    "LIBSVM": (b"svm_type c_svc\nkernel_type linear\n", "a model of LIBSVM"),
    "svmlight": (b"+1 1:0.5 7:1\n-1 2:1\n", "svmlight data, not a model; train on it"),
    "truncated header": (packed()[:100], "cut short"),
    "truncated data": (packed()[:-1], BROKEN),
    "too long": (packed() + b"\0", BROKEN),
    "header of 1 GB": (raw(b"{}", length=10**9), "a header of 1,000,000,000 bytes in a file of 10"),
    "header of 2^63": (raw(b"{}", length=2**63), "a header of 9,223,372,036,854,775,808 bytes"),
    "header not JSON": (raw(b"{nonsense"), BROKEN),
    "header not UTF-8": (raw(b"{\xff\xfe}"), BROKEN),
    "header 100,000 deep": (raw(b'{"a":' * 100_000), BROKEN),
    "metadata not text": (raw({"__metadata__": {"widemargin": 1}}), BROKEN),
    "2^60 rows": (tensors(([2**60, 2], [0, 48]), ([3], [48, 72]), bytes(72)), BROKEN),
    "2^62 × 2^62": (tensors(([2**62, 2**62], [0, 48]), ([3], [48, 72]), bytes(72)), BROKEN),
    "overlap": (tensors(([3, 2], [0, 48]), ([3], [40, 64]), bytes(72)), BROKEN),
    "gap": (tensors(([3, 2], [0, 48]), ([3], [56, 80]), bytes(80)), BROKEN),
    "outside": (tensors(([3, 2], [0, 48]), ([3], [48, 72]), bytes(64)), BROKEN),
    "backwards": (tensors(([3, 2], [48, 0]), ([3], [48, 72]), bytes(72)), BROKEN),
    "no rows": (tensors(([2**60, 0], [0, 0]), ([3], [0, 24]), bytes(24)), "coef has shape"),
    "float32": (packed(arrays={**ARRAYS, "coef": np.zeros((3, 2), np.float32)}), "coef is of type F32, not F64"),
    "integers": (packed(arrays={**ARRAYS, "intercept": np.zeros(3, np.int64)}), "intercept is of type I64"),
    "flat": (
        packed(arrays={**ARRAYS, "coef": np.zeros(6)}),
        "coef has shape (6,), but its classes ask for 3 × features",
    ),
    "two biases": (packed(arrays={**ARRAYS, "intercept": np.zeros(2)}), "intercept has shape (2,)"),
    "two rows for two classes": (packed(classes={"type": "int", "values": [0, 1]}), "ask for 1 × features"),
    "no intercept": (packed(arrays={"coef": ARRAYS["coef"]}), "has the arrays 'coef'"),
    "no arrays": (packed(arrays={}), "has the arrays ''"),
    "another array": (packed(arrays={**ARRAYS, "x": np.zeros(1)}), "'coef' and 'intercept' only"),
    "NaN": (packed(arrays={**ARRAYS, "intercept": np.array([0, np.nan, 0])}), "NaN or infinite; train"),
    "infinity": (packed(arrays={**ARRAYS, "coef": np.full((3, 2), np.inf)}), "NaN or infinite; train"),
    "no metadata": (safetensors.numpy.save(ARRAYS), "not a model of widemargin"),
    "others' metadata": (safetensors.numpy.save(ARRAYS, {"format": "pt"}), "not a model of widemargin"),
    "JSON broken": (packed("{"), "metadata is not JSON"),
    "JSON with NaN": (packed('{"format": 1, "C": NaN}'), "NaN is not JSON"),
    "JSON 100,000 deep": (packed("[" * 100_000), "nested too deeply"),
    "JSON of long digits": (packed('{"format": ' + "9" * 10_000 + "}"), "not JSON"),
    "JSON a list": (packed("[]"), "no format version"),
    "version a text": (packed(format="1"), "no format version"),
    "version true": (packed(format=True), "no format version"),
    "a newer version": (
        packed(format=2),
        "of format 2, this version of widemargin reads up to 1; pip install --upgrade",
    ),
    "no classes": (packed(classes=None), "a type and values"),
    "classes a list": (packed(classes=[0, 1, 2]), "a type and values"),
    "classes of no type": (packed(classes={"type": ["int"], "values": [0, 1, 2]}), "a type and values"),
    "classes mixed": (packed(classes={"type": "int", "values": [0, "1", 2]}), "not all of type int"),
    "booleans as integers": (packed(classes={"type": "int", "values": [0, True, 2]}), "not all of type int"),
    "one class": (packed(classes={"type": "int", "values": [0]}), "1 classes"),
    "four classes": (packed(classes={"type": "int", "values": [0, 1, 2, 3]}), "ask for 4 × features"),
    "equal classes": (packed(classes={"type": "int", "values": [0, 1, 1]}), "ascending order, each once"),
    "2^70": (packed(classes={"type": "int", "values": [0, 1, 2**70]}), "beyond 64 bits"),
    "a class 10^400": (packed(classes={"type": "float", "values": [0, 1, 10**400]}), "beyond 64 bits"),
    "names a text": (packed(feature_names="ab"), "not a list of texts"),
    "names of numbers": (packed(feature_names=[1, 2]), "not a list of texts"),
    "too few names": (packed(feature_names=["a"]), "1 feature names for 2 weights"),
    "encoding a list": (packed(encoding=[]), "encoding is not a JSON object"),
    "certificate a text": (packed(certificate="sure"), "certificate is not a JSON object"),
    "loss a number": (packed(loss=1), "loss is not a text"),
    "unknown loss": (packed(loss="\x1b[31m"), "unknown loss '\\x1b[31m'"),
    "C a text": (packed(C="1"), "C is not a number > 0"),
    "C negative": (packed(C=-1), "C is not a number > 0"),
    "C true": (packed(C=True), "C is not a number > 0"),
    "C 10^400": (packed(C=10**400), "C is not a number > 0"),
}


def refuse(path, content, words):
    """One line that begins with the file and has the words and what to do."""
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        LinearModel.load(path)
    message = str(caught.value)
    assert words in message
    assert message.startswith(f"{path}:")
    assert "\n" not in message
    assert ";" in message
    return message


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_safetensors(tmp_path, case):
    """Each bad file is refused in one line that says what is wrong and what to do."""
    refuse(tmp_path / "m", *HOSTILE[case])


def test_the_hostile_files_are_good_but_for_one_thing(tmp_path):
    """The files that the table damages load when nothing is damaged."""
    for content in (packed(), tensors(([3, 2], [0, 48]), ([3], [48, 72]), bytes(72))):
        (tmp_path / "m").write_bytes(content)
        assert LinearModel.load(tmp_path / "m").coef.shape == (3, 2)


def test_what_is_no_file(tmp_path):
    """A directory and a pipe are refused, a missing file is missing."""
    with pytest.raises(ModelError, match="a directory, not a model; give the file"):
        LinearModel.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="not a regular file; copy"):
        LinearModel.load(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        LinearModel.load(tmp_path / "nowhere")


def liblinear(**changes):
    """A text of LIBLINEAR's with two classes, two features and a bias; None leaves a line out."""
    lines = {
        "solver_type": "L2R_L1LOSS_SVC_DUAL",
        "nr_class": "2",
        "label": "1 -1",
        "nr_feature": "2",
        "bias": "0.5",
        "w": "\n0.25 \n-3 \n4 ",
    } | changes
    return "".join(f"{word} {value}\n" for word, value in lines.items() if value is not None).encode()


def test_liblinear_text_by_hand(tmp_path):
    """Label, bias and sign by LIBLINEAR's README: the first label is positive, the last weight is times bias."""
    path = tmp_path / "m"
    for labels, sign in (("1 -1", 1), ("-1 1", -1), ("+7 -7", 1)):
        path.write_bytes(liblinear(label=labels))
        model = LinearModel.load(path)
        assert model.coef.tolist() == [[sign * 0.25, sign * -3.0]]
        assert model.intercept.tolist() == [sign * 2.0]
        assert model.classes.tolist() == sorted(int(label) for label in labels.split())
        assert (model.loss, model.C) == ("hinge", None)
    path.write_bytes(liblinear(bias="-1", w="\n1 \n2 \n").replace(b"\n", b"\r\n"))
    assert LinearModel.load(path).intercept.tolist() == [0.0]
    path.write_bytes(liblinear(nr_class="3", label="5 3 4", w="\n1 2 3\n4 5 6\n7 8 9", solver_type="MCSVM_CS"))
    model = LinearModel.load(path)
    assert (model.classes.tolist(), model.coef.tolist()) == ([3, 4, 5], [[2, 5], [3, 6], [1, 4]])
    assert (model.intercept.tolist(), model.loss) == ([4.0, 4.5, 3.5], None)
    path.write_bytes(liblinear(w="\n1 -1\n2 -2\n4 -4", solver_type="MCSVM_CS"))
    assert LinearModel.load(path).coef.tolist() == [[1, 2]]
    replace(example(d=2), coef=np.array([[0.1, -1e-5]]), intercept=np.array([1 / 3])).save(path, format="liblinear")
    assert path.read_text() == (
        "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 0\nnr_feature 2\nbias 1\nw\n"
        "0.10000000000000001 \n-1.0000000000000001e-05 \n0.33333333333333331 \n"
    )


@given(models({"int": st.integers(-(2**31), 2**31 - 1)}))
def test_liblinear_text_keeps_weights(folder, model):
    """17 digits are enough: weights and classes come back, and the loss where LIBLINEAR has it."""
    model = replace(model, loss="logistic")
    model.save(folder / "m.model", format="liblinear")
    again = LinearModel.load(folder / "m.model")
    (folder / "m.model").unlink()
    np.testing.assert_array_equal(again.coef, model.coef)
    np.testing.assert_array_equal(again.intercept, model.intercept)
    np.testing.assert_array_equal(again.classes, model.classes)
    assert again.loss == "logistic"


def test_what_liblinear_has_no_words_for(tmp_path):
    """Labels that are no whole numbers and losses that it does not know: an error with advice, and no file."""
    for model, words in (
        (replace(example(), classes=np.array(["a", "b"])), "the class 'a' is no label .* number the classes"),
        (replace(example(), classes=np.array([0.5, 1.0])), "the class 0.5 is no label"),
        (replace(example(), classes=np.array([False, True])), "the class False is no label"),
        (replace(example(), classes=np.array([0, 2**31])), "the class 2147483648 is no label"),
        (replace(example(), loss="squared"), "no solver .* save as safetensors"),
        (replace(example(), loss=None), "no solver"),
        (replace(example(3), loss="multinomial"), "no solver"),
    ):
        with pytest.raises(ModelError, match=words):
            model.save(tmp_path / "m", format="liblinear")
    assert os.listdir(tmp_path) == []
    replace(example(), classes=np.array([-1.0, 1.0])).save(tmp_path / "m", format="liblinear")
    assert LinearModel.load(tmp_path / "m").classes.tolist() == [-1, 1]


HOSTILE_TEXT = {
    "10^18 features": (liblinear(nr_feature=10**18), 6, "should follow, but only"),
    "10^30 features": (liblinear(nr_feature=10**30), 4, "nr_feature is '1000"),
    "no features": (liblinear(nr_feature=0), 4, "at least one feature"),
    "features −1": (liblinear(nr_feature=-1), 4, "must be a whole number"),
    "two numbers of features": (liblinear(nr_feature="2 2"), 4, "nr_feature has 2 values"),
    "10^9 classes": (liblinear(nr_class=10**9), 3, "2 labels, but nr_class is 1000000000"),
    "one class": (liblinear(nr_class=1, label=1), 2, "two classes or more"),
    "equal labels": (liblinear(label="1 1"), 3, "stands twice"),
    "labels with a point": (liblinear(label="1 2.5"), 3, "the label '2.5' is not a whole number"),
    "labels too large": (liblinear(label="1 4294967296"), 3, "not a whole number of 32 bits"),
    "no solver": (liblinear(solver_type=None), 5, "no line solver_type"),
    "no label": (liblinear(label=None), 5, "no line label"),
    "no bias": (liblinear(bias=None), 5, "no line bias"),
    "no number of features": (liblinear(nr_feature=None), 5, "no line nr_feature"),
    "no number of classes": (liblinear(nr_class=None), 5, "no line nr_class"),
    "an empty solver": (liblinear(solver_type=""), 1, "solver_type has 0 values"),
    "unknown solver": (liblinear(solver_type="L3R"), 1, "unknown solver 'L3R'"),
    "regression": (liblinear(solver_type="L2R_L2LOSS_SVR", label=None), 1, "is a regression, which has no classes"),
    "one class only": (liblinear(solver_type="ONECLASS_SVM", label=None, bias="-1\nrho 1"), 1, "looks for outliers"),
    "bias NaN": (liblinear(bias="nan"), 5, "not a finite number; it is -1 for none"),
    "bias a word": (liblinear(bias="none"), 5, "not a finite number; it is -1 for none"),
    "bias beyond numbers": (liblinear(bias="1e200", w="\n1 \n3 \n1e200"), 5, "beyond any number"),
    "no weights": (liblinear(w=None), 6, "ends before its weights"),
    "cut after w": (liblinear(w=""), 6, "only 0 bytes do"),
    "cut between lines": (liblinear(w="\n0.25000000 \n1 "), 9, "0 weights where 1 should be"),
    "cut in a line": (
        liblinear(nr_class=3, label="1 2 3", w="\n1 2 3.000000\n4 5 6\n7 8 "),
        9,
        "2 weights where 3 should be",
    ),
    "a weight too many": (liblinear(w="\n1 2\n3 \n4 "), 7, "2 weights where 1 should be"),
    "a line too many": (liblinear(w="\n1 \n3 \n4 \n5 "), 10, "more than the 3 lines of weights"),
    "weight NaN": (liblinear(w="\n1 \nnan \n4 "), 8, "not a finite number"),
    "weight 1e999": (liblinear(w="\n1 \n3 \n1e999"), 9, "not a finite number"),
    "weight a word": (liblinear(w="\n1 \nthree \n4 "), 8, "not a finite number"),
    "weight 1_0": (liblinear(w="\n1_0 \n3 \n4 "), 7, "not a finite number"),
    "a twin": (liblinear(bias="1\nbias 1"), 6, "stands here and on line 5"),
    "an unknown word": (liblinear(bias="1\nnonsense 1"), 6, "'nonsense' is no word"),
    "binary junk": (b"nr_class 2\n\xff\x00\xfe", 2, "is no word of LIBLINEAR's"),
    "a label line without end": (b"label " + b"1 " * 600_000, 1, "a line of more than 1,048,576 bytes"),
    "a weight without end": (liblinear(w="\n" + "1" * 10_000 + "\n2 \n3 "), 7, "a line of more than 128 bytes"),
}


@pytest.mark.parametrize("case", HOSTILE_TEXT)
def test_hostile_liblinear(tmp_path, case):
    """Each bad text is refused in one line that names the line at fault, and says what to do."""
    content, line, words = HOSTILE_TEXT[case]
    assert refuse(tmp_path / "m", content, words).startswith(f"{tmp_path / 'm'}:{line}: ")


@st.composite
def mutations(draw):
    """What to do to a file: where, in what way, with which bytes. Half of them near its beginning."""
    place = draw(st.floats(0, 1)) if draw(st.booleans()) else draw(st.floats(0, 0.02))
    way = draw(st.sampled_from(["set", "insert", "delete", "cut", "digit"]))
    return place, way, draw(st.binary(min_size=1, max_size=9)), draw(st.integers(0, 2**32))


def mutate(content, changes):
    """The bytes after those changes."""
    for place, way, new, seed in changes:
        at = int(place * len(content))
        if way == "set":
            content = content[:at] + new + content[at + len(new) :]
        elif way == "insert":
            content = content[:at] + new + content[at:]
        elif way == "delete":
            content = content[:at] + content[at + len(new) :]
        elif way == "cut":
            content = content[:at]
        else:  # another digit for one that is there: sizes and offsets that are nearly right
            digits = [k for k, byte in enumerate(content[:2000]) if 48 <= byte <= 57]
            if digits:
                k = digits[seed % len(digits)]
                content = content[:k] + b"%d" % (seed // 7 % 10) + content[k + 1 :]
    return content


@pytest.mark.parametrize("format", ["safetensors", "liblinear"])
@given(changes=st.lists(mutations(), min_size=1, max_size=3))
@settings(max_examples=250)
def test_mutated_files(folder, format, changes):
    """A damaged file raises a ModelError or makes the model its header describes; the peak of memory is at most twice
    its size and 200 kB.
    """
    path = folder / f"mutated.{format}"
    whole = folder / f"whole.{format}"
    if not whole.exists():
        example(3, d=700, certificate={"tol": 1e-3}, C=1.0).save(whole, format=format)
    content = mutate(whole.read_bytes(), changes)
    path.write_bytes(content)
    tracemalloc.start()
    try:
        model = LinearModel.load(path)
        message = ""
    except ModelError as error:
        model, message = None, str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        path.unlink()
    assert "\n" not in message
    assert peak <= 2 * len(content) + 200_000
    if model is None:
        assert message.startswith(f"{path}:")
    else:
        assert model.complaint() == ""
        if format == "safetensors":
            shape = safetensors.numpy.load(content)["coef"].shape
        else:
            shape = 3, int(re.search(rb"nr_feature\s+(\d+)", content)[1])
        assert model.coef.shape == shape


def trained(classes, fit_intercept, loss):
    """A model of ours, and the rows it was trained on."""
    X, y = noisy(90, 4, seed=classes)
    y = ((y > 0) + (X[:, 1] > 0.5) * (classes - 2)).astype(int) * 3 - 2
    clf = {
        "hinge": LinearSVM(fit_intercept=fit_intercept),
        "squared_hinge": LinearSVM(loss="squared_hinge", fit_intercept=fit_intercept),
        "logistic": LogisticRegression(fit_intercept=fit_intercept),
    }[loss].fit(X, y)
    return LinearModel.from_estimator(clf), X, y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_liblinear_reads_our_models(tmp_path, classes, fit_intercept, loss):
    """LIBLINEAR's own loader has our weights to the bit, and its predict our classes, scores and probabilities."""
    util = pytest.importorskip("liblinear.liblinearutil", reason="pip install liblinear-official")
    model, X, y = trained(classes, fit_intercept, loss)
    path = str(tmp_path / "m.model")
    model.save(path, format="liblinear")
    theirs = util.load_model(path)
    labels = theirs.get_labels()
    for place, label in enumerate(labels if classes > 2 else labels[:1]):
        w, b = theirs.get_decfun(label_idx=place)
        k = model.classes.tolist().index(label) if classes > 2 else 0
        assert (w, b) == (model.coef[k].tolist(), model.intercept[k])
    predicted, _, values = util.predict(y, X, theirs, "-q")
    scores = model.scores(Rows(X))
    order = [model.classes.tolist().index(label) for label in labels]
    wanted = scores[:, None] if classes == 2 else scores[:, order]
    assert classes > 2 or labels[0] == model.classes[1]
    np.testing.assert_allclose(np.array(values)[:, : wanted.shape[1]], wanted, rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(predicted, model.choose(scores))
    _, _, values = util.predict([], np.eye(4), theirs, "-q")  # one weight and the bias: no sum to round otherwise
    alone = model.scores(Rows(np.eye(4)))
    np.testing.assert_array_equal(
        np.array(values)[:, : wanted.shape[1]], alone[:, None] if classes == 2 else alone[:, order]
    )
    if loss == "logistic":
        _, _, chances = util.predict(y, X, theirs, "-b 1 -q")
        np.testing.assert_allclose(np.array(chances), model.probabilities(scores)[:, order], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("solver", range(8))
@pytest.mark.parametrize("bias", [-1, 0, 1, 2.5])
@pytest.mark.parametrize("classes", [2, 3])
def test_we_read_liblinears_models(tmp_path, classes, bias, solver):
    """A model that LIBLINEAR trained and saved: its predictions and, with the sign of our second class, its values."""
    util = pytest.importorskip("liblinear.liblinearutil", reason="pip install liblinear-official")
    _, X, y = trained(classes, True, "hinge")
    order = np.argsort(y == y.min()) if solver % 2 else np.argsort(y != y.min())  # either label may come first
    X, y = X[order], y[order]
    theirs = util.train(y, X, f"-s {solver} -B {bias} -q")
    util.save_model(str(tmp_path / "m.model"), theirs)
    model = LinearModel.load(tmp_path / "m.model")
    predicted, _, values = util.predict(y, X, theirs, "-q")
    scores, labels = model.scores(Rows(X)), theirs.get_labels()
    if classes == 2:
        values = np.array(values)[:, 0] * (1 if labels[0] > labels[1] else -1)
    else:
        values = np.array(values)[:, np.argsort(labels)]
    np.testing.assert_allclose(scores, values, rtol=0, atol=ROUNDING * max(1, np.abs(values).max()))
    np.testing.assert_array_equal(model.choose(scores), predicted)

"""Kernel models and their files: scikit-learn's SVC and LIBSVM as oracles, every bit back, and hostile bytes."""

import json
import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.svm import SVC, LinearSVC, NuSVC

from oracles import ROUNDING
from widemargin import LinearModel, ModelError
from widemargin.data import Rows
from widemargin.kernels import NAMES, Kernel
from widemargin.model_kernel import KernelModel, load_model

#: scikit-learn and we sum kernel values in another order.
SUMS = 1e-9
SVC_KERNELS = ("linear", "poly", "rbf", "sigmoid")


def rows(classes, sparse=False):
    """Overlapping classes named −4, −1, 2, …"""
    X, y = make_classification(
        150, 6, n_informative=5, n_redundant=0, n_classes=classes, n_clusters_per_class=1, class_sep=0.5, random_state=0
    )
    X[np.random.default_rng(0).random(X.shape) < 0.3] = 0
    return (sp.csr_matrix(X) if sparse else X), 3 * y - 4


def fitted(classes=2, kernel="rbf", sparse=False, **more):
    """An SVC and its rows."""
    X, y = rows(classes, sparse)
    return SVC(C=2.0, kernel=kernel, coef0=0.3, **more).fit(X, y), X


def example(classes=2, sparse=False, **more):
    """A small model of every field."""
    return replace(KernelModel.from_estimator(fitted(classes, sparse=sparse)[0]), **more)


def same(one, other):
    """Every bit of the arrays, and all fields."""
    assert isinstance(other.support_vectors, np.ndarray) == isinstance(one.support_vectors, np.ndarray)
    for a, b in ((one.support_vectors, other.support_vectors), (one.dual_coef, other.dual_coef)):
        dense = [x.toarray() if sp.issparse(x) else x for x in (a, b)]
        assert dense[0].dtype == dense[1].dtype
        assert_array_equal(*dense)
    assert_array_equal(one.intercept, other.intercept)
    assert_array_equal(one.n_support, other.n_support)
    assert one.classes.tolist() == other.classes.tolist()
    for name in ("kernel", "feature_names", "encoding", "C", "certificate", "zero_based", "break_ties", "tie_order"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", SVC_KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_scores_are_those_of_svc(classes, kernel, sparse):
    """decision_function and predict of scikit-learn's SVC, and of the SVC that the model turns into."""
    clf, X = fitted(classes, kernel, sparse)
    model = KernelModel.from_estimator(clf)
    scores = model.scores(Rows(X))
    expected = clf.decision_function(X)
    assert_allclose(scores, expected, rtol=SUMS, atol=SUMS * np.abs(expected).max())
    assert_array_equal(model.choose(scores), clf.predict(X))
    again = model.to_sklearn()
    assert_allclose(again.decision_function(X), expected, rtol=SUMS, atol=SUMS * np.abs(expected).max())
    assert_array_equal(again.predict(X), clf.predict(X))
    assert_allclose(KernelModel.from_estimator(again).scores(Rows(X)), scores, rtol=ROUNDING)


def test_ties_are_broken_as_asked():
    """SVC(break_ties=True) predicts otherwise for some row with equally many votes, and so does the model."""
    X, y = rows(5)
    kinds = [SVC(C=2.0, kernel="sigmoid", coef0=0.3, break_ties=ties).fit(X, y) for ties in (False, True)]
    answers = [clf.predict(X) for clf in kinds]
    assert (answers[0] != answers[1]).any()
    for clf, answer in zip(kinds, answers, strict=True):
        model = KernelModel.from_estimator(clf)
        assert_array_equal(model.choose(model.scores(Rows(X))), answer)


def test_nu_svc_and_what_is_no_kernel_model():
    """NuSVC has the same attributes, but no C; what a file cannot hold is refused."""
    X, y = rows(3)
    clf = NuSVC(nu=0.2).fit(X, y)
    model = KernelModel.from_estimator(clf)
    assert model.C is None
    assert_array_equal(model.choose(model.scores(Rows(X))), clf.predict(X))
    for other, words in (
        (SVC(), "has no classes_; fit it first"),
        (LinearSVC().fit(X, y), "has no support_vectors_"),
        (SVC(kernel="precomputed").fit(X @ X.T, y), "a precomputed kernel"),
        (SVC(kernel=lambda a, b: a @ b.T).fit(X, y), "a kernel that is a function"),
    ):
        with pytest.raises(ValueError, match=words):
            KernelModel.from_estimator(other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_every_bit_comes_back(tmp_path, classes, sparse, dtype):
    """What was saved as safetensors is loaded, all fields included, and equal models make equal files."""
    model = example(
        classes,
        sparse,
        feature_names=("a", "b=c", "é\n", "d", "e", "f"),
        encoding={"columns": [1, None]},
        certificate={"tol": 1e-3, "relative_gap": "inf"},
        zero_based=True,
        break_ties=True,
        tie_order=tuple(range(classes))[::-1],
    )
    model = replace(model, support_vectors=model.support_vectors.astype(dtype))
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert isinstance(again, KernelModel)
    same(model, again)
    again.save(tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize("kernel", NAMES)
def test_every_kernel_is_saved(tmp_path, kernel):
    """Σ coef k + b by the kernel's own matrix, before and after the file."""
    rng = np.random.default_rng(0)
    model = KernelModel(
        rng.random((5, 3)),
        rng.standard_normal((1, 5)),
        np.array([0.25]),
        np.array([2, 3]),
        np.array([0, 1]),
        Kernel(kernel, gamma=0.7, degree=2, coef0=1.5),
    )
    model.save(tmp_path / "m")
    X = rng.random((7, 3))
    expected = model.kernel.matrix(X, model.support_vectors) @ model.dual_coef[0] + 0.25
    assert_allclose(KernelModel.load(tmp_path / "m").scores(Rows(X)), expected, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", SVC_KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_libsvm_text_comes_back(tmp_path, classes, kernel, sparse):
    """Numbers of LIBSVM's text are those of the model, to the bit."""
    clf, _ = fitted(classes, kernel, sparse)
    model = KernelModel.from_estimator(clf)
    model.save(tmp_path / "m", format="libsvm")
    again = load_model(tmp_path / "m")
    parameters = again.kernel.parameters
    assert parameters == model.kernel.parameters
    expected = replace(model, support_vectors=sp.csr_array(model.support_vectors), zero_based=False, C=None)
    same(replace(expected, kernel=again.kernel), again)


#: Three classes in an order that is not ascending, as svm-train writes them in the order of the rows.
THREE = """svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 3
total_sv 4
rho 0.5 -0.25 0.125
label 3 -1 2
nr_sv 2 1 1
SV
1 2 1:1 3:0.5
0.5 0 2:-1
-1.5 3 1:2
-2 -3 3:4
"""


def votes_by_hand(text, x):
    """LIBSVM's decision values and its winner, straight from the text."""
    head, body = text.split("SV\n")
    said = {line.split()[0]: line.split()[1:] for line in head.splitlines()}
    labels, counts = list(map(int, said["label"])), list(map(int, said["nr_sv"]))
    lines = [line.split() for line in body.splitlines()]
    k, values, vectors = len(labels), [], []
    for line in lines:
        vector = np.zeros(len(x))
        for pair in line[k - 1 :]:
            j, value = pair.split(":")
            vector[int(j) - 1] = float(value)
        vectors.append(vector)
    owner = np.repeat(np.arange(k), counts)
    votes = dict.fromkeys(labels, 0)
    for rho, (i, j) in zip(said["rho"], combinations(range(k), 2), strict=True):
        dec = -float(rho)
        for line, vector, mine in zip(lines, vectors, owner, strict=True):
            if mine in (i, j):
                dec += float(line[j - 1 if mine == i else i]) * (0.5 * vector @ x + 1) ** 2
        values.append((labels[i], labels[j], dec))
        votes[labels[i] if dec > 0 else labels[j]] += 1
    return values, votes


def test_libsvm_conventions(tmp_path):
    """The formulas of LIBSVM's documentation, worked out from the text: signs, order of classes, layout."""
    (tmp_path / "m").write_text(THREE)
    model = load_model(tmp_path / "m")
    assert model.classes.tolist() == [-1, 2, 3]
    assert model.n_support.tolist() == [1, 1, 2]
    assert model.kernel == Kernel("poly", gamma=0.5, degree=2, coef0=1.0)
    assert model.zero_based is False
    for x in np.random.default_rng(0).standard_normal((20, 3)):
        expected, votes = votes_by_hand(THREE, x)
        found = model.pair_scores(Rows(x[None]))[0]
        for first, second, dec in expected:
            i, j = (model.classes.tolist().index(label) for label in (first, second))
            place = model.pairs.index((min(i, j), max(i, j)))
            assert found[place] == pytest.approx(dec if i < j else -dec, rel=1e-12, abs=1e-12)
        assert model.choose(model.scores(Rows(x[None])))[0] == max(votes, key=votes.get)  # the first label of a tie


@pytest.mark.parametrize("labels", ["1 -1", "-1 1"])
def test_libsvm_two_classes(tmp_path, labels):
    """Of two labels the first is the positive one, whichever is larger; columns beyond the last are 0, as in LIBSVM."""
    first, second = map(int, labels.split())
    text = (
        f"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel {labels}\nnr_sv 1 1\nSV\n"
    )
    (tmp_path / "m").write_text(text + "0.75 1:1 \n-0.75 2:1 \n")
    model = KernelModel.load(tmp_path / "m")
    X = np.random.default_rng(0).standard_normal((9, 3))  # a column more than the file knows of
    ends = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    k = np.exp(-0.5 * ((X[:, None] - ends) ** 2).sum(axis=2))
    dec = 0.75 * (k[:, 0] - k[:, 1]) - 0.25
    assert_array_equal(model.choose(model.scores(Rows(X))), np.where(dec > 0, first, second))
    assert_allclose(model.scores(Rows(X)), dec if first > second else -dec, rtol=1e-12)


def test_columns_that_count_from_0(tmp_path):
    """An index 0 makes the columns count from 0, and a model that does is written so."""
    text = (
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 0\nnr_sv 1 1\nSV\n1 0:1 \n-1 2:1 \n"
    )
    (tmp_path / "m").write_text(text)
    model = KernelModel.load(tmp_path / "m")
    assert (model.zero_based, model.columns) == (True, 3)
    model.save(tmp_path / "n", format="libsvm")
    assert "\n-1.0 2:1.0 \n" in (tmp_path / "n").read_text()


@pytest.mark.parametrize("kernel", range(4))
@pytest.mark.parametrize("classes", [2, 3])
def test_libsvm_reads_and_writes_the_same(tmp_path, classes, kernel):
    """LIBSVM itself predicts the same from our file, and we from its; its values have 8 digits."""
    svm = pytest.importorskip("libsvm.svmutil")
    X, y = rows(classes)
    order = np.random.default_rng(1).permutation(len(y))  # so that labels are not seen in ascending order
    theirs = svm.svm_train(y[order], X[order], f"-q -t {kernel} -c 2 -r 0.3")
    svm.svm_save_model(str(tmp_path / "theirs"), theirs)
    model = KernelModel.load(tmp_path / "theirs")
    scores = model.scores(Rows(X))
    labels, _, values = svm.svm_predict(y, X, theirs, "-q")
    assert_array_equal(model.choose(scores), np.array(labels))
    if classes == 2:
        sign = 1 if theirs.get_labels()[0] > theirs.get_labels()[1] else -1
        assert_allclose(sign * np.ravel(values), scores, atol=1e-5)
    model.save(tmp_path / "ours", format="libsvm")
    again = svm.svm_load_model(str(tmp_path / "ours"))
    assert_array_equal(svm.svm_predict(y, X, again, "-q")[0], labels)
    if classes > 2:
        assert again.get_labels() == theirs.get_labels()


def test_what_libsvm_has_no_room_for(tmp_path):
    """Other kernels and classes that are no whole numbers are refused before anything is written."""
    model = example()
    for bad, words in (
        (replace(model, kernel=Kernel("laplacian")), "LIBSVM has no kernel 'laplacian'"),
        (replace(model, classes=np.array(["no", "yes"])), "the class 'no' is no label for LIBSVM"),
        (replace(model, classes=np.array([0.5, 1.0])), "the class 0.5"),
        (replace(model, classes=np.array([0, 2**40])), "32 bits"),
    ):
        with pytest.raises(ModelError, match=words):
            bad.save(tmp_path / "m", format="libsvm")
        assert not (tmp_path / "m").exists()
    with pytest.raises(ValueError, match="'safetensors', 'libsvm'"):
        model.save(tmp_path / "m", format="liblinear")


def test_linear_and_kernel_files_are_told_apart(tmp_path):
    """Each class loads its own files, and says who loads the other; `load_model` loads all."""
    example().save(tmp_path / "kernel")
    example().save(tmp_path / "libsvm", format="libsvm")
    linear = LinearModel(np.ones((1, 2)), np.zeros(1), np.array([0, 1]), loss="hinge")
    linear.save(tmp_path / "linear")
    linear.save(tmp_path / "liblinear", format="liblinear")
    for name in ("kernel", "libsvm"):
        assert isinstance(load_model(tmp_path / name), KernelModel)
        with pytest.raises(ModelError, match=r"KernelModel\.load"):
            LinearModel.load(tmp_path / name)
    for name in ("linear", "liblinear"):
        assert isinstance(load_model(tmp_path / name), LinearModel)
        with pytest.raises(ModelError, match=r"LinearModel\.load"):
            KernelModel.load(tmp_path / name)


def test_rows_of_another_width():
    """Missing columns are refused by name; of a kernel that sees them, added ones count as LIBSVM counts them."""
    clf, X = fitted()
    model = KernelModel.from_estimator(clf)
    with pytest.raises(ValueError, match="X has 5 columns, the model has 6"):
        model.scores(Rows(X[:, :5].copy()))
    wider = np.column_stack([X, np.full(len(X), 0.5)])
    k = model.kernel.matrix(X, model.support_vectors) * np.exp(-model.kernel.gamma * 0.25)
    assert_allclose(model.scores(Rows(wider)), k @ model.dual_coef[0] + model.intercept, rtol=1e-9, atol=1e-12)


def test_what_cannot_be_asked_of_it():
    """There are no probabilities, and SVC has no laplacian kernel."""
    model = example()
    with pytest.raises(ValueError, match="no probabilities"):
        model.probabilities(np.zeros(2))
    with pytest.raises(ValueError, match="SVC has no kernel 'laplacian'"):
        replace(model, kernel=Kernel("laplacian")).to_sklearn()


KERNEL = {"name": "rbf", "gamma": 0.5, "degree": 3, "coef0": 0.0}
GOOD = {"format": 1, "classes": {"type": "int", "values": [0, 1, 2]}, "kernel": KERNEL, "columns": 2}
ARRAYS = {
    "support_vectors": np.arange(8.0).reshape(4, 2),
    "dual_coef": np.ones((2, 4)),
    "intercept": np.zeros(3),
    "n_support": np.array([1, 1, 2]),
}
SPARSE = {name: ARRAYS[name] for name in ("dual_coef", "intercept", "n_support")} | {
    "data": np.ones(3),
    "indices": np.array([0, 1, 1], np.int32),
    "indptr": np.array([0, 1, 2, 3, 3], np.int32),
}


def packed(arrays=ARRAYS, **changes):
    """A safetensors file by the package's own writer."""
    return safetensors.numpy.save(arrays, {"widemargin": json.dumps({**GOOD, **changes})})


def kernel(**changes):
    """The same with another kernel."""
    return packed(kernel={**KERNEL, **changes})


HOSTILE = {
    "no n_support": (packed({k: v for k, v in ARRAYS.items() if k != "n_support"}), "has the arrays"),
    "weights": (packed({"coef": np.ones((3, 2)), "intercept": np.zeros(3)}), "a kernel model has 'dual_coef'"),
    "counts of 2^62": (packed({**ARRAYS, "n_support": np.array([2**62] * 3)}), "no numbers of support vectors"),
    "negative counts": (packed({**ARRAYS, "n_support": np.array([-1, 1, 4])}), "no numbers of support vectors"),
    "no support vectors": (packed({**ARRAYS, "n_support": np.zeros(3, np.int64)}), "no numbers of support vectors"),
    "counts of floats": (packed({**ARRAYS, "n_support": np.ones(3)}), "n_support is of type F64, not I64"),
    "two counts": (packed({**ARRAYS, "n_support": np.array([2, 2])}), "n_support has shape (2,)"),
    "too many counted": (packed({**ARRAYS, "n_support": np.array([1, 1, 3])}), "dual_coef has shape"),
    "one row of coefficients": (packed({**ARRAYS, "dual_coef": np.ones((1, 4))}), "dual_coef has shape (1, 4)"),
    "one bias": (packed({**ARRAYS, "intercept": np.zeros(1)}), "intercept has shape (1,)"),
    "float16": (packed({**ARRAYS, "support_vectors": np.ones((4, 2), np.float16)}), "not F64 or F32"),
    "another width": (packed(columns=3), "support_vectors has shape (4, 2)"),
    "NaN": (packed({**ARRAYS, "support_vectors": np.full((4, 2), np.nan)}), "NaN or infinite"),
    "infinite bias": (packed({**ARRAYS, "intercept": np.array([0, np.inf, 0])}), "NaN or infinite"),
    "columns a text": (packed(columns="2"), "columns are not a number"),
    "columns of 2^31": (packed(SPARSE, columns=2**31), "columns are not a number"),
    "no columns": (packed(columns=None), "columns are not a number"),
    "index beyond": (packed({**SPARSE, "indices": np.array([0, 2, 1], np.int32)}), "support vectors are damaged"),
    "index negative": (packed({**SPARSE, "indices": np.array([0, -1, 1], np.int32)}), "support vectors are damaged"),
    "falling starts": (packed({**SPARSE, "indptr": np.array([0, 2, 1, 3, 3], np.int32)}), "damaged"),
    "starts beyond": (packed({**SPARSE, "indptr": np.array([0, 1, 2, 3, 9], np.int32)}), "damaged"),
    "too few starts": (packed({**SPARSE, "indptr": np.array([0, 1, 3], np.int32)}), "indptr has shape"),
    "too few indices": (packed({**SPARSE, "indices": np.array([0, 1], np.int32)}), "indices has shape"),
    "infinite data": (packed({**SPARSE, "data": np.full(3, np.inf)}), "NaN or infinite"),
    "kernel a text": (packed(kernel="rbf"), "its kernel is not a name with gamma"),
    "kernel null": (packed(kernel=None), "its kernel is not a name with gamma"),
    "kernel with more": (kernel(run="rm"), "its kernel is not a name with gamma"),
    "unknown kernel": (kernel(name="\x1b[31m"), "no such kernel"),
    "gamma a text": (kernel(gamma="1"), "its kernel is not a name with gamma"),
    "gamma 0": (kernel(gamma=0), "no such kernel (gamma=0.0"),
    "gamma 10^400": (kernel(gamma=10**400), "no such kernel"),
    "degree a half": (kernel(degree=0.5), "its kernel is not a name with gamma"),
    "degree 2^80": (kernel(degree=2**80), "beyond 32 bits"),
    "degree true": (kernel(degree=True), "its kernel is not a name with gamma"),
    "order of words": (packed(tie_order=["a"]), "tie_order is not a list of places"),
    "order of two": (packed(tie_order=[0, 0, 1]), "does not name every class once"),
    "ties a number": (packed(break_ties=1), "break_ties is neither true nor false"),
    "chi2 of negative numbers": (
        packed({**ARRAYS, "support_vectors": -ARRAYS["support_vectors"]}, kernel={**KERNEL, "name": "chi2"}),
        "is for numbers ≥ 0",
    ),
    "equal classes": (packed(classes={"type": "int", "values": [0, 1, 1]}), "ascending order"),
    "too few names": (packed(feature_names=["a"]), "1 feature names for 2 columns"),
}
TEXTS = {
    "no SV": (THREE.split("SV\n")[0], "ends before its support vectors"),
    "cut": (THREE[:-8], ":15: a support vector begins with 2 finite numbers"),
    "a line less": (THREE[: THREE.rindex("-2 -3")], "3 support vectors, but total_sv is 4"),
    "regression": (THREE.replace("c_svc", "epsilon_svr"), "svm_type is 'epsilon_svr', which has no classes"),
    "no svm_type": (THREE.replace("svm_type c_svc\n", ""), "no line svm_type"),
    "precomputed": (THREE.replace("polynomial", "precomputed"), "a precomputed kernel"),
    "unknown kernel": (THREE.replace("polynomial", "\x1b[31m"), "unknown kernel '\\x1b[31m'"),
    "no gamma": (THREE.replace("gamma 0.5\n", ""), "no line gamma"),
    "gamma 0": (THREE.replace("gamma 0.5", "gamma 0"), "gamma=0.0"),
    "gamma NaN": (THREE.replace("gamma 0.5", "gamma nan"), "gamma must be 1 finite number;"),
    "degree a half": (THREE.replace("degree 2", "degree 2.5"), "degree must be 1 whole number"),
    "degree 10^14": (THREE.replace("degree 2", "degree 100000000000000"), "beyond 32 bits"),
    "a stranger": (THREE.replace("coef0 1", "exec 1"), "'exec' is no word of LIBSVM's"),
    "twice": (THREE.replace("coef0 1", "gamma 1"), "gamma stands here and on line 4"),
    "two rhos": (THREE.replace("rho 0.5 ", "rho "), "rho must be 3 finite numbers"),
    "rho inf": (THREE.replace("rho 0.5", "rho inf"), "rho must be 3 finite numbers"),
    "four labels": (THREE.replace("label 3", "label 4 3"), "4 labels, but nr_class is 3"),
    "label twice": (THREE.replace("label 3 -1", "label 2 -1"), "a label stands twice"),
    "label a half": (THREE.replace("label 3", "label 3.5"), "the label '3.5' is not a whole number"),
    "one class": (THREE.replace("nr_class 3", "nr_class 1"), "nr_class is 1"),
    "nr_sv": (THREE.replace("nr_sv 2 1 1", "nr_sv 2 1 2"), "nr_sv adds up to 5, total_sv is 4"),
    "10^15 support vectors": (
        THREE.replace("total_sv 4", "total_sv 900000000000000").replace("nr_sv 2", "nr_sv 899999999999998"),
        "4 support vectors, but total_sv is 900,000,000,000,000",
    ),
    "no coefficient": (THREE.replace("0.5 0 2:-1", "0.5"), "2 finite numbers, its coefficients"),
    "coefficient NaN": (THREE.replace("0.5 0 2:-1", "nan 0 2:-1"), "2 finite numbers, its coefficients"),
    "coefficient 1_0": (THREE.replace("0.5 0 2:-1", "1_0 0 2:-1"), "2 finite numbers, its coefficients"),
    "last coefficient inf": (THREE.replace("0.5 0 2:-1", "0.5 inf 2:-1"), ":13: 'inf' is not a finite number"),
    "value inf": (THREE.replace("2:-1", "2:inf"), ":13: '2:inf' is not a finite number"),
    "indices fall": (THREE.replace("1:1 3:0.5", "3:0.5 1:1"), ":12: index 1 after 3"),
    "index of 2^40": (THREE.replace("3:4", f"{2**40}:4"), "indices of 32 bits"),
    "index negative": (THREE.replace("3:4", "-3:4"), ":15: index -3 is negative"),
    "a query": (THREE.replace(" 1:1", " qid:1 1:1").replace(" 2:-1", " qid:1 2:-1"), "qid"),
}


def refuse(path, content, words):
    """One line that begins with the file and has the words and what to do."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelError) as caught:
        load_model(path)
    message = str(caught.value)
    assert words in message
    assert message.startswith(f"{path}:")
    assert message.isprintable()
    assert ";" in message


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_safetensors(tmp_path, case):
    """A file with one thing wrong is refused in one line; the same file without it is loaded."""
    for good in (packed(), packed(SPARSE)):
        (tmp_path / "good").write_bytes(good)
        assert load_model(tmp_path / "good").columns == 2
    refuse(tmp_path / "m", *HOSTILE[case])


@pytest.mark.parametrize("case", TEXTS)
def test_hostile_libsvm(tmp_path, case):
    """Text with one thing wrong is refused in one line, with the number of the line."""
    refuse(tmp_path / "m", *TEXTS[case])


@pytest.mark.parametrize("form", ["safetensors", "libsvm"])
def test_changed_bytes(tmp_path, form):
    """Whatever bytes change: a model that gives finite or no scores, or a ModelError."""
    model = example(3, True)
    model.save(tmp_path / "m", format=form)
    content, rng = (tmp_path / "m").read_bytes(), random.Random(0)
    for _ in range(150):
        data = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(min(len(data), 2000) if rng.random() < 0.7 else len(data))
            if rng.random() < 0.5:
                data[at] = rng.randrange(256)
            else:
                del data[at : at + rng.randrange(1, 9)]
        (tmp_path / "n").write_bytes(data)
        try:
            found = load_model(tmp_path / "n")
        except ModelError:
            continue
        assert found.dual_coef.nbytes <= 8 * len(data)

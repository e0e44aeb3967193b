"""The command line with kernels: what it says is what KernelSVM, SVC and LIBSVM compute; its files come back."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics
from sklearn.svm import SVC

from heart import heart, run, svmlight, table, towns
from widemargin import KernelModel, KernelSVM, kernel_training
from widemargin.checkpoint import Checkpoint, Stopped
from widemargin.data import Rows, save

X, Y = heart()
TEST_X, TEST_Y = heart(90, seed=1)
THREE = heart(classes=(0, 1, 2))
#: scikit-learn and we sum kernel values in another order.
SUMS = 1e-9
RBF = "--kernel rbf --gamma 0.1 -C 10"


def sparse(X):
    """CSR with all numbers, as text has them."""
    n, d = X.shape
    return sp.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=(n, d))


def fitted(X=X, y=Y, **parameters):
    """The estimator on the same arrays."""
    return KernelSVM(**{"C": 10.0, "gamma": 0.1, **parameters}).fit(sparse(X), y.astype(float))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with data and kernel models of all kinds."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "heart.svm").write_text(svmlight(X, Y))
    (folder / "test.svm").write_text(svmlight(TEST_X, TEST_Y))
    (folder / "new.svm").write_text(svmlight(TEST_X, 0 * TEST_Y + 9))
    (folder / "three.svm").write_text(svmlight(*THREE))
    (folder / "heart.csv").write_text(table(X, Y))
    (folder / "test.csv").write_text(table(TEST_X, TEST_Y, seed=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (
            "heart.svm -o linear.safetensors",
            f"heart.svm {RBF} -o rbf.safetensors",
            f"heart.svm {RBF} --format libsvm -o rbf.model",
            f"three.svm {RBF} -o three.safetensors",
            f"three.svm {RBF} --format libsvm -o three.model",
            f"heart.csv --label disease {RBF} -o table.safetensors",
        ):
            assert run("train", *command.split(), "--json") == 0
    return folder


@pytest.fixture
def answer(capsys):
    """Runs a command that must end with this code and say nothing on stderr; its output."""

    def answer(command, code=0):
        capsys.readouterr()
        assert run(*shlex.split(command)) == code
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return answer


@pytest.fixture
def numbers(answer):
    """The same for --json: one line, without the numbers that JSON does not have."""

    def numbers(command, code=0):
        out = answer(f"{command} --json", code)
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=pytest.fail)

    return numbers


def test_round_trip(folder, numbers, answer):
    """train, predict, evaluate, certify, info and report say what KernelSVM and scikit-learn's metrics say."""
    clf = fitted(class_weight="balanced")
    said = numbers(f"train heart.svm {RBF} --class-weight balanced --test test.svm -o m.safetensors")
    assert said["kernel"] == {"name": "rbf", "gamma": 0.1}
    assert (said["rows"], said["columns"], said["classes"], said["reached"]) == (270, 13, [-1, 1], True)
    assert said["support_vectors"] == len(clf.support_)
    assert said["certificate"]["each"][0]["primal"] == clf.certificate_.primal
    assert said["training_accuracy"] == clf.score(sparse(X), Y)
    assert said["test"]["accuracy"] == clf.score(sparse(TEST_X), TEST_Y)
    predicted, scores = clf.predict(sparse(TEST_X)), clf.decision_function(sparse(TEST_X))
    lines = [line.split("\t") for line in answer("predict m.safetensors new.svm --scores").splitlines()]
    assert lines[0] == ["label", "score"]
    assert_array_equal(np.array(lines[1:], float), np.column_stack([predicted, scores]))
    said = numbers("evaluate m.safetensors test.svm")
    assert said["f1"] == pytest.approx(metrics.f1_score(TEST_Y, predicted), rel=1e-12)
    assert said["roc_auc"] == pytest.approx(metrics.roc_auc_score(TEST_Y, scores), rel=1e-12)
    said = numbers("certify m.safetensors heart.svm")
    assert said["reached"]
    assert said["each"][0]["primal"] == pytest.approx(clf.certificate_.primal, rel=1e-12)
    assert said["each"][0]["dual"] == pytest.approx(clf.certificate_.dual, rel=1e-12)
    said = numbers("info m.safetensors")
    assert (said["kernel"], said["support_vectors"]) == ({"name": "rbf", "gamma": 0.1}, clf.n_support_.tolist())
    assert (said["C"], said["relative_gap"]) == (10, clf.certificate_.relative_gap)
    text = answer(f"train heart.svm {RBF} --test test.svm -o m.safetensors")
    for words in ("kernel rbf(gamma=0.1), C = 10", "-1 vs 1", "No function of this kernel", "proved"):
        assert words in text
    assert "kernel rbf(gamma=0.1), C = 10" in answer("certify m.safetensors heart.svm")


def test_three_classes(folder, numbers, answer):
    """One-vs-one, as KernelSVM on the same arrays: scores, predictions and a proof per pair."""
    clf = fitted(*THREE)
    lines = [line.split("\t") for line in answer("predict three.safetensors new.svm --scores").splitlines()]
    assert lines[0] == ["label", "0", "1", "2"]
    assert_array_equal(np.array(lines[1:], float)[:, 1:], clf.decision_function(sparse(TEST_X)))
    assert_array_equal(np.array(lines[1:], float)[:, 0], clf.predict(sparse(TEST_X)))
    for source in ("three.safetensors", "three.model -C 10"):
        name, *more = source.split()
        each = numbers(" ".join(["certify", name, "three.svm", *more]))["each"]
        assert [one["class"] for one in each] == ["0 vs 1", "0 vs 2", "1 vs 2"]
        assert [one["primal"] for one in each] == pytest.approx([one.primal for one in clf.certificate_], rel=1e-12)
    assert numbers("evaluate three.safetensors three.svm")["accuracy"] == clf.score(sparse(THREE[0]), THREE[1])
    assert all(name in answer("certify three.safetensors three.svm") for name in ("0 vs 1", "1 vs 2", "worst"))


def test_tables(folder, numbers, answer):
    """Text columns are one-hot, labels are words, names are kept: as KernelSVM on columns made here."""
    names = ["Bern", "Oslo", "Rome"]
    dense = [np.hstack([A, towns(len(A), seed)[:, None] == np.array(names)]) for A, seed in ((X, 0), (TEST_X, 1))]
    clf = KernelSVM(10.0, gamma=0.1).fit(dense[0], np.where(Y > 0, "yes", "no"))
    model = KernelModel.load("table.safetensors")
    assert model.classes.tolist() == ["no", "yes"]
    assert model.feature_names[-3:] == tuple(f"town={name}" for name in names)
    assert run("predict", "table.safetensors", "test.csv", "-o", "out.txt") == 0
    assert (folder / "out.txt").read_text().split() == clf.predict(dense[1]).tolist()
    assert numbers("certify table.safetensors heart.csv")["relative_gap"] == pytest.approx(
        clf.certificate_.relative_gap, abs=1e-12
    )
    answer("convert heart.csv heart.store --label disease")
    assert numbers("certify table.safetensors heart.store")["reached"]


OPTIONS = {
    "--kernel linear": {"kernel": "linear", "gamma": "scale"},
    "--kernel poly --gamma 0.1 --degree 2": {"kernel": "poly", "degree": 2},
    "--kernel poly --gamma 0.1 --coef0 1": {"kernel": "poly", "coef0": 1.0},
    "--kernel rbf --gamma scale": {"gamma": "scale"},
    "--kernel rbf --gamma auto": {"gamma": "auto"},
    "--kernel laplacian --gamma 0.1": {"kernel": "laplacian"},
    "--kernel cosine": {"kernel": "cosine"},
    "--kernel rbf --gamma 0.1 --class-weight 1:3": {"class_weight": {1.0: 3.0}},
    "--kernel rbf --gamma 0.1 --tol 1e-8": {"tol": 1e-8},
    "--kernel rbf --gamma 0.1 --threads 1": {},
    "--kernel rbf --gamma 0.1 --cache-size 1": {"cache_size": 1.0},
}


@pytest.mark.parametrize("options", OPTIONS)
def test_every_option_acts(folder, numbers, options):
    """Coefficients are those of KernelSVM with the parameter of that name; of other kernels, others."""
    clf = fitted(**OPTIONS[options])
    numbers(f"train heart.svm -C 10 {options} -o m.safetensors")
    assert_array_equal(KernelModel.load("m.safetensors").dual_coef, clf.dual_coef_)
    numbers("certify m.safetensors heart.svm")


@pytest.mark.parametrize("name", ["heart", "three"])
def test_libsvm_reads_what_train_writes(folder, answer, name):
    """LIBSVM itself predicts from our text what the command predicts from it and from safetensors."""
    svm = pytest.importorskip("libsvm.svmutil")
    stem = {"heart": "rbf", "three": "three"}[name]
    theirs = svm.svm_load_model(f"{stem}.model")
    labels, _, _ = svm.svm_predict([0.0] * len(TEST_X), TEST_X, theirs, "-q")
    for model in (f"{stem}.model", f"{stem}.safetensors"):
        assert_array_equal(np.array(answer(f"predict {model} new.svm").split(), float), labels)


@pytest.mark.parametrize("name", ["heart", "three"])
def test_models_that_svm_train_wrote(folder, answer, numbers, name):
    """The command predicts what LIBSVM does and proves its α: the gap shrinks with LIBSVM's tolerance."""
    svm = pytest.importorskip("libsvm.svmutil")
    data, y = {"heart": (X, Y), "three": THREE}[name]
    gaps = []
    for tolerance in (0.1, 1e-6):
        theirs = svm.svm_train(y, data, f"-q -t 2 -g 0.1 -c 10 -e {tolerance}")
        svm.svm_save_model("theirs.model", theirs)
        labels, _, _ = svm.svm_predict([0.0] * len(TEST_X), TEST_X, theirs, "-q")
        assert_array_equal(np.array(answer("predict theirs.model new.svm").split(), float), labels)
        gaps.append(numbers(f"certify theirs.model {name}.svm -C 10 --tol 1")["relative_gap"])
    assert gaps[0] > 1e-4 > 1e-6 > gaps[1] > 0


def test_models_of_svc(folder, numbers, answer):
    """A file of scikit-learn's SVC with class weights: its scores, and its proof from the file and the rows."""
    clf = SVC(C=10, gamma=0.1, class_weight="balanced").fit(X, Y)
    KernelModel.from_estimator(clf).save("svc.safetensors")
    lines = answer("predict svc.safetensors new.svm --scores").splitlines()
    scores = [float(line.split("\t")[1]) for line in lines[1:]]
    assert_allclose(scores, clf.decision_function(TEST_X), rtol=SUMS, atol=SUMS)
    assert 1e-7 < numbers("certify svc.safetensors heart.svm")["relative_gap"] < 1e-2
    KernelModel.from_estimator(clf).save("svc.model", format="libsvm")
    said = numbers("certify svc.model heart.svm -C 10 --class-weight balanced")
    assert said["relative_gap"] == pytest.approx(numbers("certify svc.safetensors heart.svm")["relative_gap"], rel=1e-6)


def test_sparse_rows_of_another_width(folder, answer):
    """Columns that no support vector has count in distances, as in LIBSVM; columns that are missing are 0."""
    model = KernelModel.load("rbf.safetensors")
    for width, name in ((15, "wide"), (9, "narrow")):
        rows = np.zeros((90, width))
        rows[:, : min(width, 13)] = TEST_X[:, :width]
        rows[:, 13:] = 0.5
        (folder / f"{name}.svm").write_text(svmlight(rows, 0 * TEST_Y + 9))
        full = np.zeros((90, max(width, 13)))
        full[:, :width] = rows
        expected = model.scores(Rows(full))
        lines = answer(f"predict rbf.safetensors {name}.svm --scores").splitlines()
        assert_array_equal([float(line.split("\t")[1]) for line in lines[1:]], expected)


MISTAKES = {
    f"train heart.svm {RBF} --loss logistic": "--loss logistic is for linear models; with --kernel the loss is",
    "train heart.svm --kernel linear --gamma 1": "--gamma: the linear kernel has none; leave it out, or use --kernel",
    f"train heart.svm {RBF} --degree 2": "--degree: the rbf kernel has none; leave it out, or use --kernel poly",
    f"train heart.svm {RBF} --coef0 2": "--coef0: the rbf kernel has none; leave it out, or use --kernel poly, sigmoid",
    "train heart.svm --gamma 1": "--gamma is for kernel machines; say which with --kernel, or leave --gamma out",
    "train heart.svm --format libsvm": "--format libsvm is for kernel machines; use --format liblinear, or --kernel",
    f"train heart.svm {RBF} --format liblinear": "--format liblinear is for linear models; with --kernel use --format",
    f"train heart.svm {RBF} --no-bias": "--no-bias is for linear models; a kernel machine has a bias: leave it out",
    f"train heart.svm {RBF} --cache": "--cache keeps rows on disk, and --kernel trains in memory; leave it out",
    f"train heart.svm {RBF} --solver dual_cd": "--solver dual_cd is for linear models; with --kernel use auto or smo",
    f"train heart.svm {RBF} --resume": "--resume goes on from a state; say where it is with --checkpoint DIR",
    "train heart.svm --kernel precomputed": r".*invalid choice: 'precomputed' \(choose from .*see 'widemargin train",
    "train heart.svm --kernel rbf --gamma 0": r".*'0' is not a finite number > 0, scale or auto; see 'widemargin",
    "train heart.svm --kernel chi2": "heart.svm: .*kernel='chi2' is for numbers ≥ 0, and X has -.*use another kernel",
    "train heart.svm --kernel linear -C inf": "heart.svm: -C inf asks for a hyperplane .*and there is none; use a",
    "train heart.svm --kernel poly --degree 99 --gamma 1e9": r"heart.svm: k\(x, x\) of row 0 is inf with poly.*; scale",
    "train heart.svm --kernel laplacian --format libsvm": "heart.model: LIBSVM has no kernel 'laplacian'; save as",
    f"train heart.csv --label disease {RBF} --format libsvm": "heart.model: the class 'no' is no label for LIBSVM",
    f"train heart.svm {RBF} --test new.svm": "new.svm: its labels are 9, the model knows -1, 1; write them alike",
    f"train heart.svm {RBF} --checkpoint heart.csv": "heart.csv: no state can be saved: File exists; name another",
    "predict rbf.safetensors new.svm --proba": "rbf.safetensors: a model of the hinge loss has scores but no probab",
    "predict heart.svm rbf.safetensors": "heart.svm: svmlight data, not a model; train on it first",
    "predict rbf.safetensors test.csv": "test.csv: no column is called label; name it with --label",
    "predict table.safetensors new.svm": "new.svm: the columns asked for are those of a table, this is svmlight; give",
    "evaluate rbf.safetensors new.svm": "new.svm: its labels are 9, the model knows -1, 1; write them alike",
    "certify rbf.safetensors test.svm": "test.svm: support vector 1, of class -1, is none of the rows; give the rows",
    "certify rbf.model heart.svm": "rbf.model: says no C; say it with -C",
    "certify rbf.model heart.svm -C 1": r"heart.svm: the model: a support vector's α is 10, outside of 0 ≤ α ≤ 1, C",
    "certify rbf.safetensors three.svm": "three.svm: the model knows no class 0; give the rows that the model was",
    "certify rbf.safetensors heart.svm --class-weight 7:2": "--class-weight 7:2: there is no class '7'; the classes of",
    "report rbf.safetensors gone.svm": "gone.svm: no such file or directory; check the path",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_mistake(folder, command, capsys):
    """One line that says what, where and what to do, exit code 2, and nothing is written."""
    before = {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    assert run(*command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"widemargin: {MISTAKES[command]}.*\n", err), err
    assert {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()} == before


def test_an_indefinite_kernel(folder, answer, capsys):
    """tanh with negative curvature: exit code 1, nothing is proved, and why is said by train, certify and report."""
    text = answer("train heart.svm --kernel sigmoid --gamma 1 -o m.safetensors", code=1)
    assert "NOTHING is proved: the kernel is not positive semidefinite: " in text
    assert run("certify", "m.safetensors", "heart.svm") == 1
    out, err = capsys.readouterr()
    assert "Nothing is proved of it" in out
    assert "not positive semidefinite: vᵀKv = -" in err
    assert run("report", "m.safetensors", "heart.svm", "-o", "page.html") == 0
    assert (
        "Nothing is proved of it: its kernel is not positive semidefinite on these rows."
        in (folder / "page.html").read_text()
    )


@pytest.mark.parametrize("name", ["rbf", "three"])
def test_reports(folder, answer, name):
    """A page on the rows of the training has the certificate and says whose rows they are; on others it has neither."""
    data = {"rbf": "heart", "three": "three"}[name]
    clf = fitted(*(THREE if name == "three" else (X, Y)))
    answer(f"report {name}.safetensors {data}.svm -o page.html")
    page = (folder / "page.html").read_text()
    right = round(clf.score(sparse(THREE[0] if name == "three" else X), THREE[1] if name == "three" else Y) * 270)
    assert f"Of 270 rows, {right} are classified rightly" in page
    assert "These are the rows that the model was trained on." in page
    assert "No function of its kernel can have" in page
    assert f"{len(clf.support_):,}" in page.split("<h2>Kernel")[1]
    for one in getattr(clf.certificate_, "each", [clf.certificate_]):
        assert f"{one.primal:.6g}" in page
    assert page.count("<img ") == 1
    answer(f"report {name}.safetensors test.svm -o page.html")
    page = (folder / "page.html").read_text()
    assert "<h2>Certificate" not in page
    assert "So says its file, of its training." in page
    if name == "rbf":  # its text says no C, so there is no proof, but the same predictions
        answer("report rbf.model heart.svm -o page.html")
        assert f"Of 270 rows, {right} are classified rightly" in (folder / "page.html").read_text()


def states_of(clf, X, y):
    """All states of a fit."""
    states = []
    clf._fit(X, y, keep=lambda state: states.append(state()))
    return states


SETTINGS = {
    "rbf": ({"C": 100.0, "gamma": 0.3, "tol": 1e-9}, 2),
    "pairs": ({"C": 100.0, "gamma": 0.3, "tol": 1e-9}, 3),
    "cut short": ({"C": 1e4, "gamma": 0.01, "tol": 1e-12, "max_iter": 12}, 2),
    "hard margin": ({"C": np.inf, "gamma": 1.0, "tol": 1e-9}, 2),
    "linear": ({"C": 10.0, "kernel": "linear", "solver": "smo", "tol": 1e-9}, 3),
    "indefinite": ({"C": 10.0, "kernel": "sigmoid", "gamma": 0.5}, 2),
}


@pytest.mark.parametrize("largest", [64, 8192])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_goes_on_with_the_same_bits(tmp_path, monkeypatch, setting, largest):
    """Equals the undisturbed fit whichever round it was stopped after, working sets being all of the rows or some."""
    monkeypatch.setattr(kernel_training, "LARGEST", largest)
    parameters, classes = SETTINGS[setting]
    X, y = heart(400, classes=tuple(range(classes)))
    whole = KernelSVM(**parameters).fit(X, y)
    states = states_of(KernelSVM(**parameters), X, y)
    assert states
    kept = Checkpoint(tmp_path, {})
    for state in [states[0], *states[1 :: max(1, len(states) // 4)], states[-1]]:
        kept.save(state)
        again = KernelSVM(**parameters)._fit(X, y, resumed=kept.load())
        for name in ("dual_coef_", "intercept_", "support_"):
            assert getattr(again, name).tobytes() == getattr(whole, name).tobytes()
        assert (again.n_iter_, again.certificate_.gap) == (whole.n_iter_, whole.certificate_.gap)


@pytest.mark.parametrize("before", [1, 2])
def test_a_first_signal_saves_the_state(folder, capsys, monkeypatch, before):
    """Exit code 130 and a state, from which the same command ends with the undisturbed run's bytes and no state."""
    monkeypatch.setattr(kernel_training, "ROUNDS", 1)
    command = f"train heart.svm {RBF} --tol 1e-9 --json".split()
    assert run(*command, "-o", "whole.safetensors") == 0
    visit, times = Checkpoint.visit, []

    def stopped(self, state):
        times.append(1)
        if len(times) == before:
            os.kill(os.getpid(), signal.SIGTERM if before == 1 else signal.SIGINT)
        visit(self, state)

    monkeypatch.setattr(Checkpoint, "visit", stopped)
    capsys.readouterr()
    assert run(*command, "-o", "m.safetensors", "--checkpoint", "state") == 130
    assert "stopped; the state is saved in state: go on with --resume" in capsys.readouterr().err
    assert not (folder / "m.safetensors").exists()
    assert run(*command, "-o", "m.safetensors", "--checkpoint", "state", "-C", "3", "--resume") == 2
    assert "this state is of a run with C 10.0, now it is 3.0" in capsys.readouterr().err
    monkeypatch.setattr(Checkpoint, "visit", visit)
    assert run(*command, "-o", "m.safetensors", "--checkpoint", "state", "--resume") == 0
    assert (folder / "m.safetensors").read_bytes() == (folder / "whole.safetensors").read_bytes()
    assert not (folder / "state").exists()


def test_an_interrupt_without_a_checkpoint(folder, capsys, monkeypatch):
    """As without a kernel: exit code 130, no model; the estimator keeps what it reached, with its certificate."""

    def interrupt(self, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr("widemargin.progress.ProgressLine.show", interrupt)
    assert run("train", "heart.svm", *RBF.split(), "-o", "m.safetensors") == 130
    assert capsys.readouterr().err == "widemargin: interrupted; no model was written\n"
    assert not (folder / "m.safetensors").exists()
    clf = KernelSVM(10.0, gamma=0.1)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    assert clf.certificate_.primal < 10 * len(Y)


def test_a_linear_fit_that_is_stopped_begins_anew():
    """The linear solvers' own state is not kept with the linear kernel: the state says nothing, and the bits are those
    of the undisturbed fit.
    """
    clf = KernelSVM(10.0, kernel="linear", tol=1e-6)
    whole, states = clf.fit(X, Y).dual_coef_, []

    def keep(state):
        states.append(state())
        raise Stopped

    with pytest.raises(Stopped):
        KernelSVM(10.0, kernel="linear", tol=1e-6)._fit(X, Y, keep=keep)
    again = KernelSVM(10.0, kernel="linear", tol=1e-6)._fit(X, Y, resumed=states[0])
    assert_array_equal(again.dual_coef_, whole)


PROGRAM = "import sys; from widemargin.cli import main; print('ready', flush=True); sys.exit(main())"


def test_killed_at_any_moment(tmp_path):
    """A kill -9 at a moment drawn at random, and another once a state was saved: the undisturbed run's bytes."""
    A, y = heart(1500, classes=(0, 1, 2))
    save(tmp_path / "x.svm", A, y.astype(float))

    def train(name):
        command = [sys.executable, "-c", PROGRAM, "train", "x.svm", "--kernel", "rbf", "--gamma", "0.2", "-C", "50"]
        command += ["--tol", "1e-9", "--json", "--checkpoint", f"{name}.state", "--every", "0.01", "--resume"]
        process = subprocess.Popen(
            [*command, "-o", f"{name}.safetensors"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        return process

    with train("whole") as run:
        began = time.monotonic()
        run.communicate(timeout=120)
        takes = time.monotonic() - began
    whole = (tmp_path / "whole.safetensors").read_bytes()
    state, model = tmp_path / "m.state" / "state.npz", tmp_path / "m.safetensors"
    with train("m") as run:
        time.sleep(float(np.random.default_rng(0).uniform(0.1, 0.9)) * takes)
        run.kill()
    with train("m") as run:
        before = state.stat().st_mtime_ns if state.exists() else None
        while run.poll() is None and (state.stat().st_mtime_ns if state.exists() else None) == before:
            time.sleep(0.002)
        run.kill()
    assert state.exists() or model.exists()
    with train("m") as run:
        run.communicate(timeout=120)
        assert run.returncode == 0
    assert model.read_bytes() == whole
    assert not state.exists()

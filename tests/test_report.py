import re
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn import metrics
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression

from oracles import noisy, text_like
from widemargin import LinearSVM, LogisticRegression, Perceptron, certify
from widemargin.cli import main
from widemargin.model import LinearModel
from widemargin.report import report, write_report

mpl.use("Agg")
VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """What a browser would make of the page: its tags, their attributes, its text; every tag must be closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.open, self.words = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):  # noqa: D102
        self.tags.append(tag)
        self.attributes.extend((tag, *pair) for pair in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):  # noqa: D102
        assert self.open.pop() == tag

    def handle_data(self, data):  # noqa: D102
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        """The words of the page, one space between them."""
        return " ".join(" ".join(self.words).split())


def table_after(page, heading):
    """The cells of the first table after a heading, row by row, without their tags."""
    body = page.split(heading, 1)[1].split("<tbody>", 1)[1].split("</tbody>", 1)[0]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]


@pytest.fixture
def quick(monkeypatch):
    """Pictures are drawn, but not turned into images, which takes most of the time."""

    def draw_only(draw):
        draw(Figure().subplots())
        return "data:,"

    monkeypatch.setattr("widemargin.report.sections.picture_of", draw_only)


def fitted(n=120, d=4, **parameters):
    """A fit, and its rows and labels."""
    X, y = noisy(n, d)
    return LinearSVM(**parameters).fit(X, y), X, y


@pytest.mark.usefixtures("quick")
def test_the_first_sentences_say_how_good_and_how_sure():
    """The numbers of rows, right ones and per cent are score's, and the gap that is proved is the certificate's."""
    svm, X, y = fitted(tol=1e-3, solver="dual_cd")
    page = Page(report(svm, X, y, source="some rows", model_name="a model"))
    right = int((svm.predict(X) == y).sum())
    assert f"Of 120 rows, {right} are classified rightly ({right / 1.2:.1f} %)" in page.text
    assert f"more than {100 * svm.certificate_.relative_gap:.2g} % better: proved" in page.text
    assert page.text.index("a model") < page.text.index("on some rows: 120 rows, 4 features, 2 classes")
    assert "rows that the model was trained on" in page.text


def test_the_page_is_complete_in_itself():
    """No address but data and anchors, no script, no form; the pictures are images that hold themselves."""
    svm, X, y = fitted(solver="dual_cd")
    page = Page(report(svm, X, y))
    assert not {"script", "link", "iframe", "object", "form"} & set(page.tags)
    addresses = [value for _, name, value in page.attributes if name in ("src", "href")]
    assert len(addresses) == 3
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    assert ("meta", "content", "default-src 'none'; img-src data:; style-src 'unsafe-inline'") in page.attributes


def test_pictures_are_black_on_white_whatever_the_style():
    """The page turns them to white on black by itself: they are the same under a dark style."""
    svm, X, y = fitted(d=1)
    page = report(svm, X, y)
    with mpl.style.context("dark_background"):
        assert report(svm, X, y) == page
    assert "The margin, the only feature: the line decides" in page


@pytest.mark.usefixtures("quick")
def test_certificate_and_kkt_table_are_the_estimators():
    """The cells equal the certificate's own numbers."""
    svm, X, y = fitted()
    page = report(svm, X, y)
    facts = {row[0]: row[1] for row in table_after(page, "<h2>Certificate")}
    proof = svm.certificate_
    assert facts["primal"] == f"{proof.primal:.9g}"
    assert facts["support vectors"] == f"{len(proof.support)} of 120"
    assert facts["misclassified"] == f"{proof.misclassified}"
    kinds = table_after(page, "<h3>Optimality")
    assert [int(row[2]) for row in kinds] == [kind.count for kind in proof.kkt if kind.count]
    assert [row[3] for row in kinds] == [f"{kind.worst:.1e}" for kind in proof.kkt if kind.count]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_features_are_ranked_by_what_they_move(form):
    """Under either class stand the features of the largest weight × standard deviation, with the weight itself."""
    X, y = noisy(120, 30, big=1e4)
    X += 10.0
    svm = LinearSVM().fit(X, y)
    names = [f"column {k}" for k in range(30)]
    page, w = report(svm, form(X), y, names=names), svm.coef_[0]
    moves = w * X.std(axis=0)
    assert (np.argsort(abs(w)) != np.argsort(abs(moves))).any()
    for heading, wanted in (("Speak for class 1<", np.argsort(-moves)), ("Speak for class -1<", np.argsort(moves))):
        rows = table_after(page, heading)
        signed = [k for k in wanted if (w[k] > 0) == (w[wanted[0]] > 0)][:15]
        assert [row[0] for row in rows] == [names[k] for k in signed]
        assert [float(row[1]) for row in rows] == pytest.approx(w[signed], rel=1e-3)
        assert [float(row[2]) for row in rows] == pytest.approx(moves[signed], rel=1e-2)
    assert "feature 30" in report(svm, X, y)


@pytest.mark.usefixtures("quick")
def test_the_spread_of_a_column_far_from_0():
    """Its standard deviation is that of the column, however large its mean, also of sparse rows."""
    X, y = noisy(200, 2)
    X[:, 0] += 1e8
    model = LinearModel(np.ones((1, 2)), np.array([-1e8]), np.array([-1.0, 1.0]))
    moved = {row[0]: float(row[2]) for row in table_after(report(model, sp.csr_array(X), y), "Speak for class 1<")}
    assert moved == pytest.approx({"feature 1": X[:, 0].std(), "feature 2": X[:, 1].std()}, rel=1e-2)


@pytest.mark.usefixtures("quick")
def test_worst_violations_are_named_by_row():
    """The rows listed, counted from 1, are those of the smallest margins, in order, with ξ = 1 − margin."""
    svm, X, y = fitted()
    rows = table_after(report(svm, X, y), "<h2>Worst violations")
    margins = y * svm.decision_function(X)
    order = np.argsort(margins)[: len(rows)]
    assert [int(row[0]) - 1 for row in rows] == order.tolist()
    assert [float(row[4]) for row in rows] == pytest.approx(1 - margins[order], rel=1e-3)


def test_names_and_labels_are_escaped():
    """Scripts in labels, names, source and model name arrive as text: the page has no such element."""
    X, y = noisy(60, 2)
    evil = "<script>alert('x')</script>\"&"
    labels = np.where(y > 0, f"{evil}1", f"{evil}2")
    truth = labels.astype(object)
    truth[0] = f"{evil}3"
    svm = LinearSVM().fit(X, labels)
    page = report(svm, X, truth, names=[evil, "<img src=x onerror=alert(1)>"], source=evil, model_name=evil)
    seen = Page(page)
    assert "script" not in seen.tags
    assert not [name for _, name, _ in seen.attributes if name.startswith("on")]
    assert evil in seen.text


@pytest.mark.usefixtures("quick")
def test_a_bare_model_has_no_certificate_unless_one_is_given():
    """Without it the certificate's parts are left out, and the page says so; with it they equal those of the fit."""
    svm, X, y = fitted()
    model = LinearModel(svm.coef_, svm.intercept_, svm.classes_)
    bare = report(model, X, y)
    assert "<h2>Certificate" not in bare
    assert "is not proved here: that takes the rows, the loss and the C" in bare
    given = report(model, X, y, certificate=svm.certificate_)
    whole = report(svm, X, y)
    assert table_after(given, "<h2>Certificate") == table_after(whole, "<h2>Certificate")
    assert table_after(bare, "<h2>Evaluation") == table_after(whole, "<h2>Evaluation")


@pytest.mark.usefixtures("quick")
def test_other_rows_than_those_of_the_certificate():
    """On held-out rows the page says whose the proof is and gives an interval that holds the accuracy."""
    X, y = noisy(200, 4)
    svm = LinearSVM().fit(X[:100], y[:100])
    page = Page(report(svm, X[100:], y[100:])).text
    assert "not about those of this page" in page
    low, high = map(float, re.search(r"between ([\d.]+) % and ([\d.]+) % \(95 % interval\)", page).groups())
    assert low < 100 * svm.score(X[100:], y[100:]) < high


@pytest.mark.usefixtures("quick")
def test_a_fit_that_fell_short_is_told():
    """With one pass the gap is wide, and the first screen warns instead of praising."""
    X, y = noisy(300, 10)
    with pytest.warns(match="relative gap"):
        svm = LinearSVM(solver="dual_cd", max_iter=1, tol=1e-6).fit(X, y)
    assert svm.certificate_.relative_gap > 0.01
    page = Page(report(svm, X, y)).text
    assert "Training stopped short" in page
    assert "proved." not in page


@pytest.mark.usefixtures("quick")
def test_held_out_rows_of_the_same_number_have_no_support_vectors(monkeypatch):
    """The page neither rings rows nor draws their α: neither picture of the fit's rows is about these."""
    X, y = noisy(200, 4)
    svm = LinearSVM(solver="dual_cd").fit(X[:100], y[:100])
    captions = []

    def draw(picture):
        ax = Figure().subplots()
        picture(ax)
        captions.append([text.get_text() for text in ax.get_legend().get_texts()])
        return "data:,"

    monkeypatch.setattr("widemargin.report.sections.picture_of", draw)
    report(svm, X[100:], y[100:])
    assert len(captions) == 2  # margin and convergence
    assert not [one for one in captions[0] if "support vector" in one]
    report(svm, X[:100], y[:100])
    assert len(captions) == 5
    assert [one for one in captions[2] if "support vector" in one]


@pytest.mark.usefixtures("quick")
def test_a_fit_with_weights_has_its_page():
    """Rows whose weights the page does not know have no picture of α/c, and all else."""
    X, y = noisy(100, 3)
    page = report(LinearSVM().fit(X, y, 1.0 + np.arange(100) % 4), X, y)
    assert "The margin, " in page
    assert "Optimality: how hard" not in page
    assert "rows that the model was trained on" in page


@pytest.mark.usefixtures("quick")
def test_a_proof_on_other_rows_is_no_training_on_them():
    """Of a certificate computed on test rows the page says what it proves, and not that they were trained on."""
    X, y = noisy(200, 4)
    model = LinearModel.from_estimator(LinearSVM(tol=1e-6).fit(X[:100], y[:100]))
    judged = Page(report(model, X[100:], y[100:], certificate=certify(X[100:], y[100:], model.coef, model.intercept)))
    assert "were trained on" not in judged.text
    assert "the model was trained on. Expect" not in judged.text
    assert "% better on these rows." in judged.text
    assert "Training stopped short" not in judged.text
    trained = Page(report(model, X[:100], y[:100], certificate=certify(X[:100], y[:100], model.coef, model.intercept)))
    assert "These are the rows that the model was trained on." in trained.text


@pytest.mark.usefixtures("quick")
def test_accuracy_no_better_than_the_most_frequent_class_is_told():
    """The page says so of the accuracy alone; where the scores order the rows, it says that, too."""
    X, y = noisy(100, 2)
    labels = np.where(np.arange(100) < 90, -1.0, y)
    blind = LinearModel(np.zeros((1, 2)), np.array([-1.0]), np.array([-1.0, 1.0]))
    page = report(blind, X, labels)
    assert "not better than that of always naming the most frequent class" in page
    assert "of use" not in page
    rng = np.random.default_rng(0)
    rare = np.repeat([0, 1], [950, 50])
    X = rng.standard_normal((1000, 1)) + 1.4 * rare[:, None]
    shy = LinearModel(np.ones((1, 1)), np.array([-9.0]), np.array([0, 1]))
    page = report(shy, X, rare)
    assert "not better than that of always naming the most frequent class" in page
    assert f"with a ROC AUC of {metrics.roc_auc_score(rare, X[:, 0]):.3f}" in page


def first_screen_of(model, X, y):
    """The words before the first section."""
    return Page(report(model, X, y).split("<section>")[0] + "</body></html>").text


#: Says class 1 where the only feature is positive.
SIGN = LinearModel(np.ones((1, 1)), np.zeros(1), np.array([0, 1]))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("only", [0, 1])
def test_rows_of_one_class_do_not_judge_a_model(only):
    """99 of 100 rows of the only class are right: nothing is said against the model, and no F1 is made up."""
    signs = np.where(np.arange(100) == 0, -1.0, 1.0) * (1 if only else -1)
    words = first_screen_of(SIGN, signs[:, None], np.full(100, only))
    assert "99 are classified rightly (99.0 %)" in words
    assert "not better than" not in words
    assert "by always naming" not in words
    assert f"Every label that the model knows is {only}: such rows cannot tell" in words
    assert ("– F1 of class 1: no such rows" in words) == (only == 0)
    assert "0.000" not in words


@pytest.mark.usefixtures("quick")
def test_labels_spelt_otherwise_do_not_judge_a_model():
    """Of labels that the model does not know the page asks how they are spelt; some of them are no class to name."""
    X, y = np.tile([[1.0], [-1.0]], (50, 1)), np.tile([1, 0], 50)
    words = first_screen_of(SIGN, X, y.astype(str))
    assert "No row has a label that the model knows" in words
    assert "not better than" not in words
    mixed = y.astype(object)
    mixed[:60] = "zebra"
    words = first_screen_of(SIGN, X, mixed)
    assert "not better than" not in words
    assert "20.0 % by always naming the most frequent class" in words


@pytest.mark.usefixtures("quick")
def test_a_gain_that_chance_explains_is_no_gain():
    """53.5 % against 53.1 % of 1,000 rows is within the interval, which is told; with 100,000 rows it is not."""
    for times, clear in ((1, False), (100, True)):
        y = np.repeat([0, 0, 1, 1], np.array([500, 31, 35, 434]) * times)
        said = np.repeat([-1.0, 1.0, 1.0, -1.0], np.array([500, 31, 35, 434]) * times)
        words = first_screen_of(SIGN, said[:, None], y)
        assert ("cannot be distinguished from always naming the most frequent class" in words) == (not clear)
        assert "(53.5 %)" in words
        assert "53.1 %" in words
    assert "mistakes instead of" in words


@pytest.mark.usefixtures("quick")
def test_several_classes_without_a_mistake():
    """The page says that every row scores highest for its class, not that it is outside of all margins."""
    X, y = np.repeat(np.eye(3), 10, axis=0), np.repeat(["a", "b", "c"], 10)
    svm = LinearSVM(C=0.05).fit(X, y)
    assert sum(one.violations for one in svm.certificate_) > 0
    page = report(svm, X, y)
    assert "None: every row scores highest for its own class." in page
    assert "outside of the margin" not in page


@pytest.mark.usefixtures("quick")
def test_what_a_gap_is_of():
    """The tile beside the accuracy names the objective."""
    assert "the most that other weights could lower the objective" in report(*fitted())


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_the_command_proves_and_draws_the_rows_of_the_training(tmp_path, loss):
    """On the rows trained on: certificate, three settings, margin and KKT; on others: margin and settings alone."""
    X, y = noisy(200, 4)
    for name, rows in (("train", slice(0, 100)), ("test", slice(100, 200))):
        dump_svmlight_file(X[rows], y[rows], f"{tmp_path}/{name}.svm", zero_based=False)
    train = ["train", f"{tmp_path}/train.svm", "-C", "0.5", "--loss", loss, "--json", "-o", f"{tmp_path}/m.safetensors"]
    assert main(train) == 0
    pages = {}
    for name in ("train", "test"):
        page = tmp_path / f"{name}.html"
        assert main(["report", f"{tmp_path}/m.safetensors", f"{tmp_path}/{name}.svm", "-o", str(page)]) == 0
        pages[name] = page.read_text()
        settings = dict(table_after(pages[name], "<h2>Settings"))
        assert (settings["loss"], settings["C"], settings["rows trained on"]) == (loss, "0.5", "100")
    assert [page.count("<img ") for page in pages.values()] == [2, 1]
    assert ["<h2>Certificate" in page for page in pages.values()] == [True, False]
    assert "These are the rows that the model was trained on." in pages["train"]
    first_screen = Page(pages["test"].split("<section>")[0] + "</body></html>").text
    assert "is not proved here" not in first_screen
    assert "on the rows it was trained on" in first_screen
    assert "So says its file, of its training." in first_screen
    assert "could lower the objective, at training" in first_screen


def test_the_command_writes_pages_alone(tmp_path, capsys):
    """A name that is no page's is refused before anything is written."""
    model, rows = f"{tmp_path}/m.safetensors", f"{tmp_path}/rows.svm"
    svm, X, y = fitted()
    LinearModel.from_estimator(svm).save(model)
    dump_svmlight_file(X, y, rows, zero_based=False)
    assert main(["report", model, rows, "-o", f"{tmp_path}/x.pdf"]) != 0
    assert "x.pdf: no page ends in '.pdf'; use .html or .htm" in capsys.readouterr().err
    assert not (tmp_path / "x.pdf").exists()


def test_the_command_on_a_model_of_another_loss(tmp_path):
    """A multinomial model has its page, which says why there is no proof."""
    X, y = noisy(90, 3)
    y = np.arange(90) % 3
    dump_svmlight_file(X, y, f"{tmp_path}/rows.svm", zero_based=False)
    theirs = SklearnLogisticRegression().fit(X, y)
    LinearModel.from_estimator(theirs).save(tmp_path / "m.safetensors")
    assert main(["report", f"{tmp_path}/m.safetensors", f"{tmp_path}/rows.svm", "-o", f"{tmp_path}/page.html"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "this model has the multinomial loss" in page
    assert f"{theirs.score(X, y) * 90:.0f} are classified rightly" in page


@pytest.mark.usefixtures("quick")
def test_unknown_labels_and_absent_classes_are_told():
    """The page names a label that the model does not know, a class that no row has, and still draws the rest."""
    X, _ = noisy(120, 3)
    labels = np.array(["a", "b", "c"])[np.arange(120) % 3]
    svm = LinearSVM(C=0.1).fit(X, labels)
    truth = np.where(labels == "c", "zebra", labels)
    page = Page(report(svm, X, truth))
    assert "40 rows have labels that the model does not know (zebra)" in page.text
    assert "No row has the class c" in page.text
    assert "img" in page.tags


def test_twenty_classes():
    """All classes are in the tables, the confusions add up to the rows, and the page stays small."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 30)), np.arange(400) % 20
    X[np.arange(400), y] += 3
    names = np.array([f"a topic with a long name, number {k}" for k in range(20)])
    clf = LogisticRegression().fit(X, names[y])
    page = report(clf, X, names[y])
    assert len(table_after(page, "<h3>Class by class")) == 20
    confusion = table_after(page, "<h3>Confusions")
    assert sum(int(cell) for row in confusion for cell in row[1:] if cell != "·") == 400
    assert len(re.findall(r"<li><strong>", page)) == 20
    assert "log loss" in page
    assert len(page.encode()) < 1_000_000


def test_a_hundred_thousand_features_and_long_names_stay_under_two_megabytes():
    """Size of the page, for sparse rows with long names of features."""
    X, y = text_like(2000, d=100_000)
    svm = LinearSVM().fit(X, y)
    page = report(svm, X, y, names=[f"{'a long name ' * 30}{k}" for k in range(100_000)])
    assert len(page.encode()) < 2_000_000


def test_many_rows_stay_under_two_megabytes():
    """Size of the page for 100,000 rows, which pictures show as pixels."""
    X, y = noisy(100_000, 3)
    svm = LinearSVM(C=0.01).fit(X, y)
    assert len(report(svm, X, y).encode()) < 2_000_000


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, lambda X: X.astype(np.float32), lambda X: X.tolist()])
def test_any_form_of_rows(form):
    """Sparse, float32 and lists give the evaluation that the array gives."""
    svm, X, y = fitted()
    X = X.round(2)
    svm.fit(X, y)
    assert table_after(report(svm, form(X), y), "<h2>Evaluation") == table_after(report(svm, X, y), "<h2>Evaluation")


@pytest.mark.usefixtures("quick")
def test_a_classifier_without_a_certificate():
    """A perceptron's page has evaluation, margin and features, and no certificate."""
    X, y = noisy(100, 3, noise=0.0)
    page = report(Perceptron().fit(X[2:], y[2:]), X[2:], y[2:])
    assert "<h2>Certificate" not in page
    assert "<h2>Heaviest features" in page


@pytest.mark.usefixtures("quick")
def test_wrong_input_is_named():
    """Each message says what does not fit."""
    svm, X, y = fitted()
    with pytest.raises(ValueError, match="names has 2 names; the model has 4 features"):
        report(svm, X, y, names=["a", "b"])
    with pytest.raises(ValueError, match="X has 120 rows and y has 100 labels"):
        report(svm, X, y[:100])
    with pytest.raises(TypeError, match="give a fitted linear classifier"):
        report("model", X, y)


@pytest.mark.usefixtures("quick")
def test_the_file_is_written_whole_or_not_at_all(tmp_path):
    """It holds what report returns; a failure leaves the old file and nothing beside it."""
    svm, X, y = fitted()
    path = tmp_path / "report.html"
    write_report(path, svm, X, y, source="rows")
    assert path.read_text(encoding="utf-8") == report(svm, X, y, source="rows")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="names"):
        write_report(path, svm, X, y, names=["too few"])
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert path.read_bytes() == before

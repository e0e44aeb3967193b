import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.svm import LinearSVC

from oracles import noisy
from widemargin import LinearSVM
from widemargin.plots import ConvergenceDisplay, MarginDisplay

mpl.use("Agg")


def drawn(display):
    """The rows' marks by their labels: where each stands."""
    return {marks.get_label(): np.asarray(marks.get_offsets()) for marks in display.ax_.collections}


def legend(display):
    """The labels of the legend."""
    return [entry.get_text() for entry in display.ax_.get_legend().get_texts()]


def margin_of(X, y, **parameters):
    """A fit and its picture, on axes of its own."""
    svm = LinearSVM(**parameters).fit(X, y)
    return svm, MarginDisplay.from_estimator(svm, X, y, ax=Figure().subplots())


@pytest.mark.parametrize("d", [1, 2, 7])
def test_marks_count_what_the_certificate_counts(d):
    """Circles, dots and crosses are as many as the certificate's support vectors, violations and misclassified rows."""
    svm, display = margin_of(*noisy(120, d), C=0.1)
    marks, proof = drawn(display), svm.certificate_
    assert len(marks["support vector"]) == len(svm.support_) == len(proof.support)
    assert len(marks["inside the margin"]) == proof.violations - proof.misclassified > 0
    assert len(marks["misclassified"]) == proof.misclassified > 0


@pytest.mark.parametrize("d", [2, 7])
def test_every_row_is_drawn_once_in_the_colour_of_its_class(d):
    """The classes' marks are as many as their rows, also seen from the side."""
    X, y = noisy(120, d)
    marks = drawn(margin_of(X, y, C=0.1)[1])
    assert (len(marks["class -1.0"]), len(marks["class 1.0"])) == ((y < 0).sum(), (y > 0).sum())


def test_circles_are_around_the_support_vectors():
    """The circles of two-dimensional data stand at the rows of support_."""
    X, y = noisy(60, 2)
    svm, display = margin_of(X, y, C=0.1)
    assert drawn(display)["support vector"] == pytest.approx(X[svm.support_])


def test_lines_are_where_the_score_is_0_and_1_and_minus_1():
    """decision_function is constant on each line: 0 on the separator, ±1 on the edges of the band."""
    svm, display = margin_of(*noisy(60, 2), C=0.1)
    lines = [[line.get_xy1(), line.get_xy2()] for line in display.ax_.lines]
    scores = np.array([svm.decision_function(ends) for ends in lines])
    assert scores == pytest.approx(np.outer([0, 1, -1], [1, 1]), abs=1e-9)


def test_seen_from_the_side_the_band_is_upright():
    """In more than two dimensions a row's abscissa is its score, and the lines stand at 0, 1 and −1."""
    X, y = noisy(60, 7)
    svm, display = margin_of(X, y)
    assert drawn(display)["class 1.0"][:, 0] == pytest.approx(svm.decision_function(X[y > 0]))
    ends = np.array([[line.get_xy1(), line.get_xy2()] for line in display.ax_.lines])
    assert ends[:, :, 0] == pytest.approx(np.outer([0, 1, -1], [1, 1]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_seen_from_the_side_the_ordinate_is_the_main_direction(form):
    """The ordinates equal scikit-learn's first principal component of X without its part along w, up to sign."""
    X, y = noisy(60, 7, big=3.0)
    svm, display = margin_of(form(X), y)
    unit = svm.coef_[0] / np.linalg.norm(svm.coef_)
    wanted = PCA(1).fit_transform(X - np.outer(X @ unit, unit))[y > 0, 0]
    ordinates = drawn(display)["class 1.0"][:, 1]
    assert ordinates * np.sign(ordinates @ wanted) == pytest.approx(wanted, abs=1e-8)


def test_nothing_besides_w_is_drawn_at_0():
    """Rows that differ along w only have no other direction: their ordinates are 0."""
    X = np.outer(np.arange(-3.0, 4.0), [1, 2, 0])
    marks = drawn(margin_of(X, X[:, 0] > 0)[1])
    assert not marks["class True"][:, 1].any()


def test_legend_names_what_is_drawn_and_nothing_else():
    """The labels are the classes, the marks that occur and the lines; data apart from the margin have no violations."""
    apart = [[-2.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [2.0, 0.0]], ["a", "a", "b", "b"]
    names = ["class a", "class b", "support vector", "score 0", "score ±1"]
    assert legend(margin_of(*apart, C=10)[1]) == names


def test_anybodys_classifier_is_drawn():
    """A classifier without support_ gets no circles, and the axes given are used."""
    X, y = noisy(60, 2)
    ax = Figure().subplots()
    display = MarginDisplay.from_estimator(LinearSVC(random_state=0).fit(X, y), X, y, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert "support vector" not in drawn(display)


def test_legends_stand_below_the_axes():
    """The top of either display's legend lies below the bottom of its axes: it covers no point."""
    svm, display = margin_of(*noisy(60, 2), C=0.1)
    for one in (display, ConvergenceDisplay.from_estimators({"ours": svm}, ax=Figure().subplots())):
        one.figure_.draw_without_rendering()
        assert one.ax_.get_legend().get_window_extent().y1 < one.ax_.get_window_extent().y0


def test_convergence_draws_the_history():
    """Each line's abscissas are the history's seconds, and its last ordinate the certificate's relative gap."""
    fits = {loss: LinearSVM(loss=loss, solver="dual_cd").fit(*noisy(200, 5)) for loss in ("hinge", "logistic")}
    display = ConvergenceDisplay.from_estimators(fits, ax=Figure().subplots())
    assert display.ax_.get_yscale() == "log"
    assert legend(display) == [*fits, "asked for (tol)"]
    for line, svm in zip(display.ax_.lines, fits.values(), strict=False):
        assert line.get_xdata().tolist() == [record.seconds for record in svm.history_]
        assert line.get_ydata()[-1] == pytest.approx(svm.certificate_.relative_gap, rel=1e-2)


def test_a_gap_of_rounding_is_drawn():
    """The curve ends at the relative gap of the certificate, however small."""
    svm = LinearSVM().fit([[1.0], [-1.0]], [1, -1])
    display = ConvergenceDisplay.from_estimators({"exact": svm}, ax=Figure().subplots())
    assert svm.certificate_.relative_gap < 1e-14
    assert display.ax_.lines[0].get_ydata()[-1] == pytest.approx(svm.certificate_.relative_gap)


def test_several_classes_are_refused():
    """Either display says that it draws two classes and how many there are."""
    X, y = noisy(60, 2)
    svm = LinearSVM().fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="two classes, clf has 3"):
        MarginDisplay.from_estimator(svm, X, y)
    with pytest.raises(ValueError, match="two classes, 'ours' has 3"):
        ConvergenceDisplay.from_estimators({"ours": svm}, ax=Figure().subplots())

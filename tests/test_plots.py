import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from oracles import hard_margin, noisy
from widemargin import InseparableError, LinearSVM, hildreth, path
from widemargin.cli import main
from widemargin.losses import LOSSES
from widemargin.plots import (
    ConvergenceDisplay,
    HildrethDisplay,
    HullDisplay,
    KKTDisplay,
    LossDisplay,
    MarginDisplay,
    PathDisplay,
    SeparatorsDisplay,
    demo_figure,
    outlier_figure,
    share_legend,
)
from widemargin.plots.demo import clouds

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def drawn(display):
    """The rows' marks by their labels: where each stands."""
    collections = [one for one in display.ax_.collections if hasattr(one, "get_sizes")]
    return {marks.get_label(): np.asarray(marks.get_offsets()) for marks in collections}


def legend(display):
    """The labels of the legend."""
    return [entry.get_text() for entry in display.ax_.get_legend().get_texts()]


def margin_of(X, y, **parameters):
    """A fit and its picture, on axes of its own."""
    svm = LinearSVM(**parameters).fit(X, y)
    return svm, MarginDisplay.from_estimator(svm, X, y, ax=Figure().subplots())


RINGS = ("support vector, ξ = 0", "support vector, 0 < ξ ≤ 1", "support vector, ξ > 1")


def ringed(display):
    """Where the rings stand, of whatever kind."""
    marks = drawn(display)
    return np.vstack([marks[ring] for ring in RINGS if ring in marks])


def in_order(points):
    """The same points, sorted."""
    return points[np.lexsort(points.T)]


@pytest.mark.parametrize("d", [1, 2, 7])
def test_rings_and_crosses_count_what_the_certificate_counts(d):
    """Rings are as many as the certificate's support vectors, and those of each kind as its violations and mistakes."""
    svm, display = margin_of(*noisy(120, d), C=0.1)
    marks, proof = drawn(display), svm.certificate_
    assert len(ringed(display)) == len(svm.support_) == len(proof.support)
    assert len(marks[RINGS[1]]) + len(marks.get("inside the margin", [])) == proof.violations - proof.misclassified > 0
    assert len(marks["misclassified"]) == len(marks[RINGS[2]]) == proof.misclassified > 0


@pytest.mark.parametrize("d", [2, 7])
def test_every_row_is_drawn_once_in_the_colour_of_its_class(d):
    """The classes' marks are as many as their rows, also seen from the side."""
    X, y = noisy(120, d)
    marks = drawn(margin_of(X, y, C=0.1)[1])
    assert (len(marks["class -1"]), len(marks["class 1"])) == ((y < 0).sum(), (y > 0).sum())


def test_rings_are_around_the_support_vectors():
    """The rings of two-dimensional data stand at the rows of support_."""
    X, y = noisy(60, 2)
    svm, display = margin_of(X, y, C=0.1)
    assert in_order(ringed(display)) == pytest.approx(in_order(X[svm.support_]))


def test_slacks_lead_to_the_edge_of_the_band():
    """Each line of ξ begins at a row with margin < 1, ends where that row's margin is 1, and is ξ/‖w‖ long."""
    X, y = noisy(60, 2)
    svm, display = margin_of(X, y, C=0.3)
    (lines,) = [one for one in display.ax_.collections if one.get_label() == "slack ξ"]
    ways = np.array([np.asarray(way) for way in lines.get_segments()])
    margins = y * svm.decision_function(X)
    late = margins < 1 - 1e-9
    assert ways[:, 0] == pytest.approx(X[late])
    assert y[late] * svm.decision_function(ways[:, 1]) == pytest.approx(np.ones(late.sum()))
    lengths = np.linalg.norm(ways[:, 1] - ways[:, 0], axis=1)
    assert lengths == pytest.approx((1 - margins[late]) / np.linalg.norm(svm.coef_))


def test_ten_thousand_rows_are_thinned_but_not_their_support_vectors():
    """As many rings as support vectors; at most 4,000 other rows, and the legend says how many of how many."""
    X, y = noisy(10_000, 2, noise=0.0)
    svm, display = margin_of(X, y, C=10)
    marks = drawn(display)
    assert len(ringed(display)) == len(svm.support_) < 1000
    shown = {label: len(places) for label, places in marks.items() if label.startswith("class ")}
    assert list(shown) == [
        f"class {sign} ({count:,} of {(y == sign).sum():,})"
        for sign, count in zip((-1, 1), shown.values(), strict=True)
    ]
    assert 4000 <= sum(shown.values()) <= 4000 + len(svm.support_) + svm.certificate_.violations
    assert all(one.get_rasterized() for one in display.ax_.collections if len(one.get_offsets()) > 1000)


def test_far_outliers_are_told_at_the_frame():
    """Rows 1,000 times as far out as the others leave the frame to them, and the legend counts those it leaves out."""
    X, y = noisy(300, 2)
    X[:3] = [[1000, 0], [-1000, 0], [0, 1000]]
    display = margin_of(X, y)[1]
    assert max(map(abs, (*display.ax_.get_xlim(), *display.ax_.get_ylim()))) < 50
    assert "beyond the frame (3)" in legend(display)


@pytest.mark.parametrize("d", [2, 20])
def test_a_tiny_class_and_the_band_are_in_the_frame(d):
    """Three rows far from 3,000 are no outliers, they are a class: all of them, and scores ±1, are to be seen."""
    X = np.random.default_rng(0).standard_normal((3003, d))
    X[:3] += 8
    svm = LinearSVM().fit(X, np.arange(3003) < 3)
    display = MarginDisplay.from_estimator(svm, X, np.arange(3003) < 3, ax=Figure().subplots())
    (left, right), (bottom, top) = display.ax_.get_xlim(), display.ax_.get_ylim()
    few = drawn(display)["class True"]
    assert ((few > [left, bottom]) & (few < [right, top])).all()
    if d > 2:
        assert left < -1 < 1 < right


def one_far_row_in_each_class(**parameters):
    """A fit of two classes of 40 rows, one row of each a million away, and its rows and labels."""
    X, y = np.random.default_rng(0).standard_normal((80, 2)), np.repeat([0, 1], 40)
    X += 1.5 * y[:, None]
    X[0], X[79] = [1e6, 1e6], [-1e6, 3]
    return LinearSVM(**parameters).fit(X, y), X, y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("draw", [MarginDisplay, HullDisplay, KKTDisplay, SeparatorsDisplay])
def test_one_outlier_of_forty_leaves_the_frame_to_the_others(draw, loss):
    """Rows a million away are arrowheads; 78 others fill the frame."""
    svm, X, y = one_far_row_in_each_class(loss=loss)
    ax = Figure().subplots()
    if draw is SeparatorsDisplay:
        display = draw.from_estimators({"ours": svm}, X, y, ax=ax)
    else:
        display = draw.from_estimator(svm, X, y, ax=ax)
    assert max(map(abs, (*ax.get_xlim(), *ax.get_ylim()))) < 10
    assert any(label.startswith("beyond the frame") for label in legend(display))


def test_rows_of_one_feature_stand_at_their_value():
    """To the right the feature, upwards the class and a spread that is named; the line is where the score is 0."""
    X, y = noisy(120, 1)
    frame = pd.DataFrame(X, columns=["age"])
    svm = LinearSVM(C=0.1).fit(frame, y)
    display = MarginDisplay.from_estimator(svm, frame, y, ax=Figure().subplots())
    assert display.ax_.get_xlabel() == "age"
    assert display.ax_.get_ylabel().split() == ["rows", "of", "a", "class", "are", "spread", "at", "random"]
    for label, height in (("class -1", 0), ("class 1", 1)):
        marks = drawn(display)[label]
        assert sorted(marks[:, 0]) == sorted(X[y == (1 if height else -1), 0])
        assert abs(marks[:, 1] - height).max() <= 0.25
    separator = display.ax_.lines[0]
    assert separator.get_xy1()[0] == separator.get_xy2()[0] == pytest.approx(-svm.intercept_[0] / svm.coef_[0, 0])


def test_ink_and_paper_are_those_of_the_style():
    """On a dark style the separator, the rings and the legend's marks are white, as the text is."""
    X, y = noisy(60, 2)
    with mpl.style.context("dark_background"):
        display = margin_of(X, y, C=0.1)[1]
        (rings,) = [one for one in display.ax_.collections if one.get_label() == RINGS[0]]
        assert mpl.colors.to_rgb(display.ax_.lines[0].get_color()) == (1, 1, 1)
        assert rings.get_edgecolor()[0, :3].tolist() == [1, 1, 1]
        marks = dict(zip(legend(display), display.ax_.get_legend().legend_handles, strict=True))
        assert marks[RINGS[0]].get_edgecolor()[0, :3].tolist() == [1, 1, 1]
        (hulls,) = HullDisplay.from_data([[0, 0], [2, 0]], [0, 1], ax=Figure().subplots()).ax_.lines[:1]
        assert mpl.colors.to_rgb(hulls.get_color()) == (1, 1, 1)


def test_rings_and_dots_differ_in_the_legend():
    """Of ten thousand rows, a ring is larger in the legend than the dot of a row that is no support vector."""
    X, y = noisy(10_000, 2)
    with pytest.warns(match="relative gap"):
        display = margin_of(X, y, C=0.01, solver="pegasos", max_iter=3)[1]
    marks = dict(zip(legend(display), display.ax_.get_legend().legend_handles, strict=True))
    assert marks[RINGS[1]].get_sizes()[0] > 2 * marks["inside the margin"].get_sizes()[0]


DRAW = {
    "margin": lambda clf, X, y: MarginDisplay.from_estimator(clf, X, y, ax=Figure().subplots()),
    "hulls": lambda clf, X, y: HullDisplay.from_estimator(clf, X, y, ax=Figure().subplots()),
    "kkt": lambda clf, X, y: KKTDisplay.from_estimator(clf, X, y, ax=Figure().subplots()),
    "separators": lambda clf, X, y: SeparatorsDisplay.from_estimators({"one": clf}, X, y, ax=Figure().subplots()),
}
HISTORY = {"convergence": lambda clf, X, y: ConvergenceDisplay.from_estimators({"one": clf}, ax=Figure().subplots())}


@pytest.mark.parametrize("draw", [*DRAW.values(), *HISTORY.values()], ids=[*DRAW, *HISTORY])
def test_what_is_no_fitted_linear_classifier_is_told(draw):
    """An estimator before its fit, a pipeline and a tree: every display says what it wants instead."""
    X, y = noisy(60, 2)
    with pytest.raises(NotFittedError, match="this LinearSVM is not fitted yet; call fit first"):
        draw(LinearSVM(), X, y)
    with pytest.raises(
        ValueError, match=r"not a Pipeline; give its last step, clf\[-1\], and the X that this step sees"
    ):
        draw(make_pipeline(StandardScaler(), LinearSVM()).fit(X, y), X, y)
    with pytest.raises(ValueError, match="have a coef_; this DecisionTreeClassifier has none"):
        draw(DecisionTreeClassifier().fit(X, y), X, y)


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_columns_that_the_fit_did_not_have_are_told(draw):
    """The message says how many there are and how many there should be."""
    X, y = noisy(60, 2)
    svm = LinearSVM().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 columns and .* 2 features; give the columns of its fit"):
        draw(svm, np.column_stack([X, X[:, 0]]), y)
    with pytest.raises(ValueError, match=r"X has shape \(60,\); give rows of 2 features"):
        draw(svm, X[:, 0], y)


@pytest.mark.parametrize("kind", ["margin", "hulls", "separators"])
@pytest.mark.parametrize("fitted_to_frame", [True, False])
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_axes_have_the_names_of_the_features(kind, fitted_to_frame):
    """Those of a data frame, whether the fit or the picture was given it, and no formula by accident."""
    X, y = noisy(60, 2)
    frame = pd.DataFrame(X, columns=["height", "weight in $"])
    svm = LinearSVM().fit(frame if fitted_to_frame else X, y)
    ax = DRAW[kind](svm, frame, y).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", r"weight in \$")
    if kind == "hulls":
        ax = HullDisplay.from_data(frame, y, ax=Figure().subplots()).ax_
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", r"weight in \$")


def test_rows_in_one_place_are_counted():
    """The numbers beside the places are the rows' multiplicities, as np.unique counts them."""
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]], [5, 3, 1], axis=0)
    display = margin_of(X, np.repeat([0, 1, 1], [5, 3, 1]))[1]
    assert sorted(text.get_text() for text in display.ax_.texts) == ["×3", "×5"]


def test_names_from_data_are_no_formulas():
    """Dollar signs, an underscore in front, line breaks and any length: labels show them as text, cut to one line."""
    X, y = noisy(60, 2)
    labels = np.where(y > 0, "_$x^{$ " + "long " * 40, "$\\frac$\n$")
    display = margin_of(X, labels)[1]
    display.figure_.draw_without_rendering()  # where a formula would fail
    first, second = legend(display)[:2]
    assert first == "class \\$\\frac\\$ \\$"
    assert second.startswith("class  _\\$x^{\\$")
    assert len(second) < 45


def test_smooth_losses_have_no_rings():
    """With the logistic loss every row has α ≠ 0; none is ringed, and late rows are marked all the same."""
    svm, display = margin_of(*noisy(60, 2), loss="logistic")
    assert not set(RINGS) & set(drawn(display))
    assert len(drawn(display)["misclassified"]) == svm.certificate_.misclassified > 0


def test_other_rows_have_no_rings():
    """Rows that the classifier was not fitted to are drawn, but none of them is a support vector."""
    X, y = noisy(60, 2)
    svm = LinearSVM().fit(X, y)
    display = MarginDisplay.from_estimator(svm, X[:20], y[:20], ax=Figure().subplots())
    assert not set(RINGS) & set(drawn(display))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_held_out_rows_of_the_same_number_are_not_those_of_the_fit(loss, noise):
    """As many rows as in the fit, with or without slacks, or the same rows in another order: no rings, no KKT."""
    X, y = (part[2:] for part in noisy(202, 3, noise=noise))
    X[:, 0] += 3 * y if noise == 0 else 0
    svm = LinearSVM(C=1, loss=loss).fit(X[:100], y[:100])
    for rows in (slice(100, 200), slice(99, None, -1)):
        display = MarginDisplay.from_estimator(svm, X[rows], y[rows], ax=Figure().subplots())
        assert not set(RINGS) & set(drawn(display))
        with pytest.raises(ValueError, match="these are others"):
            KKTDisplay.from_estimator(svm, X[rows], y[rows])
    assert len(ringed(MarginDisplay.from_estimator(svm, X[:100], y[:100], ax=Figure().subplots()))) == len(svm.support_)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_kkt_wants_the_weights_of_the_fit(loss):
    """Without them α/c would leave [0, 1]: the message asks for them, and with them the picture is drawn."""
    X, y = noisy(100, 2)
    weights = np.where(np.arange(100) % 3, 1.0, 5.0) * (np.arange(100) != 7)
    svm = LinearSVM(C=0.5, loss=loss).fit(X, y, weights)
    with pytest.raises(ValueError, match="give the sample_weight of the fit"):
        KKTDisplay.from_estimator(svm, X, y, ax=Figure().subplots())
    display = KKTDisplay.from_estimator(svm, X, y, sample_weight=weights, ax=Figure().subplots())
    assert max(drawn(display)[name][:, 1].max() for name in ("class -1", "class 1")) <= 1 + 1e-9


def test_support_vectors_of_others_are_ringed_on_their_rows():
    """scikit-learn's SVC has no certificate; its dual coefficients tell the rows of its fit from others."""
    X, y = noisy(120, 2)
    svm = SVC(kernel="linear").fit(X[:60], y[:60])
    here = MarginDisplay.from_estimator(svm, X[:60].tolist(), y[:60], ax=Figure().subplots())
    there = MarginDisplay.from_estimator(svm, X[60:], y[60:], ax=Figure().subplots())
    assert len(ringed(here)) == len(svm.support_)
    assert not set(RINGS) & set(drawn(there))


def test_what_the_fit_left_open_is_no_slack():
    """Rows with 0 < α < c have ξ = 0 at the optimum: of a rough fit they are drawn on the edge, not inside."""
    X, y = noisy(120, 5)
    svm, display = margin_of(X, y, C=0.1, solver="hildreth", tol=1e-4)
    alpha, worst = svm.certificate_.alpha, svm.certificate_.kkt[1].worst
    between = (alpha > 1e-9) & (alpha < 0.1 - 1e-9)
    assert 1e-4 < worst < 0.01
    on_edge = drawn(display)[RINGS[0]][:, 0]
    assert set(svm.decision_function(X)[between].round(9)) <= set(on_edge.round(9))
    assert abs(abs(on_edge) - 1).max() <= worst + 1e-9


def test_lines_outside_of_the_frame_are_told():
    """A separator that no row is near is no line in the picture, and the legend says where it is."""
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0, 0, 0, 1]
    svm = LinearSVM(C=1e-3).fit(X, y)
    assert abs(svm.decision_function(X) + 1).max() < 0.1
    display = MarginDisplay.from_estimator(svm, X, y, ax=Figure().subplots())
    assert legend(display)[-2:] == ["score ±1", "score 0, not in view"]
    display = SeparatorsDisplay.from_estimators({"small C": svm}, X, y, ax=Figure().subplots())
    assert legend(display)[-1] == "small C, not in view"


def test_classes_that_differ_have_names_that_differ():
    """Dates as numbers are written in full and without a point, in either precision."""
    X, y = noisy(60, 2)
    display = margin_of(X, np.where(y > 0, 20230115.0, 20230116.0))[1]
    assert legend(display)[:2] == ["class 20230115", "class 20230116"]
    display = margin_of(X, np.where(y > 0, 2023011.0, 2023012.0).astype(np.float32))[1]
    assert legend(display)[:2] == ["class 2023011", "class 2023012"]


def test_one_of_several_classes_against_the_rest():
    """With target=2 the abscissas are the third class's scores and the rings its certificate's support vectors."""
    X, y = noisy(90, 5)
    y = np.arange(90) % 3
    svm = LinearSVM().fit(X, y)
    display = MarginDisplay.from_estimator(svm, X, y, target=2, ax=Figure().subplots())
    assert drawn(display)["class 2"][:, 0] == pytest.approx(svm.decision_function(X)[y == 2, 2])
    assert len(ringed(display)) == len(svm.certificate_[2].support)
    assert legend(display)[:2] == ["the rest", "class 2"]
    assert "the rest" in legend(KKTDisplay.from_estimator(svm, X, y, target=2, ax=Figure().subplots()))


def test_unknown_labels_are_refused():
    """The message names the row, its label and the classes there are."""
    X, y = noisy(60, 2)
    svm = LinearSVM().fit(X, y)
    y[7] = 3
    with pytest.raises(ValueError, match=r"y\[7\] is .*3.*\[-1.0, 1.0\]"):
        MarginDisplay.from_estimator(svm, X, y)


def test_lines_are_where_the_score_is_0_and_1_and_minus_1():
    """decision_function is constant on each line: 0 on the separator, ±1 on the edges of the band."""
    svm, display = margin_of(*noisy(60, 2), C=0.1)
    lines = [[line.get_xy1(), line.get_xy2()] for line in display.ax_.lines]
    assert len(lines) == 3
    scores = np.array([svm.decision_function(ends) for ends in lines])
    assert scores == pytest.approx(np.outer([0, 1, -1], [1, 1]), abs=1e-9)


def test_seen_from_the_side_the_band_is_upright():
    """In more than two dimensions a row's abscissa is its score, and the lines stand at 0, 1 and −1."""
    X, y = noisy(60, 7)
    svm, display = margin_of(X, y)
    assert drawn(display)["class 1"][:, 0] == pytest.approx(svm.decision_function(X[y > 0]))
    ends = np.array([[line.get_xy1(), line.get_xy2()] for line in display.ax_.lines])
    assert ends[:, :, 0] == pytest.approx(np.outer([0, 1, -1], [1, 1]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_seen_from_the_side_the_ordinate_is_the_main_direction(form):
    """The ordinates equal scikit-learn's first principal component of X without its part along w, up to sign."""
    X, y = noisy(60, 7, big=3.0)
    svm, display = margin_of(form(X), y)
    unit = svm.coef_[0] / np.linalg.norm(svm.coef_)
    wanted = PCA(1).fit_transform(X - np.outer(X @ unit, unit))[y > 0, 0]
    ordinates = drawn(display)["class 1"][:, 1]
    assert ordinates * np.sign(ordinates @ wanted) == pytest.approx(wanted, abs=1e-8)


def test_nothing_besides_w_is_drawn_at_0():
    """Rows that differ along w only have no other direction: their ordinates are 0."""
    X = np.outer(np.arange(-3.0, 4.0), [1, 2, 0])
    marks = drawn(margin_of(X, X[:, 0] > 0)[1])
    assert not marks["class True"][:, 1].any()


def test_legend_names_what_is_drawn_and_nothing_else():
    """The labels are the classes, the marks that occur and the lines; data apart from the margin have no violations."""
    apart = [[-2.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [2.0, 0.0]], ["a", "a", "b", "b"]
    names = ["class a", "class b", "support vector, ξ = 0", "score 0", "score ±1"]
    assert legend(margin_of(*apart, C=10)[1]) == names


def test_anybodys_classifier_is_drawn():
    """A classifier without support_ gets no circles, and the axes given are used."""
    X, y = noisy(60, 2)
    ax = Figure().subplots()
    display = MarginDisplay.from_estimator(LinearSVC(random_state=0).fit(X, y), X, y, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert not set(RINGS) & set(drawn(display))


def is_within(inner, outer):
    """Whether one box is inside of another."""
    return bool((inner.min >= outer.min).all() and (inner.max <= outer.max).all())


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_legends_stand_below_the_axes(layout):
    """The top of either display's legend lies below the bottom of its axes, covers no point, and is not cut off."""
    X, y = noisy(60, 2)
    svm = LinearSVM(C=0.1).fit(X, y)
    for draw in (
        lambda ax: MarginDisplay.from_estimator(svm, X, y, ax=ax),
        lambda ax: ConvergenceDisplay.from_estimators({"ours": svm}, ax=ax),
    ):
        for size in ((6.4, 4.8), (3.4, 3.2)):
            figure = Figure(figsize=size, layout=layout)
            display = draw(figure.subplots())
            figure.draw_without_rendering()
            box = display.ax_.get_legend().get_window_extent()
            assert box.y1 < display.ax_.get_window_extent().y0
            assert box.y0 >= 0


def test_legends_of_a_grid_without_a_layout_are_in_their_panels():
    """A panel that cannot give way has its legend inside; nothing is cut off or lies under the panel below."""
    X, y = noisy(60, 2)
    svm = LinearSVM(C=0.1).fit(X, y)
    figure = Figure(figsize=(12, 8))
    for ax in figure.subplots(2, 3).flat:
        MarginDisplay.from_estimator(svm, X, y, ax=ax)
    figure.draw_without_rendering()
    assert all(is_within(ax.get_legend().get_window_extent(), ax.get_window_extent()) for ax in figure.axes)


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_a_shared_legend_covers_no_panel(layout):
    """Without a word on its place it lies below every panel and its labels, and within the figure."""
    X, y = noisy(60, 2)
    figure = Figure(figsize=(8, 4), layout=layout)
    axes = figure.subplots(1, 2)
    for ax, C in zip(axes, (1.0, 0.01), strict=True):
        MarginDisplay.from_estimator(LinearSVM(C=C).fit(X, y), X, y, ax=ax)
    share_legend(axes, figure)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert is_within(box, figure.bbox)
    assert all(ax.xaxis.get_tightbbox().y0 >= box.y1 for ax in axes)
    assert all(ax.get_legend() is None for ax in axes)


def apart_from_each_other(labels):
    """Whether texts on a drawn axis leave room between each other."""
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    return not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[k + 1 :])


def test_pictures_hold_at_column_width():
    """On a figure of 3.4 inches the legend is within it, in two columns, and numbers and names do not touch."""
    X, y = noisy(120, 50)
    svm = LinearSVM(C=1e-3).fit(X / 50, y)
    for draw in (MarginDisplay.from_estimator, KKTDisplay.from_estimator, HullDisplay.from_estimator):
        figure = Figure(figsize=(3.4, 3.6), layout="constrained")
        display = draw(svm, X / 50, y, ax=figure.subplots())
        figure.draw_without_rendering()
        ax, box = display.ax_, display.ax_.get_legend().get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
        assert apart_from_each_other(ax.get_xticklabels())
        assert ax.yaxis.label.get_window_extent().height <= ax.get_window_extent().height
        assert ax.get_window_extent().height > 1.8 * figure.dpi


@pytest.mark.parametrize("Cs", [[0.1, 0.1000001], [1e-4, 1e-3, 1e-2, 0.1]])
def test_widths_have_ticks_that_tell_them_apart(Cs):
    """Equal widths look equal, widths over decades have few ticks: no two say the same, and none touch."""
    X, y = noisy(120, 50)
    figure = Figure(figsize=(3.4, 4), layout="constrained")
    PathDisplay.from_path(path(X / 50, y, Cs), X / 50, y, axes=figure.subplots(3, 1, sharex=True))
    figure.draw_without_rendering()
    width = figure.axes[1]
    low, high = width.get_ylim()
    said = [label.get_text() for label in width.get_yticklabels() if low <= label.get_position()[1] <= high]
    assert len(set(said)) == len(said) > 0
    assert high > 1.2 * low
    assert apart_from_each_other(width.get_yticklabels())


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


def test_convergence_draws_primal_and_dual_over_passes():
    """The lines are the history's primal and dual values over its iterations, where a logarithm can show them."""
    svm = LinearSVM(solver="dual_cd", tol=1e-4).fit(*noisy(200, 5))
    ax = Figure().subplots()
    ConvergenceDisplay.from_estimators({"fit": svm}, show="values", over="passes", ax=ax)
    for line, field in zip(ax.lines, ("primal", "dual"), strict=True):
        wanted = [(one.iteration, getattr(one, field)) for one in svm.history_ if 0 < getattr(one, field) < np.inf]
        assert np.column_stack(line.get_data()) == pytest.approx(np.array(wanted))


@pytest.mark.parametrize("asked", [{"show": "loss"}, {"over": "days"}])
def test_convergence_refuses_what_it_does_not_know(asked):
    """The message names the argument and its choices."""
    with pytest.raises(ValueError, match="choose '"):
        ConvergenceDisplay.from_histories({}, ax=Figure().subplots(), **asked)


def test_losses_are_drawn_by_their_formulas():
    """Each line equals its loss's formula, and the 0–1 step falls from 1 to 0 at margin 0."""
    ax = Figure().subplots()
    LossDisplay.from_losses(LOSSES, ax=ax)
    step, *lines = ax.lines
    assert step.get_ydata().tolist() == [1, 1, 0, 0]
    assert step.get_xdata()[1:3].tolist() == [0, 0]
    for line, loss in zip(lines, LOSSES.values(), strict=True):
        assert line.get_ydata() == pytest.approx(loss.value(line.get_xdata()))
    with pytest.raises(ValueError, match="no loss 'hing'; choose from 'hinge'"):
        LossDisplay.from_losses(["hing"])


def apart(d, n=40):
    """Two classes that a hyperplane separates."""
    X, y = (part[2:] for part in noisy(n, d, noise=0.0))  # the first two rows have the labels that they are given
    w, b = hard_margin(X, y)
    return X, y, 2 / np.linalg.norm(w), w, b


@pytest.mark.parametrize("d", [1, 2, 5])
def test_hulls_nearest_points_are_as_far_apart_as_the_margin_is_wide(d):
    """Their distance is 2/‖w‖ of the hard margin by a cone solver, in any dimension."""
    X, y, width, _, _ = apart(d)
    display = HullDisplay.from_data(X, y, ax=Figure().subplots())
    assert display.distance_ == pytest.approx(width, rel=1e-6)


def test_hulls_have_the_corners_that_qhull_finds():
    """The corners are scipy's ConvexHull vertices of each class, and the nearest points have scores −1 and 1."""
    X, y, _, w, b = apart(2)
    display = HullDisplay.from_data(X, y, ax=Figure().subplots())
    for sign, hull in zip((-1, 1), display.hulls_, strict=True):
        rows = X[y == sign]
        assert in_order(hull) == pytest.approx(in_order(rows[ConvexHull(rows).vertices]))
    assert display.nearest_ @ w + b == pytest.approx([-1, 1], abs=1e-6)


@pytest.mark.parametrize("d", [2, 5])
def test_overlapping_hulls_have_a_common_point(d):
    """The point drawn is in both hulls: by the proof's weights, given or found, and by a linear program."""
    X, y = noisy(120, d)
    with pytest.raises(InseparableError) as caught:
        LinearSVM(C=np.inf).fit(X, y)
    for proof in (None, caught.value):
        display = HullDisplay.from_data(X, y, proof=proof, ax=Figure().subplots())
        assert (display.distance_, len(display.nearest_)) == (0.0, 1)
        for hull in display.hulls_:
            inside = linprog(
                np.zeros(len(hull)),
                A_eq=np.vstack([hull.T, np.ones(len(hull))]),
                b_eq=np.append(display.nearest_[0], 1.0),
            )
            assert inside.status == 0


def test_hulls_of_segments_and_points():
    """Three points on a line have the two ends as corners, equal points have one; their distance is √2."""
    X = [[0, 0], [0, 0], [1, 1], [2, 2], [3, 3]]
    display = HullDisplay.from_data(X, [0, 0, 1, 1, 1], ax=Figure().subplots())
    assert [len(hull) for hull in display.hulls_] == [1, 2]
    assert display.distance_ == pytest.approx(2**0.5)


@pytest.mark.filterwarnings("error")
def test_hulls_in_one_place():
    """Both classes on the same point: their distance is 0, and no warning of the fit is heard."""
    display = HullDisplay.from_data(np.ones((40, 5)), np.repeat([0, 1], 20), ax=Figure().subplots())
    assert display.distance_ == 0
    assert len(display.nearest_) == 1


def test_a_class_of_one_point_can_be_seen():
    """The mark around a nearest point is hollow: the row under it shows."""
    display = HullDisplay.from_data([[0, 0], [0, 1], [3, 0]], [0, 0, 1], ax=Figure().subplots())
    (marks,) = [one for one in display.ax_.collections if one.get_label() == "nearest points of the hulls"]
    assert not len(marks.get_facecolor())


@pytest.mark.parametrize("Cs", [[np.inf], [*10.0 ** np.arange(-8, 3), np.inf], [1, 1.5, 2]])
def test_every_strength_and_width_has_its_tick(Cs):
    """∞ is written so even alone, and the ticks of the width differ, however narrow or broad the range."""
    X, y, *_ = apart(2)
    display = PathDisplay.from_path(path(X, y, Cs), X, y)
    display.figure_.draw_without_rendering()
    _, width, support = display.axes_
    said = [label.get_text() for label in support.get_xticklabels()]
    assert said == ["∞"] if Cs == [np.inf] else (said[-1] == "∞") == (Cs[-1] == np.inf)
    low, high = width.get_ylim()
    widths = [label.get_text() for label in width.get_yticklabels() if low <= label.get_position()[1] <= high]
    assert len(set(widths)) == len(widths) > 1
    assert not width.yaxis.get_offset_text().get_text()


def test_path_draws_what_its_models_say():
    """The three panels hold score, the certificate's width and the number of support vectors; ∞ has a tick."""
    X, y, *_ = apart(2)
    found = path(X, y, [1, 0.01, np.inf, 0.1])
    display = PathDisplay.from_path(found, X, y, held_out=(X[:20], y[:20]))
    models = [found[k] for k in (1, 3, 0, 2)]
    accuracy, width, support = ([line.get_ydata() for line in ax.lines] for ax in display.axes_)
    assert accuracy[0].tolist() == [model.score(X, y) for model in models]
    assert accuracy[1].tolist() == [model.score(X[:20], y[:20]) for model in models]
    assert width[0].tolist() == [model.certificate_.width for model in models]
    assert support[0].tolist() == [len(model.support_) for model in models]
    assert display.axes_[2].get_xticklabels()[-1].get_text() == "∞"


def test_hildreth_ends_at_the_maximum():
    """The path begins at 0, moves along one axis at a time, and ends where the compiled solver does."""
    Q, b = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([-6.0, -4.0])
    for upper in (np.inf, 1.2):
        display = HildrethDisplay.from_qp(Q, b, upper=upper, ax=Figure().subplots())
        steps = display.path_
        assert not steps[0].any()
        assert ((np.diff(steps, axis=0) != 0).sum(axis=1) <= 1).all()
        assert steps[-1] == pytest.approx(hildreth(Q, b, upper=upper).alpha, abs=1e-8)
    with pytest.raises(ValueError, match="two variables"):
        HildrethDisplay.from_qp(np.eye(3), np.ones(3))


def test_hildreth_that_did_not_arrive_says_so():
    """After 1,000 steps along a narrow ridge the star is no end, and the optimum is where a linear system has it."""
    Q, b = np.array([[1, 0.999], [0.999, 1]]), np.array([-1, -1.0005])
    display = HildrethDisplay.from_qp(Q, b, ax=Figure().subplots())
    assert "stopped after 1,000 steps (0.5266, 0.4745)" in legend(display)
    assert "optimum (0.2504, 0.7504)" in legend(display)
    assert drawn(display)["optimum (0.2504, 0.7504)"][0] == pytest.approx(np.linalg.solve(Q, -b))
    assert "end (1.143, 1.429)" in legend(HildrethDisplay.from_qp([[4, 1], [1, 2]], [-6, -4], ax=Figure().subplots()))


@pytest.mark.parametrize("upper", [np.inf, 0.3, 0.9])
@pytest.mark.parametrize("b", [[-1, -1.0005], [1, -1], [-1, 2], [1, 1]])
@pytest.mark.parametrize("Q", [[[4, 1], [1, 2]], [[2, -1], [-1, 2]], [[1, 1], [1, 1]], [[1, 0], [0, 2]]])
def test_hildreth_stopped_early_knows_the_optimum(Q, b, upper):
    """After one step the diamond, or else the star, has the value that the algorithm reaches in the end."""
    Q, b = np.array(Q, dtype=float), np.array(b, dtype=float)
    marks = drawn(HildrethDisplay.from_qp(Q, b, upper=upper, max_steps=1, ax=Figure().subplots()))
    (best,) = [place[0] for label, place in marks.items() if label.startswith(("optimum", "end"))]
    last = hildreth(Q, b, upper=upper).alpha
    assert -best @ Q @ best / 2 - best @ b == pytest.approx(-last @ Q @ last / 2 - last @ b, abs=1e-7)


def test_hildreth_refuses_what_has_no_picture():
    """NaN in Q or b, and an objective that grows for ever."""
    with pytest.raises(ValueError, match="not finite"):
        HildrethDisplay.from_qp([[np.nan, 0], [0, 1]], [-1, -1])
    with pytest.raises(ValueError, match="not finite"):
        HildrethDisplay.from_qp(np.eye(2), [-1, np.nan])
    for Q in ([[1, -1], [-1, 1]], [[0, 0], [0, 1]], np.zeros((2, 2))):
        with pytest.raises(ValueError, match="without bound; give an upper bound"):
            HildrethDisplay.from_qp(Q, [-1, -1])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_kkt_points_lie_where_the_certificate_says(loss):
    """Every row is drawn at its margin and α/c, the largest distance from what is allowed is the certificate's."""
    X, y = noisy(120, 4)
    svm = LinearSVM(C=0.5, loss=loss, class_weight={1.0: 2.0, -1.0: 1.0}, tol=1e-8).fit(X, y)
    display = KKTDisplay.from_estimator(svm, X, y, ax=Figure().subplots())
    marks = drawn(display)
    for sign, c in ((-1, 0.5), (1, 1.0)):
        wanted = np.column_stack([y * svm.decision_function(X), svm.certificate_.alpha / c])[y == sign]
        assert marks[f"class {sign}"] == pytest.approx(wanted)
    m, a = np.vstack([marks["class -1"], marks["class 1"]]).T
    assert LOSSES[loss].kkt_violation(m, a).max() == pytest.approx(svm.certificate_.kkt_violation, abs=1e-6)
    allowed = [one for one in legend(display) if one.startswith("allowed")]
    assert len(allowed) == (3 if loss == "hinge" else 1)


def test_kkt_of_the_hard_margin_has_two_regions():
    """α = 0 with m ≥ 1, α > 0 with m = 1: the rows with α > 0 are drawn at margin 1."""
    X, y, *_ = apart(2)
    svm = LinearSVM(C=np.inf, tol=1e-9).fit(X, y)
    display = KKTDisplay.from_estimator(svm, X, y, ax=Figure().subplots())
    m, alpha = np.vstack([drawn(display)["class -1"], drawn(display)["class 1"]]).T
    assert m[alpha > 0] == pytest.approx(np.ones(len(svm.support_)), abs=1e-6)
    assert sum(one.startswith("allowed") for one in legend(display)) == 2


def test_kkt_refuses_other_rows_and_other_classifiers():
    """Rows that the fit did not see and classifiers without dual variables get a message."""
    X, y = noisy(60, 2)
    with pytest.raises(ValueError, match="these are others"):
        KKTDisplay.from_estimator(LinearSVM().fit(X, y), X[:30], y[:30])
    with pytest.raises(ValueError, match="LinearSVC has none"):
        KKTDisplay.from_estimator(LinearSVC().fit(X, y), X, y)


def test_demo_draws_a_panel_for_each_strength():
    """One panel per C with that fit's number of rings; the width in its title falls as C grows."""
    figure = demo_figure()
    assert [ax.get_title().split(",")[0] for ax in figure.axes] == ["C = 1e+10", "C = 0.1", "C = 0.01"]
    widths = [float(ax.get_title().split("width ")[1].split(",")[0]) for ax in figure.axes]
    assert widths == sorted(widths)
    X, y = clouds()
    for ax, C in zip(figure.axes, (1e10, 0.1, 0.01), strict=True):
        rings = sum(len(one.get_offsets()) for one in ax.collections if one.get_label() in RINGS)
        assert rings == len(LinearSVM(C, tol=1e-9).fit(X, y).support_)
    assert len(demo_figure(1.0, points="five").axes) == 1
    with pytest.raises(ValueError, match="points='six'; choose from 'clouds', 'five'"):
        demo_figure(points="six")


def test_the_demo_command_draws_the_fits_of_its_table(monkeypatch, tmp_path):
    """One fit for each C serves the table and the picture."""
    fits, fit = [], LinearSVM.fit
    monkeypatch.setattr(LinearSVM, "fit", lambda self, *rows: fits.append(self.C) or fit(self, *rows))
    assert main(["demo", "-o", str(tmp_path / "demo.svg")]) == 0
    assert fits == [1e10, 0.1, 0.01]


def test_the_demo_command_prints_numbers_to_the_right(capsys, tmp_path):
    """Every number ends where the head of its column does, a negative one too."""
    assert main(["demo", "-o", str(tmp_path / "demo.svg")]) == 0
    head, *lines = capsys.readouterr().out.splitlines()[1:5]
    ends = [head.index(name) + len(name) for name in ("w₂", "b", "margin width", "misclassified", "relative gap")]
    assert "-" in "".join(lines).replace("e-", "")
    assert all((line + " ")[end - 1] != " " and (line + " ")[end] == " " for line in lines for end in ends)


def test_the_demo_command_names_a_picture(capsys):
    """A name that is no picture's is refused by its ending, whatever else stands at that place."""
    assert main(["demo", "-o", "/dev/full"]) != 0
    said = capsys.readouterr().err
    assert "/dev/full: no picture ends in ''; use one of .png" in said
    assert "standard output" not in said


def test_outliers_turn_least_squares_and_not_logistic_regression():
    """Between the panels the line of least squares turns by more than 20 degrees, the logistic one by less than 5."""
    without, among = outlier_figure().axes
    turns = []
    for before, after in zip(without.lines, among.lines, strict=True):
        ways = [np.subtract(line.get_xy2(), line.get_xy1()) for line in (before, after)]
        cosine = abs(ways[0] @ ways[1]) / np.prod(np.linalg.norm(ways, axis=1))
        turns.append(np.degrees(np.arccos(min(cosine, 1.0))))  # rounding may leave it above 1
    assert turns[0] > 20
    assert turns[1] < 5


def test_separators_lie_where_the_scores_are_0():
    """Both ends of every line have score 0 by the classifier's own decision_function."""
    X, y = noisy(60, 2)
    fits = {"ours": LinearSVM().fit(X, y), "theirs": LinearSVC(random_state=0).fit(X, y)}
    ax = Figure().subplots()
    SeparatorsDisplay.from_estimators(fits, X, y, ax=ax)
    for line, clf in zip(ax.lines, fits.values(), strict=True):
        assert clf.decision_function([line.get_xy1(), line.get_xy2()]) == pytest.approx([0, 0], abs=1e-9)
    with pytest.raises(ValueError, match="'wide' has 2 classes and 3 features"):
        SeparatorsDisplay.from_estimators({"wide": LinearSVM().fit(*noisy(30, 3))}, X, y, ax=ax)


def test_separators_over_other_labels():
    """Rows of one class are drawn, a third class is named, no classifier is told; axes have the features' names."""
    X, y = noisy(60, 2)
    frame = pd.DataFrame(X, columns=["height", "weight"])
    fits = {"ours": LinearSVM().fit(frame, y)}
    display = SeparatorsDisplay.from_estimators(fits, frame[y > 0], y[y > 0], ax=Figure().subplots())
    assert legend(display) == ["class 1", "ours"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("height", "weight")
    with pytest.raises(ValueError, match=r"label .*3.*, 'ours' the classes \[-1.0, 1.0\]; leave such rows out"):
        SeparatorsDisplay.from_estimators(fits, X, np.append(y[1:], 3))
    with pytest.raises(ValueError, match="estimators is empty; give"):
        SeparatorsDisplay.from_estimators({}, X, y)


def test_without_matplotlib_the_error_names_the_command(monkeypatch):
    """An import that fails turns into one that says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'widemargin\[plots\]'"):
        LossDisplay.from_losses()

"""Pictures of classifiers with a curved boundary: scikit-learn's SVC, and whatever else has its attributes."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.datasets import load_iris, make_circles, make_moons
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import widemargin
from oracles import noisy
from widemargin import LinearSVM
from widemargin.plots import DecisionDisplay, MarginDisplay, kernels_figure
from widemargin.plots.demo import shapes
from widemargin.plots.look import class_look
from widemargin.plots.pairs import elected, scores_of

mpl.use("Agg")

MACHINES = [SVC, *(one for one in [getattr(widemargin, "KernelSVM", None)] if one)]
RINGS = ("support vector, ξ = 0", "support vector, 0 < ξ ≤ 1", "support vector, ξ > 1")
MOONS = make_moons(120, noise=0.2, random_state=0)
IRIS = load_iris()
PETALS = IRIS.data[:, 2:], IRIS.target


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(params=MACHINES)
def machine(request):
    """A class of kernel machines."""
    return request.param


def draw(clf, X, y, display=DecisionDisplay, **options):
    """A picture on axes of its own."""
    return display.from_estimator(clf, X, y, ax=Figure().subplots(), **options)


def marks(display):
    """The rows' marks by their labels: where each stands."""
    collections = [one for one in display.ax_.collections if hasattr(one, "get_sizes")]
    return {one.get_label(): np.asarray(one.get_offsets()) for one in collections}


def ringed(display):
    """Where the rings stand, of whatever kind, in order."""
    rings = [places for label, places in marks(display).items() if label in RINGS]
    return in_order(np.vstack(rings)) if rings else np.empty((0, 2))


def in_order(points):
    """The same points, sorted."""
    return points[np.lexsort(points.T)]


def legend(display):
    """The labels of the legend."""
    return [entry.get_text() for entry in display.ax_.get_legend().get_texts()]


def line(display, label):
    """The places on the line of this label."""
    (found,) = [one for one in display.ax_.lines if one.get_label() == label]
    places = found.get_xydata()
    return places[~np.isnan(places[:, 0])]


def window(display):
    """Lower left and upper right corner of the axes."""
    return np.transpose([display.ax_.get_xlim(), display.ax_.get_ylim()])


def around(places, reach):
    """Eight neighbours of every place, at most `reach` away along each axis."""
    ways = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]) * reach
    return places[:, None, :] + ways


@pytest.mark.parametrize(
    ("data", "parameters"),
    [
        (MOONS, {"C": 10}),
        (make_circles(100, noise=0.1, factor=0.5, random_state=0), {}),
        (MOONS, {"kernel": "poly", "coef0": 1.0}),
        (make_moons(3000, noise=0.5, random_state=0), {}),
    ],
    ids=["moons", "circles", "poly", "many support vectors"],
)
def test_the_boundary_is_where_the_score_changes_its_sign(machine, data, parameters):
    """decision_function has both signs within 1/100 of the frame of every place on the line; and wherever it changes
    its sign between neighbours on another grid, the line is not further away than they are.
    """
    X, y = data
    clf = machine(**parameters).fit(X, y)
    display = draw(clf, X, y)
    low, high = window(display)
    boundary = line(display, "score 0")
    scores = clf.decision_function(around(boundary[::10], (high - low) / 100).reshape(-1, 2)).reshape(-1, 8)
    assert ((scores.min(axis=1) < 0) & (scores.max(axis=1) > 0)).all()
    ticks = np.linspace(low, high, 42)[1:-1]
    places = np.stack(np.meshgrid(*ticks.T), axis=-1)
    positive = clf.decision_function(places.reshape(-1, 2)).reshape(40, 40) > 0
    changes = places[:, :-1][positive[:, 1:] != positive[:, :-1]]
    assert len(changes) > 20
    nearest = (np.abs(changes[:, None] - boundary) / (high - low)).max(axis=2).min(axis=1)
    assert nearest.max() <= 1 / 40


def test_the_edges_are_where_the_score_is_1_and_minus_1(machine):
    """decision_function is within 0.01 of 1 or −1 everywhere on the dashed lines."""
    clf = machine(C=10).fit(*MOONS)
    scores = clf.decision_function(line(draw(clf, *MOONS), "score ±1"))
    assert np.abs(np.abs(scores) - 1).max() < 0.01
    assert scores.min() < 0 < scores.max()


def test_rings_are_around_the_support_vectors(machine):
    """The rings stand at the rows of support_, by kind of slack as decision_function has it."""
    X, y = MOONS
    clf = machine(tol=1e-6).fit(X, y)
    display = draw(clf, X, y)
    assert ringed(display) == pytest.approx(in_order(X[clf.support_]))
    slack = 1 - np.where(y == 1, 1, -1) * clf.decision_function(X)
    assert len(marks(display)[RINGS[1]]) == ((slack > 1e-5) & (slack <= 1)).sum() > 0
    assert len(marks(display)[RINGS[2]]) == len(marks(display)["misclassified"]) == (clf.predict(X) != y).sum() > 0


def test_what_the_tolerance_left_open_is_no_slack(machine):
    """Rows with 0 < α < C have ξ = 0 at the optimum: of a rough fit they are ringed as on the edge."""
    X, y = MOONS
    clf = machine(tol=1e-3).fit(X, y)
    free = np.abs(clf.dual_coef_[0]) < 1 - 1e-9
    on_edge = marks(draw(clf, X, y))[RINGS[0]]
    assert free.sum() > 0
    assert set(map(tuple, X[clf.support_[free]])) <= set(map(tuple, on_edge))


def test_many_rows_are_thinned_but_not_their_support_vectors(machine):
    """As many rings as support vectors; 4,000 other rows at most, and the legend says how many of how many."""
    X, y = make_moons(8000, noise=0.1, random_state=0)
    clf = machine(C=10).fit(X, y)
    display = draw(clf, X, y)
    assert len(ringed(display)) == len(clf.support_) < 400
    shown = [len(places) for label, places in marks(display).items() if label.startswith("class ")]
    assert 4000 <= sum(shown) <= 4000 + len(clf.support_)
    assert legend(display)[:2] == [f"class {k} ({count:,} of 4,000)" for k, count in enumerate(shown)]


def test_rows_of_another_sample_have_no_rings(machine):
    """Held-out rows, the rows in another order and with other labels are drawn, but none is a support vector."""
    X, y = MOONS
    clf = machine().fit(X, y)
    for rows, labels in ((X + 0.01, y), (X[::-1], y[::-1]), (X, 1 - y), (X[:50], y[:50])):
        assert not len(ringed(draw(clf, rows, labels)))


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_of_a_fit_without_support_vectors_are_known_by_its_conditions(classes):
    """SVC keeps no support vectors if its kernel is a function; its own rows satisfy the KKT conditions, not others."""
    X, y = MOONS if classes == 2 else PETALS
    clf = SVC(kernel=lambda A, B: rbf_kernel(A, B, 1.0)).fit(X, y)
    assert len(clf.support_vectors_) != len(clf.support_)
    assert len(ringed(draw(clf, X, y))) == len(clf.support_)
    assert not len(ringed(draw(clf, X + np.random.default_rng(0).normal(0, 0.3, X.shape), y)))


def test_regions_have_the_colour_of_the_prediction(machine):
    """At 500 random places the colour is nearest to that of the class that predict says there."""
    clf = machine().fit(*PETALS)
    display = draw(clf, *PETALS)
    low, high = window(display)
    (image,) = display.ax_.images
    left, right, bottom, top = image.get_extent()
    shades = np.asarray(image.get_array())
    places = np.random.default_rng(0).uniform(low, high, (500, 2))
    same = clf.predict(around(places, (high - low) / 100).reshape(-1, 2)).reshape(-1, 8)
    places = places[(same == same[:, :1]).all(axis=1)]  # on a boundary two colours mix
    assert len(places) > 400
    column, row = ((places - [left, bottom]) / [right - left, top - bottom] * shades.shape[1::-1]).astype(int).T
    colours = np.array([to_rgb(class_look(k)["color"]) for k in range(3)]) - 1
    seen = np.argmax((shades[row, column] - 1) @ (colours / np.linalg.norm(colours, axis=1)[:, None]).T, axis=1)
    assert seen.tolist() == clf.predict(places).tolist()


@pytest.mark.parametrize("break_ties", [False, True])
def test_votes_elect_the_predicted_class(machine, break_ties):
    """Over seven classes with many ties the class elected is that of predict."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((210, 2)), np.arange(210) % 7
    clf = machine(break_ties=break_ties).fit(X, y)
    places = rng.uniform(-3, 3, (500, 2))
    scores = scores_of(clf, places)
    assert scores.shape == (500, 21)
    assert elected(scores, 7, break_ties=break_ties).tolist() == clf.predict(places).tolist()
    assert draw(clf, X, y).ax_.images


def test_several_classes_in_pairs(machine):
    """Rings stand at support_ and crosses where predict errs; margins are the smallest over the pairs of a class."""
    X, y = PETALS
    clf = machine(decision_function_shape="ovo", tol=1e-6).fit(X, y)
    display = draw(clf, X, y)
    assert ringed(display) == pytest.approx(in_order(X[clf.support_]))
    assert in_order(marks(display)["misclassified"]) == pytest.approx(in_order(X[clf.predict(X) != y]))
    assert legend(display)[:3] == ["class 0", "class 1", "class 2"]
    scores = clf.decision_function(line(display, "smallest margin 1"))
    ones = np.array([[s01, s02, s12] for s01, s02, s12 in scores])
    margins = np.stack([ones[:, :2].min(1), np.minimum(-ones[:, 0], ones[:, 2]), -ones[:, 1:].max(1)])
    assert margins.max(axis=0) == pytest.approx(np.ones(len(scores)), abs=0.01)


@pytest.mark.parametrize("display", [DecisionDisplay, MarginDisplay])
def test_a_pair_of_classes_is_drawn_alone(machine, display):
    """Of three classes in pairs, the picture of two is that of a classifier fitted to these two."""
    X, y = PETALS
    clf, own = machine(gamma=1.0, tol=1e-8).fit(X, y), (y == 1) | (y == 2)
    alone = machine(gamma=1.0, tol=1e-8).fit(X[own], y[own])
    theirs = draw(alone, X[own], y[own], display)
    for target in ((1, 2), (2, 1)):
        ours = draw(clf, X, y, display, target=target)
        assert ringed(ours) == pytest.approx(ringed(theirs))
        assert alone.decision_function(line(ours, "score 0")) == pytest.approx(0, abs=0.01)
        assert len(line(ours, "score 0")) == len(line(theirs, "score 0"))
        assert legend(ours)[:2] == [f"class {one}" for one in target]


def test_a_linear_kernel_in_pairs_is_straight():
    """Of SVC with a linear kernel and three classes the line of a pair has score 0 by that pair's weights."""
    X, y = PETALS
    clf = SVC(kernel="linear").fit(X, y)
    display = draw(clf, X, y, MarginDisplay, target=(0, 2))
    ends = np.array([display.ax_.lines[0].get_xy1(), display.ax_.lines[0].get_xy2()])
    assert scores_of(clf, ends)[:, 1] == pytest.approx([0, 0], abs=1e-9)
    assert len(marks(display)["class 2"]) == (y == 2).sum()
    assert "class 1" not in marks(display)


def test_classes_told_from_the_rest():
    """Of one-vs-rest weights the boundary lies where the two best scores are equal; rings are all classes' support."""
    X, y = PETALS
    clf = LinearSVM().fit(X, y)
    display = draw(clf, X, y)
    scores = np.sort(clf.decision_function(line(display, "class boundary")), axis=1)
    assert scores[:, 2] - scores[:, 1] == pytest.approx(np.zeros(len(scores)), abs=0.01)
    support = np.unique(np.concatenate([one.support for one in clf.certificate_]))
    assert ringed(display) == pytest.approx(in_order(X[support]))
    one = draw(clf, X, y, target=2)
    assert legend(one)[:2] == ["the rest", "class 2"]
    assert clf.decision_function(line(one, "score 0"))[:, 2] == pytest.approx(0, abs=1e-6)


def test_a_margin_of_two_features_is_the_same_picture(machine):
    """MarginDisplay draws the lines, the marks and the legend that DecisionDisplay draws."""
    clf = machine().fit(*MOONS)
    ours, theirs = draw(clf, *MOONS, MarginDisplay), draw(clf, *MOONS)
    assert isinstance(ours, MarginDisplay)
    assert legend(ours) == legend(theirs)
    for label in ("score 0", "score ±1"):
        assert np.array_equal(line(ours, label), line(theirs, label))
    assert ringed(ours).tolist() == ringed(theirs).tolist()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_more_features_are_seen_from_the_side(machine, form):
    """Abscissas are decision_function's, ordinates scikit-learn's first principal component of X, up to sign."""
    X, y = noisy(90, 6, big=3.0)
    clf = machine().fit(form(X), y)
    display = draw(clf, form(X), y, MarginDisplay)
    places = marks(display)["class 1"]
    assert places[:, 0] == pytest.approx(clf.decision_function(form(X))[y > 0])
    wanted = PCA(1).fit_transform(X)[y > 0, 0]
    assert places[:, 1] * np.sign(places[:, 1] @ wanted) == pytest.approx(wanted, abs=1e-8)
    assert len(ringed(display)) == len(clf.support_)
    assert display.ax_.get_xlabel() == "score w·φ(x) + b"


def test_precomputed_kernels_are_seen_from_the_side():
    """A kernel matrix has scores but no features: MarginDisplay draws these, DecisionDisplay says so."""
    X, y = MOONS
    gram = rbf_kernel(X, gamma=2.0)
    clf = SVC(kernel="precomputed").fit(gram, y)
    display = draw(clf, gram, y, MarginDisplay)
    assert marks(display)["class 1"][:, 0] == pytest.approx(clf.decision_function(gram)[y == 1])
    assert len(ringed(display)) == len(clf.support_)
    with pytest.raises(ValueError, match="features, which a precomputed kernel does not have; fit with kernel='rbf'"):
        draw(clf, gram, y)


def test_other_features_are_held_at_their_median(machine):
    """On the line decision_function is 0 once the features that are not drawn have the median of X."""
    frame = pd.DataFrame(IRIS.data[50:], columns=IRIS.feature_names)
    clf = machine().fit(frame, IRIS.target[50:])
    by_name = draw(clf, frame, IRIS.target[50:], features=("petal width (cm)", "sepal length (cm)"))
    by_number = draw(clf, frame, IRIS.target[50:], features=(3, -4))
    label = "score 0, others at median"
    assert (by_name.ax_.get_xlabel(), by_name.ax_.get_ylabel()) == ("petal width (cm)", "sepal length (cm)")
    places = line(by_name, label)
    rows = pd.DataFrame(np.tile(frame.median().to_numpy(), (len(places), 1)), columns=frame.columns)
    rows[["petal width (cm)", "sepal length (cm)"]] = places
    assert clf.decision_function(rows) == pytest.approx(np.zeros(len(places)), abs=0.01)
    assert np.array_equal(line(by_number, label), places)
    assert len(ringed(by_name)) == len(clf.support_)


@pytest.mark.parametrize("display", [DecisionDisplay, MarginDisplay])
def test_one_feature_has_upright_boundaries(machine, display):
    """Of |x| < 1 against the rest there are two of them, both where decision_function is 0."""
    x = np.linspace(-3, 3, 80)[:, None]
    clf = machine(C=10).fit(x, np.abs(x[:, 0]) < 1)
    picture = draw(clf, x, np.abs(x[:, 0]) < 1, display)
    places = line(picture, "score 0")
    assert len(set(places[:, 0].round(9))) == 2
    assert clf.decision_function(places[:, :1]) == pytest.approx(np.zeros(len(places)), abs=0.01)
    assert picture.ax_.get_xlabel() == "x"


def test_pipelines_and_searches_are_drawn_in_their_own_features(machine):
    """On the line the pipeline's own score is 0; rings stand at the rows of its last step's support_."""
    X, y = MOONS[0] * [1000, 0.001], MOONS[1]
    pipe = make_pipeline(StandardScaler(), machine())
    search = GridSearchCV(pipe, {"standardscaler__with_mean": [True]}, cv=2).fit(X, y)
    for clf in (pipe.fit(X, y), search):
        display = draw(clf, X, y)
        assert clf.decision_function(line(display, "score 0")) == pytest.approx(0, abs=0.01)
        assert ringed(display) == pytest.approx(in_order(X[pipe[-1].support_]))
    several = make_pipeline(StandardScaler(), machine()).fit(*PETALS)
    assert len(ringed(draw(several, *PETALS))) == len(several[-1].support_)


def test_anybodys_scores_are_drawn():
    """Steps of boosted trees have no curve to interpolate: the score changes its sign at every place of the line."""
    X, y = MOONS
    clf = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    display = draw(clf, X, y)
    low, high = window(display)
    scores = clf.decision_function(around(line(display, "score 0"), (high - low) / 100).reshape(-1, 2)).reshape(-1, 8)
    assert ((scores.min(axis=1) < 0) & (scores.max(axis=1) > 0)).all()
    assert not len(ringed(display))
    straight = draw(LinearSVC(random_state=0).fit(X, y), X, y)
    first, *_, last = line(straight, "score 0")
    ways = line(straight, "score 0") - first
    assert ways @ [first[1] - last[1], last[0] - first[0]] == pytest.approx(np.zeros(len(ways)), abs=1e-9)


def test_the_grid_is_asked_once(machine, monkeypatch):
    """Besides the rows, decision_function sees one grid, of as many points as are asked for or soon computed."""
    clf = machine().fit(*MOONS)
    asked, own = [], clf.decision_function
    monkeypatch.setattr(clf, "decision_function", lambda X: asked.append(len(X)) or own(X))
    draw(clf, *MOONS)
    draw(clf, *MOONS, grid_resolution=40)
    assert asked == [120, 300**2, 120, 40**2]


def test_sparse_rows(machine):
    """The picture is that of the fit to the same rows in an array."""
    X, y = MOONS
    clf = machine(gamma=1.0).fit(sp.csr_array(X), y)
    display = draw(clf, sp.csr_array(X), y)
    dense = machine(gamma=1.0).fit(X, y)
    assert ringed(display) == pytest.approx(ringed(draw(dense, X, y)))
    assert dense.decision_function(line(display, "score 0")) == pytest.approx(0, abs=0.01)


def test_boundaries_outside_of_the_frame_are_told(machine):
    """Where all of the frame is one class's the legend says so."""
    X, far = MOONS[0], np.full((1, 2), 100.0)
    clf = machine().fit(np.vstack([X, far]), np.arange(121) == 120)
    assert (clf.decision_function(X) < 0).all()
    assert "score 0, not in view" in legend(draw(clf, X, np.zeros(120, dtype=bool)))


@pytest.mark.parametrize("data", [MOONS, PETALS], ids=["two classes", "three"])
def test_ink_and_paper_are_those_of_the_style(data):
    """On a dark style lines are white, and regions nearly black with a share of their class's colour."""
    with mpl.style.context("dark_background"):
        display = draw(SVC().fit(*data), *data)
        assert mpl.colors.to_rgb(display.ax_.lines[0].get_color()) == (1, 1, 1)
        regions = (
            display.ax_.images[0].get_array() if display.ax_.images else display.ax_.collections[-1].get_facecolor()
        )
        assert regions[..., :3].max() < 0.5


@pytest.mark.parametrize("size", [(6.4, 5.2), (3.4, 3.6)])
@pytest.mark.parametrize("data", [MOONS, PETALS], ids=["two classes", "three"])
def test_legends_stand_below_the_axes(data, size):
    """The legend lies within the figure, below the axes and their labels."""
    figure = Figure(figsize=size, layout="constrained")
    display = DecisionDisplay.from_estimator(SVC().fit(*data), *data, ax=figure.subplots())
    figure.draw_without_rendering()
    box = display.ax_.get_legend().get_window_extent()
    assert box.y1 <= display.ax_.xaxis.get_tightbbox().y0 + 1
    assert (box.min >= 0).all()
    assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, r"two features, X has 4; choose two, features=\(0, 1\), and the others are held at their median"),
        ({"features": (0, 4)}, "X has 4 columns, numbered from 0"),
        ({"features": (0, -4)}, "two different columns"),
        ({"features": (0, 1, 2)}, "give two columns of X, by number or by name"),
        ({"features": ("petal", 1)}, "no feature is called 'petal'; there are no names"),
        ({"features": (0, 1), "target": 2}, r"tells them apart in pairs; name two of them: target=\(0, 1\)"),
        ({"features": (0, 1), "target": (1, 1)}, "name two of them"),
        ({"features": (0, 1), "target": (1, 5)}, r"5 is no class of clf; choose from \[0, 1, 2\]"),
        ({"features": (0, 1), "grid_resolution": 3}, "grid_resolution=3; give at least 4"),
    ],
)
def test_what_cannot_be_drawn_is_told(machine, options, told):
    """The message names the argument and what to give instead."""
    with pytest.raises(ValueError, match=told):
        draw(machine().fit(IRIS.data, IRIS.target), IRIS.data, IRIS.target, **options)


def test_what_is_no_fitted_classifier_with_scores_is_told(machine):
    """Before the fit, in a pipeline too; without scores; with other columns, labels or numbers of rows."""
    X, y = MOONS
    for clf in (machine(), make_pipeline(StandardScaler(), machine())):
        with pytest.raises(NotFittedError, match="not fitted yet; call fit first"):
            draw(clf, X, y)
    with pytest.raises(ValueError, match="DecisionTreeClassifier has no decision_function"):
        draw(DecisionTreeClassifier().fit(X, y), X, y)
    clf = machine().fit(X, y)
    for display in (DecisionDisplay, MarginDisplay):
        with pytest.raises(ValueError, match="X has 1 columns and clf 2 features"):
            draw(clf, X[:, :1], y, display)
        with pytest.raises(ValueError, match=r"y\[0\] is .*7.* no class of clf"):
            draw(clf, X, y + 7, display)
        with pytest.raises(ValueError, match="X has 120 rows and y has 119 labels"):
            draw(clf, X, y[1:], display)
    with pytest.raises(
        ValueError, match=r"clf has 3 and tells them apart in pairs; .* or draw all of them by Decision"
    ):
        draw(machine().fit(*PETALS), *PETALS, MarginDisplay)
    with pytest.raises(ValueError, match="two classes, clf has 3; name the one"):
        draw(LinearSVM().fit(*PETALS), *PETALS, MarginDisplay)


def test_a_kernel_tells_apart_what_no_line_does():
    """Each panel has the rings of its fit's support vectors; a line errs at least three times as often on its rows."""
    for ax, (title, (svm, X, y)) in zip(kernels_figure().axes, shapes().items(), strict=True):
        svm.fit(X, y)
        rings = sum(len(one.get_offsets()) for one in ax.collections if one.get_label() in RINGS)
        assert rings == len(svm.support_)
        assert ax.get_title() == f"{title}: {rings} support vectors"
        errors = [int((one.predict(X) != y).sum()) for one in (svm, LinearSVM().fit(X, y))]
        assert 3 * errors[0] <= errors[1]

"""From estimators to models and back: the same scores, predictions and probabilities."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression as TheirRegression
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import widemargin as wm
from oracles import ROUNDING, noisy
from widemargin import LinearModel, LinearSVM, LogisticRegression
from widemargin.data import Rows
from widemargin.model import certificate_summary

OURS = {
    "hinge": LinearSVM(),
    "squared_hinge": LinearSVM(loss="squared_hinge", C=0.3),
    "logistic": LogisticRegression(C=2),
    "squared": wm.LeastSquaresClassifier(alpha=1.0),
}
THEIRS = {
    "LinearSVC": (LinearSVC(random_state=0), "squared_hinge", 1.0),
    "LinearSVC without a bias": (LinearSVC(fit_intercept=False, C=0.1, random_state=0), "squared_hinge", 0.1),
    "LinearSVC, lasso": (LinearSVC(penalty="l1", random_state=0), "squared_hinge", None),
    "LinearSVC, Crammer and Singer": (LinearSVC(multi_class="crammer_singer", C=0.01, random_state=0), None, None),
    "SGD, hinge": (SGDClassifier(random_state=0), "hinge", None),
    "SGD, logistic": (SGDClassifier(loss="log_loss", random_state=0), "logistic", None),
    "SGD, modified Huber": (SGDClassifier(loss="modified_huber", random_state=0), None, None),
    "ridge": (RidgeClassifier(), "squared", None),
    "LDA": (LinearDiscriminantAnalysis(), None, None),
}


def labelled(classes, seed=0):
    """120 noisy rows of 4 columns with two or three classes, named by `classes`."""
    X, y = noisy(120, 4, seed)
    return X, np.asarray(classes)[((y > 0) + (X[:, 1] > 0.5) * (len(classes) - 2)).astype(int)]


def same_answers(model, clf, X):
    """Scores up to rounding, and the same classes."""
    scores = model.scores(Rows(X))
    np.testing.assert_allclose(scores, clf.decision_function(X), rtol=0, atol=ROUNDING * np.abs(scores).max())
    np.testing.assert_array_equal(model.choose(scores), clf.predict(X))


@pytest.mark.parametrize("classes", [[-1, 1], ["no", "yes"], [3, 5, 8], ["a", "b", "é\n"], [False, True]], ids=str)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", OURS)
def test_to_sklearn_answers_alike(loss, storage, classes):
    """Ours, its model, and scikit-learn's estimator made of that: equal scores, classes and probabilities."""
    X, y = labelled(classes)
    X = storage(X)
    clf = OURS[loss].fit(X, y)
    model = LinearModel.from_estimator(clf)
    assert (model.loss, model.C) == (loss, clf.C)
    theirs = model.to_sklearn()
    same_answers(model, clf, X)
    same_answers(model, theirs, X)
    np.testing.assert_array_equal(theirs.classes_, clf.classes_)
    if loss == "logistic":
        chances = model.probabilities(model.scores(Rows(X)))
        np.testing.assert_array_equal(chances, clf.predict_proba(X))
        np.testing.assert_allclose(chances, theirs.predict_proba(X), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 5, 8]], ids=str)
@pytest.mark.parametrize("name", THEIRS)
def test_from_sklearn_answers_alike(name, classes):
    """scikit-learn's own decision function, of every linear classifier, before and after a detour through a model."""
    clf, loss, C = THEIRS[name]
    X, y = labelled(classes)
    clf.fit(X, y)
    model = LinearModel.from_estimator(clf)
    assert (model.loss, model.C, model.certificate) == (loss, C, None)
    same_answers(model, clf, X)
    same_answers(model, model.to_sklearn(), X)
    if loss == "logistic":
        chances = model.probabilities(model.scores(Rows(X)))
        np.testing.assert_allclose(chances, clf.predict_proba(X), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 5, 8]], ids=str)
def test_multinomial_probabilities(classes):
    """scikit-learn's predict_proba: σ for two classes, the softmax for three, before and after the detour."""
    X, y = labelled(classes)
    clf = TheirRegression(C=0.5).fit(X, y)
    model = LinearModel.from_estimator(clf)
    assert model.loss == ("logistic" if len(classes) == 2 else "multinomial")
    chances = model.probabilities(model.scores(Rows(X)))
    np.testing.assert_allclose(chances, clf.predict_proba(X), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), clf.predict_proba(X), rtol=0, atol=ROUNDING)


def test_feature_names_travel():
    """The columns of a data frame are the names in the model, and scikit-learn insists on them afterwards."""
    X, y = labelled([0, 1, 2])
    frame = pd.DataFrame(X, columns=["a", "b = c", "d\n", "é"])
    for clf in (LinearSVM(), LogisticRegression()):
        model = LinearModel.from_estimator(clf.fit(frame, y))
        assert model.feature_names == ("a", "b = c", "d\n", "é")
        theirs = model.to_sklearn()
        np.testing.assert_array_equal(theirs.predict(frame), clf.predict(frame))
        with pytest.raises(ValueError, match="feature names should match"):
            theirs.predict(frame[["é", "a", "b = c", "d\n"]])


def test_sparse_weights_and_linear_kernels():
    """Weights that scikit-learn keeps sparse, and those of SVC, answer as their owners do."""
    X, y = labelled([0, 1])
    same_answers(LinearModel.from_estimator(clf := LinearSVC().fit(X, y).sparsify()), clf, X)
    model = LinearModel.from_estimator(clf := SVC(kernel="linear", C=2).fit(X, y))
    same_answers(model, clf, X)
    assert (model.loss, model.C) == ("hinge", 2.0)


def test_what_is_no_linear_model_is_refused():
    """Each kind of estimator whose weights mean something else, with words about what to give instead."""
    X, y = labelled([0, 1, 2])
    for clf, words in (
        (LinearSVM(), "fit it first"),
        (make_pipeline(StandardScaler(), LinearSVC()).fit(X, y), "last step of a pipeline"),
        (SVC(kernel="linear").fit(X, y), "in pairs"),
    ):
        with pytest.raises(ValueError, match=words):
            LinearModel.from_estimator(clf)
    broken = LinearSVM().fit(X, y)
    broken.coef_ = broken.coef_ * np.nan
    with pytest.raises(ValueError, match="NaN or infinite; train"):
        LinearModel.from_estimator(broken)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared"])
def test_no_probabilities_without_the_logistic_loss(loss):
    """An error that says how to get them."""
    X, y = labelled([0, 1])
    model = LinearModel.from_estimator(OURS[loss].fit(X, y))
    with pytest.raises(ValueError, match="no probabilities; train with loss='logistic'"):
        model.probabilities(model.scores(Rows(X)))


@pytest.mark.parametrize("classes", [[0.5, 1.5], ["a", "b", "c"]], ids=str)
def test_certificate_summary(classes):
    """The numbers of the certificate itself, for each class, in text that is JSON to the letter."""
    X, y = labelled([str(name) for name in classes])
    clf = LinearSVM(tol=1e-5).fit(X, y)
    summary = LinearModel.from_estimator(clf).certificate
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    proofs = clf.certificate_ if len(classes) > 2 else [clf.certificate_]
    assert summary["tol"] == 1e-5
    assert summary["relative_gap"] == clf.certificate_.relative_gap <= 1e-5
    assert [one["class"] for one in summary["each"]] == list(clf.classes_[-len(proofs) :])
    for one, proof in zip(summary["each"], proofs, strict=True):
        assert (one["primal"], one["dual"], one["gap"]) == (proof.primal, proof.dual, proof.gap)
        assert (one["rows"], one["support_vectors"]) == (120, len(proof.support))
        assert [at["count"] for at in one["kkt"]] == [at.count for at in proof.kkt]


def test_an_unproved_fit_says_so():
    """What is not proved is infinite, and JSON has no infinity but the text."""
    X, y = labelled([0, 1])
    unproved = replace(LinearSVM().fit(X, y).certificate_, primal=np.inf, dual=-1.0, width=np.nan)
    summary = certificate_summary(unproved, [0, 1], tol=1e-3)
    assert (summary["relative_gap"], summary["each"][0]["primal"], summary["each"][0]["width"]) == ("inf", "inf", "nan")
    json.dumps(summary, allow_nan=False)

import json

import numpy as np
import pytest
from sklearn import metrics

from oracles import noisy
from widemargin import LogisticRegression
from widemargin.evaluation import evaluate


def three_classes():
    """Labels of three classes, a classifier's scores and probabilities of them, and what it predicts."""
    X, _ = noisy(150, 4)
    y = np.array(["a", "b", "c"])[
        np.argmax(X[:, :3] + 0.5 * np.random.default_rng(1).standard_normal((150, 3)), axis=1)
    ]
    clf = LogisticRegression().fit(X, y)
    return y, clf.predict(X), clf.decision_function(X), clf.predict_proba(X), clf.classes_


def test_two_classes_equal_scikit_learn():
    """Every number equals scikit-learn's for the second class."""
    X, y = noisy(200, 3)
    clf = LogisticRegression().fit(X, y)
    said, scores, chances = clf.predict(X), clf.decision_function(X), clf.predict_proba(X)
    found = evaluate(y, said, scores, chances, classes=clf.classes_)
    assert found.accuracy == metrics.accuracy_score(y, said)
    assert found.precision == pytest.approx(metrics.precision_score(y, said))
    assert found.recall == pytest.approx(metrics.recall_score(y, said))
    assert found.f1 == pytest.approx(metrics.f1_score(y, said))
    assert found.roc_auc == pytest.approx(metrics.roc_auc_score(y, scores))
    assert found.log_loss == pytest.approx(metrics.log_loss(y, chances))
    assert np.array_equal(found.confusion, metrics.confusion_matrix(y, said))
    assert found.baseline == max((y > 0).mean(), (y < 0).mean())


def test_several_classes_equal_scikit_learn():
    """Every number equals scikit-learn's mean over the classes, ROC AUC each against the rest."""
    y, said, scores, chances, classes = three_classes()
    found = evaluate(y, said, scores, chances, classes=classes)
    assert found.precision == pytest.approx(metrics.precision_score(y, said, average="macro"))
    assert found.recall == pytest.approx(metrics.recall_score(y, said, average="macro"))
    assert found.f1 == pytest.approx(metrics.f1_score(y, said, average="macro"))
    areas = [metrics.roc_auc_score(y == name, scores[:, k]) for k, name in enumerate(classes)]
    assert found.roc_auc == pytest.approx(np.mean(areas))
    assert [one.roc_auc for one in found.each] == pytest.approx(areas)
    assert found.log_loss == pytest.approx(metrics.log_loss(y, chances))
    assert [one.f1 for one in found.each] == pytest.approx(list(metrics.f1_score(y, said, average=None)))


def test_classes_that_no_row_has_are_told_and_leave_the_means_alone():
    """With the rows of "c" gone, the means are scikit-learn's over "a" and "b"; what c has cannot be said."""
    y, said, scores, chances, classes = three_classes()
    keep = y != "c"
    found = evaluate(y[keep], said[keep], scores[keep], chances[keep], classes=classes)
    wanted = metrics.recall_score(y[keep], said[keep], labels=["a", "b"], average="macro")
    assert found.recall == pytest.approx(wanted)
    assert found.absent == ("c",)
    assert (found.each[2].recall, found.each[2].roc_auc) == (None, None)


def test_unknown_labels_are_mistakes():
    """Labels that the classifier does not know count in rows and accuracy, and are reported with their number."""
    y, said, scores, chances, classes = three_classes()
    odd = y.astype(object)
    odd[:5], odd[5] = "d", 7
    found = evaluate(odd, said, scores, chances, classes=classes)
    assert found.unknown == {"d": 5, "7": 1}
    assert (found.rows, found.right) == (150, int((y[6:] == said[6:]).sum()))
    assert np.sum(found.confusion) == 144
    assert found.log_loss == pytest.approx(metrics.log_loss(y[6:], chances[6:]))


def test_no_one_can_name_an_unknown_class():
    """The baseline names the most frequent of the classes, though an unknown label has more rows."""
    assert evaluate(["d", "d", "d", "a", "b", "b"], ["a"] * 6, classes=["a", "b"]).baseline == 2 / 6


def test_a_class_without_rows_has_no_f1():
    """All rows are of the first of two classes: what is said of the second is None, not 0, though it was named."""
    found = evaluate(["a", "a", "a"], ["a", "a", "b"], classes=["a", "b"])
    assert (found.f1, found.each[1].f1, found.recall) == (None, None, None)


def test_words_are_no_numbers():
    """The label "1" is unknown to a classifier whose class is the number 1."""
    found = evaluate(["1", "0"], [1, 0], classes=[0, 1])
    assert (found.right, found.unknown) == (0, {"0": 1, "1": 1})
    assert (found.roc_auc, found.log_loss, found.recall) == (None, None, None)


def test_a_class_never_named_has_no_precision_of_its_own_but_counts_as_0():
    """scikit-learn's mean with zero_division=0 is the oracle."""
    y, said = ["a", "b", "c", "c"], ["a", "a", "c", "c"]
    found = evaluate(y, said, classes=["a", "b", "c"])
    assert found.each[1].precision is None
    assert found.precision == pytest.approx(metrics.precision_score(y, said, average="macro", zero_division=0))


def test_json_holds_everything():
    """json.dumps takes it as it is, NumPy labels and absent numbers included, and it reads back the same."""
    found = evaluate(np.array([1, 2, 3]), np.array([1, 2, 2]), classes=np.array([1, 2]))
    back = json.loads(json.dumps(found.to_json()))
    assert (back["accuracy"], back["classes"], back["unknown"]) == (2 / 3, [1, 2], {"3": 1})
    assert back["each"][1]["precision"] == 0.5
    assert back["confusion"] == [[1, 0], [0, 1]]


def test_it_prints_a_table():
    """The text has the numbers that the fields have, and one line per class if there are several."""
    y, said, scores, _, classes = three_classes()
    found = evaluate(y, said, scores, classes=classes)
    text = str(found)
    assert f"{found.accuracy:.4f}" in text
    assert len([line for line in text.splitlines() if line[:2] in ("a ", "b ", "c ")]) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predicted": [1]}, "y has 2 labels and predicted 1"),
        ({"predicted": [1, 5]}, "predicted has '5', which is none of the classes"),
        ({"classes": [1]}, "at least 2"),
        ({"scores": [[1.0, 2.0, 3.0]] * 2}, r"scores has shape \(2, 3\)"),
        ({"probabilities": [0.5, 0.5]}, r"probabilities has shape \(2,\)"),
        ({"y": [], "predicted": []}, "no rows"),
        ({"y": [[0], [1]]}, "one dimension"),
    ],
)
def test_wrong_input_is_named(change, message):
    """Each message names the argument and what it should be."""
    arguments = {"y": [0, 1], "predicted": [0, 1], "classes": [0, 1]} | change
    with pytest.raises(ValueError, match=message):
        evaluate(**arguments)

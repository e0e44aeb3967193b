"""The sections of a report below its first screen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import Certificate, Certificates
from widemargin.data.labels import text_of
from widemargin.evaluation import Evaluation
from widemargin.kernels import Kernel
from widemargin.plots import ConvergenceDisplay, DecisionDisplay, KKTDisplay, MarginDisplay
from widemargin.plots.kkt import OtherProblemError
from widemargin.plots.sides import is_known, rows_of, walkable
from widemargin.report.markup import escaped, four_digits, picture_of, table_of
from widemargin.report.subject import Subject, each_of

Floats = NDArray[np.float64]

#: How many features of a class, and how many rows, are listed.
FEATURES, FEATURES_OF_MANY, VIOLATIONS = 15, 8, 15
#: More classes than this are not listed one by one in every table.
MOST_CLASSES = 40
#: k(x, x′) as it is written.
FORMULAS = {
    "linear": "x·x′",
    "poly": "(γ x·x′ + coef0)<sup>degree</sup>",
    "rbf": "exp(−γ‖x − x′‖²)",
    "sigmoid": "tanh(γ x·x′ + coef0)",
    "cosine": "x·x′/(‖x‖‖x′‖)",
    "laplacian": "exp(−γ Σ |x − x′|)",
    "chi2": "exp(−γ Σ (x − x′)²/(x + x′))",
    "additive_chi2": "−Σ (x − x′)²/(x + x′)",
}


def evaluation_part(found: Evaluation) -> str:
    """Accuracy and its kin, class by class where there are several, and who is taken for whom."""
    several = len(found.classes) > 2
    whose = "the class" if several else f"class {escaped(found.classes[1])}"
    mean = "; mean over the classes" if several else ""
    facts = [
        ("accuracy", found.accuracy, "share of the rows that are classified rightly"),
        ("precision", found.precision, f"share of right ones among the rows taken for {whose}{mean}"),
        ("recall", found.recall, f"share of the rows of {whose} that are recognised{mean}"),
        ("F1", found.f1, f"harmonic mean of precision and recall{mean}"),
        ("ROC AUC", found.roc_auc, f"chance that a row of {whose} scores higher than a row of another{mean}"),
        ("log loss", found.log_loss, "mean of −log of the probability given to the right class; lower is better"),
    ]
    rows = [
        (label, four_digits(value), meaning if value is not None else f"{meaning}: no such rows")
        for label, value, meaning in facts
        if value is not None or label in ("recall", "F1")
    ]
    body = table_of(("", "", "meaning"), rows, words=(2,))
    if several:
        body += "<h3>Class by class</h3>" + _classes_table(found)
    return f"<section>\n<h2>Evaluation</h2>\n{body}\n<h3>Confusions</h3>\n{_confusion(found)}\n</section>"


def _classes_table(found: Evaluation) -> str:
    listed = sorted(found.each, key=lambda one: 2.0 if one.f1 is None else one.f1)
    rows = [
        (escaped(one.name), f"{one.rows:,}", *map(four_digits, (one.precision, one.recall, one.f1, one.roc_auc)))
        for one in listed[:MOST_CLASSES]
    ]
    note = f'<p class="note">The {MOST_CLASSES} with the lowest F1.</p>' if len(listed) > MOST_CLASSES else ""
    heads = ("class, worst first", "rows", "precision", "recall", "F1", "ROC AUC")
    return table_of(heads, rows) + note


def _confusion(found: Evaluation) -> str:
    counts = np.array(found.confusion)
    if len(found.classes) > MOST_CLASSES:
        wrong = counts.copy()
        np.fill_diagonal(wrong, 0)
        order = np.argsort(-wrong, axis=None, kind="stable")[:20]
        pairs = [(i, j) for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True) if wrong[i, j]]
        rows = [(escaped(found.classes[i]), escaped(found.classes[j]), f"{counts[i, j]:,}") for i, j in pairs]
        return table_of(("class", "taken for", "rows"), rows, words=(1,))
    short = sum(len(escaped(one)) for one in found.classes) > 60  # numbers must stand for names
    look = "confusion many" if len(found.classes) > 6 else "confusion"
    heads = "".join(f"<th>{k + 1 if short else escaped(one)}</th>" for k, one in enumerate(found.classes))
    lines = []
    for i, one in enumerate(found.classes):
        total = max(int(counts[i].sum()), 1)
        cells = "".join(
            f'<td style="background: rgba(var(--shade), {0.75 * count / total:.2f})">{count or "·"}</td>'
            for count in found.confusion[i]
        )
        number = f"{i + 1}\u2002" if short else ""
        lines.append(f'<tr><th title="{escaped(one)}">{number}{escaped(one)}</th>{cells}</tr>')
    return (
        f'<div class="wide"><table class="{look}"><thead><tr><th></th>{heads}</tr></thead><tbody>{"".join(lines)}'
        '</tbody></table></div>\n<p class="note">Rows: the class by label. Columns: the class by prediction. What is '
        "right stands on the diagonal; the shade is the share of the row's class.</p>"
    )


def certificate_part(subject: Subject) -> str:
    """The proof: primal, dual and gap, the margin, and the KKT table."""
    proof = subject.certificate
    if proof is None:
        return ""
    each = each_of(proof)
    about = "It is about the rows that the model was trained on, not about those of this page."
    whose = "" if subject.proved_here else f'<p class="note">{about}</p>'
    where = "" if subject.coef is not None else ", w being the weights in the kernel's own space"
    intro = (
        f"<p>Training minimises an objective: ½‖w‖² and C times the losses{where}. The <em>dual</em> value below is a "
        "number that no weights can get under, whatever the solver did. The model's own value, the <em>primal</em>, is "
        "at most the <em>gap</em> above it.</p>"
    )
    if subject.indefinite:
        intro = (
            "<p>Training looks for where an objective, ½‖w‖² and C times the losses, has no slope left. The kernel is "
            "not positive semidefinite on these rows: it is no inner product of any features, and the <em>dual</em> "
            "value below bounds nothing.</p>"
        )
    what = "pair of classes" if subject.in_pairs else "class against the rest"
    facts = _several(proof, what) if isinstance(proof, Certificates) else _single(each[0])
    added = "All pairs'" if subject.in_pairs else "All classes'"
    return f"<section>\n<h2>Certificate</h2>\n{whose}{intro}\n{facts}\n{_kkt_table(each, added)}\n</section>"


def _single(proof: Certificate) -> str:
    inside = proof.violations - proof.misclassified
    rows = [
        ("primal", f"{proof.primal:.9g}", "the model's objective"),
        ("dual", f"{proof.dual:.9g}", "what no weights can get under" if np.isfinite(proof.rounding) else "no bound"),
        ("gap", f"{proof.gap:.2e}", "their difference, rounding included"),
        ("relative gap", f"{proof.relative_gap:.2e}", "the gap divided by the dual"),
        ("margin width", f"{proof.width:.6g}", "2/‖w‖, the distance of the two edges of the band"),
        ("support vectors", f"{len(proof.support):,} of {proof.rows:,}", "the rows that the weights depend on"),
        ("total slack", f"{proof.slack:.6g}", "the sum of all ξ = max(0, 1 − margin)"),
        ("inside the margin", f"{inside:,}", "rows with 0 &lt; ξ ≤ 1: right, but close"),
        ("misclassified", f"{proof.misclassified:,}", "rows with ξ &gt; 1"),
    ]
    return table_of(("", "", "meaning"), rows, words=(2,))


def _several(proofs: Certificates, what: str) -> str:
    worst_first = sorted(zip(proofs.classes, proofs.each, strict=True), key=lambda one: -one[1].relative_gap)
    rows = [
        (
            escaped(name),
            f"{proof.primal:.6g}",
            f"{proof.dual:.6g}",
            f"{proof.relative_gap:.1e}",
            f"{proof.width:.4g}",
            f"{len(proof.support):,}",
        )
        for name, proof in worst_first[:MOST_CLASSES]
    ]
    heads = (f"{what}, worst gap first", "primal", "dual", "relative gap", "width", "support vectors")
    more = len(worst_first) - MOST_CLASSES
    return table_of(heads, rows) + (f'<p class="note">And {more:,} more with smaller gaps.</p>' if more > 0 else "")


def _kkt_table(each: Sequence[Certificate], added: str) -> str:
    kinds = [kind for kind in zip(*(one.kkt for one in each), strict=True) if sum(one.count for one in kind)]
    rows = [
        (
            escaped(kind[0].name),
            escaped(kind[0].demand),
            f"{sum(one.count for one in kind):,}",
            f"{max(one.worst for one in kind):.1e}",
        )
        for kind in kinds
    ]
    together = "" if len(each) == 1 else f" {added} tables are added up here."
    return (
        "<h3>Optimality, row by row (KKT)</h3>"
        + table_of(("dual variable", "optimality asks", "rows", "worst miss"), rows, words=(1,))
        + '<p class="note">α is how hard a row pulls at the weights, at most its strength c. At the best weights every '
        f"row is where its α asks it to be; the worst miss tells by how much one is not.{together}</p>"
    )


def pictures_part(subject: Subject) -> str:
    """The margin; of a fit of ours also the KKT regions and how the gap fell."""
    clf, found = subject.clf, subject.evaluation
    known = is_known(subject.y, np.asarray(clf.classes_))
    if not known.any():
        return ""
    X, y = (subject.X, subject.y) if known.all() else (rows_of(subject.X, known), subject.y[known])
    d = subject.features
    target, named = None, ""
    if subject.coef is None:
        return _figures([*_kernel_picture(subject, X, y), *_training_picture(subject)])
    if len(found.classes) > 2:
        target = min((one for one in found.each if one.rows), key=lambda one: one.f1 or 0.0).name
        named = f" For the class {escaped(target)}, which has the lowest F1, against the rest."
    features = {1: "the only feature", 2: "both features"}.get(d, f"{d:,} features seen from the side")
    pictures = [
        (
            picture_of(lambda ax: MarginDisplay.from_estimator(clf, X, y, target=target, ax=ax)),
            f"The margin, {features}: the score to the right decides, the dashed lines at ±1 are the edges of the "
            f"margin.{named}"
            if d > 2
            else f"The margin, {features}: the line decides, the dashed lines are the edges of the margin.{named}",
        )
    ]
    if subject.proved_here and hasattr(clf, "problems") and known.all():
        with suppress(OtherProblemError):  # of rows that had weights, α/c is not known
            pictures.append(
                (
                    picture_of(lambda ax: KKTDisplay.from_estimator(clf, X, y, target=target, ax=ax)),
                    f"Optimality: how hard every row pulls (α) against its margin. Shaded: where it must be.{named}",
                )
            )
    return _figures([*pictures, *_training_picture(subject)])


def _training_picture(subject: Subject) -> list[tuple[str, str]]:
    """How the gap fell, if the history of the fit is known; of several problems, the one with the widest gap."""
    clf, history = subject.clf, getattr(subject.clf, "history_", None)
    if not history:
        return []
    runs = {"relative gap": history}
    if isinstance(subject.certificate, Certificates):
        slowest = int(np.argmax([one.relative_gap for one in subject.certificate]))
        kind, name = "pair" if subject.in_pairs else "class", text_of(subject.certificate.classes[slowest])
        runs = {f"{kind} {name}, the widest gap": history[slowest]}
    if len(next(iter(runs.values()))) < 2:
        return []
    tols = [float(clf.tol)] if hasattr(clf, "tol") else []
    image = picture_of(lambda ax: ConvergenceDisplay.from_histories(runs, tols=tols, over="passes", ax=ax))
    return [(image, "Training: how the gap fell, from pass to pass, to what was asked for.")]


def _kernel_picture(subject: Subject, X: Any, y: Any) -> list[tuple[str, str]]:
    """The curved boundary over one or two features; of more, the scores of two classes from the side."""
    clf, classes, d = subject.clf, subject.evaluation.classes, subject.features
    if getattr(clf, "kernel", None) == "precomputed":
        return []
    if d <= 2:
        image = picture_of(lambda ax: DecisionDisplay.from_estimator(clf, X, y, ax=ax))
        features = "the only feature" if d == 1 else "both features"
        return [(image, f"The boundary, {features}: regions are those of the prediction, paler inside of the margin.")]
    target, named = None, ""
    if len(classes) > 2:
        wrong = np.array(subject.evaluation.confusion)
        np.fill_diagonal(wrong, 0)
        i, j = sorted(divmod(int(np.argmax(wrong + wrong.T)), len(wrong)))
        target = (classes[i], classes[j]) if i < j else (classes[0], classes[1])
        named = f" For the classes {escaped(target[0])} and {escaped(target[1])}, most often taken for each other."
        if not all((y == one).any() for one in target):
            return []
    image = picture_of(lambda ax: MarginDisplay.from_estimator(clf, X, y, target=target, ax=ax))
    words = (
        f"The margin, {d:,} features seen from the side: the score to the right decides, the dashed lines at ±1 are "
    )
    return [(image, f"{words}the edges of the margin.{named}")]


def _figures(pictures: list[tuple[str, str]]) -> str:
    if not pictures:
        return ""
    shown = "".join(
        f'<figure><img alt="{caption}" src="{image}"><figcaption>{caption}</figcaption></figure>'
        for image, caption in pictures
    )
    return f'<section>\n<h2>Pictures</h2>\n<div class="columns">{shown}</div>\n</section>'


def kernel_part(subject: Subject) -> str:
    """What stands in the place of weights: the kernel, and how many support vectors each class has."""
    clf = subject.clf
    kernel = getattr(clf, "kernel_", None) or getattr(getattr(clf, "model", None), "kernel", None)
    if isinstance(kernel, Kernel):
        formula, facts = FORMULAS[kernel.name], [(name, f"{value:.6g}") for name, value in kernel.parameters.items()]
        facts = [("kernel", escaped(kernel.name)), ("k(x, x′)", formula), *facts]
    else:
        name = getattr(clf, "kernel", None)
        facts = [("kernel", escaped(name if isinstance(name, str) else "a function"))]
    counts = np.asarray(clf.n_support_).tolist()
    facts += [
        ("support vectors", f"{sum(counts):,}"),
        ("pairs of classes", f"{len(counts) * (len(counts) - 1) // 2:,}"),
    ]
    listed = sorted(zip(subject.evaluation.classes, counts, strict=True), key=lambda one: -one[1])
    rows = [(escaped(name), f"{count:,}") for name, count in listed[:MOST_CLASSES]]
    more = len(listed) - MOST_CLASSES
    note = f'<p class="note">And {more:,} more classes with fewer.</p>' if more > 0 else ""
    return (
        '<section>\n<h2>Kernel</h2>\n<p class="note">A row is compared with support vectors, rows of the training, by '
        "k(x, x′); the score is a weighted sum of these values. So features have no weights of their own.</p>\n"
        f'<div class="columns"><div>{table_of(("", ""), facts)}</div>'
        f"<div>{table_of(('class', 'support vectors'), rows)}{note}</div></div>\n</section>"
    )


def features_part(subject: Subject) -> str:
    """The features that move the score most, for either of two classes or for each of several."""
    assert subject.coef is not None
    classes, moves = subject.evaluation.classes, subject.coef * _spread(subject.X)
    note = (
        "A weight is what one unit of the feature adds to the score, and units differ. So features are ranked by "
        "weight × spread: what one standard deviation of the feature, on these rows, adds."
    )
    if len(classes) == 2:
        sides = (
            f"<div><h3>Speak for class {escaped(name)}</h3>{_features_table(subject, sign, moves[0], look)}</div>"
            for sign, name, look in ((1.0, classes[1], "bar"), (-1.0, classes[0], "bar against"))
        )
        body = f'<div class="columns">{"".join(sides)}</div>'
    else:
        note += " In brackets stands the weight."
        items = []
        for k in range(min(len(classes), MOST_CLASSES)):
            heavy = _heaviest(moves[k], FEATURES_OF_MANY)
            each = (f"{subject.feature(j)}\u00a0{moves[k, j]:.2g} ({subject.coef[k, j]:.2g})" for j in heavy)
            items.append(f"<li><strong>{escaped(classes[k])}</strong>: {', '.join(each) or 'none'}</li>")
        more = f"<p>And {len(classes) - MOST_CLASSES:,} more classes.</p>" if len(classes) > MOST_CLASSES else ""
        body = f'<ul class="classes">{"".join(items)}</ul>{more}'
    return f'<section>\n<h2>Heaviest features</h2>\n<p class="note">{note}</p>\n{body}\n</section>'


def _features_table(subject: Subject, sign: float, moves: Floats, look: str) -> str:
    top = float(np.abs(moves).max()) or 1.0
    assert subject.coef is not None
    rows = [
        (
            subject.feature(k),
            f"{subject.coef[0, k]:.4g}",
            f"{moves[k]:.3g}",
            f'<span class="{look}" style="width: {100 * abs(moves[k]) / top:.1f}%"></span>',
        )
        for k in _heaviest(sign * moves, FEATURES)
    ]
    return table_of(("feature", "weight", "×\u00a0spread", ""), rows, drawn=3) if rows else "<p>None.</p>"


def _heaviest(moves: Floats, count: int) -> list[int]:
    """The features that move the score upwards, the one that does most first."""
    count = min(count, len(moves))
    largest = np.argpartition(-moves, count - 1)[:count]
    order = largest[np.argsort(-moves[largest], kind="stable")]
    return [int(k) for k in order if moves[k] > 0]


def violations_part(subject: Subject) -> str:
    """The rows that are farthest on the wrong side, by number."""
    classes = np.asarray(subject.clf.classes_)
    place = {one: k for k, one in enumerate(classes.tolist())}
    truth = np.array([place.get(one, -1) for one in subject.y.tolist()], dtype=np.intp)
    known = np.flatnonzero(truth >= 0)
    if not len(known):
        return ""
    if subject.scores.ndim == 1:
        margins = np.where(truth[known] == 1, subject.scores[known], -subject.scores[known])
        wanted, slack, none = 1.0, "ξ", "every row is on the right side, and outside of the margin"
        meaning = "ξ = 1 − margin; above 1 the row is misclassified"
    else:
        own = subject.scores[known, truth[known]]
        others = subject.scores[known].copy()
        others[np.arange(len(known)), truth[known]] = -np.inf
        margins = own - others.max(axis=1)
        wanted, slack, none = 0.0, "behind by", "every row scores highest for its own class"
        meaning = "The margin is the score of the right class above the best of the others"
    order = np.argsort(margins, kind="stable")[:VIOLATIONS]
    order = order[margins[order] < wanted]
    if not len(order):
        body = f"<p>None: {none}.</p>"
    else:
        rows = [
            (
                f"{i + 1:,}",
                escaped(subject.y[i]),
                escaped(subject.predicted[i]),
                f"{m:.4g}",
                f"{max(0.0, wanted - m):.4g}",
            )
            for i, m in zip(known[order].tolist(), margins[order].tolist(), strict=True)
        ]
        body = table_of(("row", "label", "prediction", "margin", slack), rows, words=(1, 2))
        body += (
            f'<p class="note">Rows are counted from 1. {meaning}. Such rows are worth a look: a wrong label, a slip in '
        )
        body += "the data, or a case that the features cannot tell.</p>"
    return f'<section class="rows">\n<h2>Worst violations</h2>\n{body}\n</section>'


def settings_part(subject: Subject) -> str:
    """The parameters of an estimator, or what a model's file says of its training."""
    clf = subject.clf
    if hasattr(clf, "get_params"):
        settings = dict(sorted(clf.get_params(deep=False).items()))
        if hasattr(clf, "n_iter_"):
            settings["passes or steps taken"] = clf.n_iter_
    else:
        settings = _stated(clf.model)
    rows = [(escaped(key), "not known" if value is None else escaped(value)) for key, value in settings.items()]
    return f"<section>\n<h2>Settings</h2>\n{table_of(('parameter', 'value'), rows)}\n</section>"


def _stated(model: Any) -> dict[str, Any]:
    """Loss, C and, if they were kept, the other settings of a training and what it reached."""
    said = getattr(model, "certificate", None) or {}
    kernel = getattr(model, "kernel", None)
    settings: dict[str, Any] = {} if kernel is None else {"kernel": str(kernel)}
    settings |= {"loss": getattr(model, "loss", None), "C": getattr(model, "C", None)}
    if "class_weight" in said:
        weight = said["class_weight"]
        settings["class_weight"] = str(dict(weight) if isinstance(weight, list) else weight)
    settings |= {key: said[key] for key in ("fit_intercept", "tol") if key in said}
    if "relative_gap" in said:
        settings["relative gap reached"] = f"{float(said['relative_gap']):.1e}"
    if said.get("each"):
        settings["rows trained on"] = said["each"][0].get("rows")
    return settings


def _spread(X: Any) -> Floats:
    """The standard deviation of every column, from the squares of what is left without its mean."""
    rows = walkable(X)
    each = np.ones(rows.n)
    return np.asarray(np.sqrt(rows.column_sums(each, power=2, shift=rows.combine(each) / rows.n) / rows.n))

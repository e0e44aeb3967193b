"""The first screen of a report: how good the model is and whether to trust it, in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.evaluation import Evaluation
from widemargin.model import MULTINOMIAL
from widemargin.report.markup import escaped, percent, plural, small_percent
from widemargin.report.subject import Subject

#: A gap above this is worth a warning.
WIDE_GAP = 0.01
#: So large a share of support vectors is worth a remark.
MANY_SUPPORT = 0.8


def first_screen(subject: Subject, title: str, source: str) -> str:
    """Two sentences, a few numbers, and what to keep in mind."""
    found, n, d = subject.evaluation, len(subject.y), subject.features
    of = f"{n:,} rows, {d:,} features, {len(found.classes):,} classes"
    of = f"on {escaped(source)}: {of}" if source else f"on {of}"
    tiles = [(percent(found.accuracy), "of the rows classified rightly")]
    if len(_there(found)) > 1:
        tiles.append((percent(found.baseline), "by always naming the most frequent class"))
    meaning = "mean F1 over the classes" if len(found.classes) > 2 else f"F1 of class {escaped(found.classes[1])}"
    tiles.append(("–", f"{meaning}: no such rows") if found.f1 is None else (f"{found.f1:.3f}", meaning))
    if found.roc_auc is not None:
        tiles.append((f"{found.roc_auc:.3f}", "ROC AUC: 0.5 is chance, 1 is perfect"))
    if (gap := subject.gap) is not None:
        when = ", at training" if subject.certificate is None else ""
        others = "other weights" if subject.coef is not None else "other functions of its kernel"
        tiles.append((small_percent(gap), f"the most that {others} could lower the objective{when}"))
    shown = "".join(f'<div class="tile"><b>{value}</b><span>{meaning}</span></div>' for value, meaning in tiles)
    minding = "".join(f"<li>{one}</li>" for one in _to_mind(subject))
    return (
        f'<header>\n<h1>{escaped(title)}</h1>\n<p class="of">{of}</p>\n{_how_good(subject)}\n{_how_sure(subject)}\n'
        f'<div class="tiles">{shown}</div>\n'
        + (f'<strong>To keep in mind</strong>\n<ul class="minding">{minding}</ul>\n' if minding else "")
        + "</header>"
    )


def _how_good(subject: Subject) -> str:
    found = subject.evaluation
    better, compared = _against_the_most_frequent(found)
    words = f"Of {found.rows:,} rows, {found.right:,} are classified rightly ({percent(found.accuracy)})."
    return f'<p class="says{"" if better else " mind"}">{words} <small>{compared}</small></p>'


def _against_the_most_frequent(found: Evaluation) -> tuple[bool, str]:
    """Whether the model is surely better than always naming the most frequent class, and the words for it."""
    there = _there(found)
    if not there:
        return False, "No row has a label that the model knows, so they cannot judge it: are the labels spelt alike?"
    if len(there) == 1:
        return False, (
            f"Every label that the model knows is {escaped(there[0])}: such rows cannot tell whether it knows one "
            "class from another."
        )
    low, high = _interval(found.right, found.rows)
    if low > found.baseline:
        wrong, lazy = found.rows - found.right, round(found.rows * (1 - found.baseline))
        would = f"Always naming the most frequent class would get {percent(found.baseline)}"
        return True, f"{would}: {lazy:,} mistakes instead of {f'{wrong:,}' if wrong else 'none'}."
    if found.accuracy > found.baseline:
        words = (
            "That cannot be distinguished from always naming the most frequent class, which would get "
            f"{percent(found.baseline)}: these rows tell no more than that the accuracy is between {percent(low)} "
            f"and {percent(high)} (95\u00a0% interval)."
        )
    else:
        words = "Its accuracy is not better than that of always naming the most frequent class."
    if found.roc_auc is not None and found.roc_auc > 0.5:
        words += (
            f" Its scores may still be of use: they order the rows with a ROC AUC of {found.roc_auc:.3f}. Another "
            "threshold or class_weight='balanced' would find more of the rarer classes."
        )
    return False, words


def _there(found: Evaluation) -> list[Any]:
    """The classes that any row has."""
    return [one.name for one in found.each if one.rows]


def _how_sure(subject: Subject) -> str:
    gap = subject.gap
    if gap is None:
        return f'<p class="says mind">{_unproved(subject)}</p>'
    several = len(subject.evaluation.classes) > 2
    worst = "" if not several else " for any pair of classes" if subject.in_pairs else " for any of the classes"
    judged = subject.proved_here and not subject.trained_here  # perhaps it was trained on others
    where = " on these rows" if judged else "" if subject.proved_here else " on the rows it was trained on"
    others, none = "Other weights", "No weights"
    if subject.coef is None:
        others, none = "Other functions of its kernel", "No function of its kernel"
    if subject.indefinite:
        words = f"Nothing is proved of it{worst}: its kernel is not positive semidefinite on these rows."
    elif not np.isfinite(gap) and subject.coef is None:
        words = f"Nothing is proved of it{worst}: it may be far from the best function of its kernel."
    elif not np.isfinite(gap):
        words = f"Nothing is proved about the weights{worst}: they may be far from the best ones."
    elif gap > WIDE_GAP and judged:
        words = f"{others} may have an objective {small_percent(gap)} better{worst}{where}."
    elif gap > WIDE_GAP:
        words = (
            f"Training stopped short: {others[0].lower()}{others[1:]} may have an objective {small_percent(gap)} "
            f"better{worst}{where}."
        )
    elif gap <= 1e-12:
        words = f"{none} can have a better objective{worst}{where}, but for rounding: proved."
    else:
        bound = next((name for power, name in _TINY if gap <= power), small_percent(gap))
        words = f"{none} can have an objective more than {bound} better{worst}{where}: proved."
    if subject.certificate is None:
        words += " So says its file, of its training."
    if gap <= WIDE_GAP and subject.evaluation.accuracy == 1:
        more = "So longer training would change nothing that matters."
    elif gap <= WIDE_GAP:
        takes = "more rows or another C" if subject.coef is not None else "more rows, another kernel, gamma or C"
        more = f"So what the model gets wrong is not for lack of training: it takes other features, {takes}."
    elif judged:
        more = "If the model was trained on other rows, that is no fault of its training."
    elif subject.indefinite:
        more = "Use another kernel or other parameters of it, before judging the features by this model."
    elif subject.coef is None:
        more = (
            "Train on, scale the features, or use another kernel or gamma, before judging the features by this model."
        )
    else:
        more = "Train on, scale the features, or use solver='auto', before judging the features by this model."
    return f'<p class="says{"" if gap <= WIDE_GAP else " mind"}">{words} <small>{more}</small></p>'


def _unproved(subject: Subject) -> str:
    """Why there is no proof, as far as it is known."""
    if getattr(getattr(subject.clf, "model", None), "loss", None) == MULTINOMIAL:
        return (
            "How close the weights are to the best ones is not proved here: this model has the multinomial loss, which "
            "couples its classes, and the proof is for one class against the rest."
        )
    return (
        "How close the weights are to the best ones is not proved here: that takes the rows, the loss and the C of its "
        "training."
    )


_TINY = ((1e-9, "a billionth"), (1e-6, "a millionth"))


def _to_mind(subject: Subject) -> list[str]:
    """What would make a careful reader trust the numbers less."""
    found, d = subject.evaluation, subject.features
    notes = []
    if subject.trained_here:
        notes.append("These are the rows that the model was trained on. Expect more mistakes on rows it has not seen.")
    else:
        low, high = _interval(found.right, found.rows)
        notes.append(
            f"With {found.rows:,} rows the accuracy on more of the same kind is between {percent(low)} and "
            f"{percent(high)} (95\u00a0% interval), if the model was not trained on them."
        )
    if subject.trained_here and subject.coef is None:
        share = len(subject.clf.support_) / found.rows
        if share > MANY_SUPPORT:
            notes.append(
                f"{percent(share)} of the rows are support vectors: the boundary may follow single rows. A smaller "
                "gamma or another C may do better on new ones."
            )
    if subject.trained_here and subject.coef is not None and d > found.rows:
        notes.append(f"There are more features ({d:,}) than rows ({found.rows:,}): a fit to such rows proves little.")
    if found.unknown:
        kinds, count = len(found.unknown), sum(found.unknown.values())
        some = ", ".join(escaped(one) for one in list(found.unknown)[:5])
        notes.append(
            f"{count:,} {plural(count, 'row has a label', 'rows have labels')} that the model does not know ({some}"
            f"{', …' if kinds > 5 else ''}): {plural(count, 'a mistake', 'mistakes')} by necessity."
        )
    if found.absent:
        some = ", ".join(escaped(one) for one in found.absent[:5])
        many = f"{some}{', …' if len(found.absent) > 5 else ''}"
        notes.append(
            f"No row has {plural(len(found.absent), 'the class', 'the classes')} {many}: nothing is said of it."
        )
    missed = sorted(
        (one for one in found.each if one.rows and (one.recall or 0) < 0.5), key=lambda one: one.recall or 0
    )
    for one in missed[:3]:
        hit = round((one.recall or 0) * one.rows)
        notes.append(f"Of the {one.rows:,} rows of class {escaped(one.name)}, only {hit:,} are recognised.")
    if len(missed) > 3:
        notes.append(f"{len(missed) - 3} more classes have fewer than half of their rows recognised.")
    return notes


def _interval(right: int, rows: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a share."""
    share, weight = right / rows, z * z / rows
    middle, reach = share + weight / 2, z * float(np.sqrt(share * (1 - share) / rows + weight / (4 * rows)))
    return max(0.0, (middle - reach) / (1 + weight)), min(1.0, (middle + reach) / (1 + weight))

"""Files for the tests of the command line: rows like those of LIBSVM's heart_scale, made here."""

from __future__ import annotations

import numpy as np

from widemargin.cli import main

NAMES = [
    "age",
    "sex",
    "pain",
    "pressure",
    "sugar",
    "ecg",
    "rate",
    "angina",
    "oldpeak",
    "slope",
    "vessels",
    "thal",
    "bmi",
]
TOWNS = np.array(["Bern", "Oslo", "Rome"])


def heart(n=270, seed=0, classes=(-1, 1)):
    """270 rows of 13 columns in [-1, 1] with noisy labels."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-1, 1, (n, 13)), 4)
    weights = np.random.default_rng(7).standard_normal((len(classes), 13))
    y = np.array(classes)[np.argmax(X @ weights.T + rng.gumbel(size=(n, len(classes))), axis=1)]
    y[: len(classes)] = classes
    return X, y


def svmlight(X, y, first=1):
    """Text with every number, so that each row has the same columns."""
    rows = zip(X.tolist(), y.tolist(), strict=True)
    lines = (" ".join([f"{label:+d}", *(f"{j}:{x}" for j, x in enumerate(row, first))]) for row, label in rows)
    return "\n".join(lines) + "\n"


def towns(n, seed=0):
    """A column of text."""
    return TOWNS[np.random.default_rng(seed + 100).integers(3, size=n)]


def table(X, y, order=None, seed=0, words=("no", "yes")):
    """CSV: the numbers by name, a town, and the label `disease` in words; the columns in another order if asked for."""
    words = np.where(y > 0, words[1], words[0])
    columns = {name: [str(x) for x in X[:, j]] for j, name in enumerate(NAMES)}
    columns |= {"town": towns(len(X), seed).tolist(), "disease": words.tolist()}
    names = list(columns) if order is None else [list(columns)[k] for k in order]
    lines = [",".join(names), *(",".join(columns[name][i] for name in names) for i in range(len(X)))]
    return "\n".join(lines) + "\n"


def run(*arguments):
    """The exit code of a command."""
    try:
        return main([str(one) for one in arguments])
    except SystemExit as end:  # argparse's way to end
        return end.code

"""scikit-learn's own tests of SVC, as they are installed with it, run on KernelSVM through a thin translation.

Every function of test_svm.py and test_sparse.py that mentions SVC is run, in all its parametrisations, but for those
listed below: some are of what KernelSVM does not have, some fail because of a convention of ours, and must.
"""

import importlib
import inspect
import itertools
import re
import types
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from widemargin import KernelSVM

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # marks that only scikit-learn's own configuration knows
    try:
        MODULES = [importlib.import_module(f"sklearn.svm.tests.{name}") for name in ("test_svm", "test_sparse")]
    except ImportError:
        pytest.skip("this build of scikit-learn comes without its tests", allow_module_level=True)

#: scikit-learn's fixture of that name; it tests with this seed where no other is asked for.
SEED = 42
#: The other machines of sklearn.svm.
OTHERS = tuple(
    value for name, value in vars(sklearn.svm).items() if isinstance(value, type) and value is not sklearn.svm.SVC
)

LEFT_OUT = {
    "test_probability": "probabilities are not part of KernelSVM",
    "test_hasattr_predict_proba": "probabilities are not part of KernelSVM",
    "test_probability_raises_futurewarning": "probabilities are not part of KernelSVM",
    "test_svc_nusvc_probA_probB_deprecated": "probabilities are not part of KernelSVM",
    "test_tweak_params": "writes into a private attribute that LIBSVM predicts from",
    "test_svc_raises_error_internal_representation": "writes into a private attribute that LIBSVM predicts from",
}
WEIGHTS = "a negative sample weight is a mistake and refused, with its place; LIBSVM leaves the row out"
ROUNDS = "max_iter counts rounds of many steps, of which these six rows need one; warnings name the gap and what to do"
#: The lists are made for this version; of others, what is listed as different is skipped.
VERSION = "1.9."
#: Functions that must fail, all their cases or those that `when` is true of: what the failure says, and why it is so.
DIFFERENT = {
    "test_negative_sample_weights_mask_all_samples": (
        "at least one non-zero number|weights must be at least 0",
        "scikit-learn refuses weights that are all 0 in other words; " + WEIGHTS,
        None,
    ),
    "test_negative_weights_svc_leave_just_one_label": ("weights must be at least 0", WEIGHTS, None),
    "test_negative_weights_svc_leave_two_labels": (
        "weights must be at least 0",
        WEIGHTS,
        lambda case: min(case["sample_weight"]) < 0,
    ),
    "test_negative_weight_equal_coeffs": (
        "weights must be at least 0",
        WEIGHTS,
        lambda case: min(case["sample_weight"]) < 0,
    ),
    "test_bad_input": (
        "DID NOT RAISE",
        "sparse rows are predicted whatever the model was trained on, as by the linear estimators",
        None,
    ),
    "test_svc_nonfinite_params": (
        r"X.var\(\) is (nan|inf); scale the columns",
        "numbers near 1e308 are refused too, but by what is wrong with them rather than by what would come of it",
        None,
    ),
    "test_libsvm_convergence_warnings": ("DID NOT WARN", ROUNDS, None),
    "test_timeout": ("DID NOT WARN", ROUNDS, None),
    "test_custom_kernel_not_array_input": (
        "assert 0.8 == 1.0",
        "its kernel is right only for all rows of the training, and KernelSVM keeps and passes the support vectors",
        None,
    ),
    "test_unsorted_indices": (
        "rtol=1e-12, atol=1e-14",
        "dense and sparse inner products round differently, which w of 64 columns shows in its 13th digit",
        None,
    ),
}


class SVC(ClassifierMixin, BaseEstimator):
    """SVC's parameters and attributes in terms of KernelSVM's. `predict_proba` stands in for functions that compare it
    with itself: it returns the scores.
    """

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
    ):
        for name, value in vars().copy().items():
            if name != "self":
                setattr(self, name, value)

    def fit(self, X, y, sample_weight=None):
        """Trains a machine of these parameters; shrinking and probability have no counterpart."""
        given = {name: value for name, value in self.get_params().items() if name not in ("shrinking", "probability")}
        self.machine_ = Machine(**{**given, "max_iter": None if self.max_iter < 0 else self.max_iter})
        self.machine_.fit(X, y, sample_weight)
        self.sparse_ = sp.issparse(X)
        return self

    def _fitted(self):
        return vars(self).get("machine_") or Machine()

    def predict(self, X):
        """Its classes."""
        return self._fitted().predict(X)

    def decision_function(self, X):
        """Its scores."""
        return self._fitted().decision_function(X)

    @available_if(lambda self: self.probability)
    def predict_proba(self, X):
        """Its scores."""
        return self._fitted().decision_function(X)

    def __getattr__(self, name):
        if name.startswith("__") or not name.endswith("_") or "machine_" not in vars(self):
            raise AttributeError(name)
        return getattr(self.machine_, name)

    @property
    def dual_coef_(self):
        """SVC's is sparse after sparse rows."""
        return sp.csr_matrix(self.machine_.dual_coef_) if self.sparse_ else self.machine_.dual_coef_

    @property
    def coef_(self):
        """SVC's is sparse after sparse rows."""
        return sp.csr_matrix(self.machine_.coef_) if self.sparse_ else self.machine_.coef_

    @property
    def n_iter_(self):
        """SVC has a number for each pair of classes."""
        history = self.machine_.history_
        return np.array([one[-1].iteration for one in (history if isinstance(history[0], list) else [history])])

    @property
    def _gamma(self):
        return self.machine_.kernel_.gamma


#: KernelSVM, which messages call SVC.
Machine = type("SVC", (KernelSVM,), {})


#: sklearn.svm with our SVC.
OURS = types.SimpleNamespace(**{**vars(sklearn.svm), "SVC": SVC})


def functions():
    """Those that mention SVC, by name and module."""
    for module in MODULES:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = name.startswith("test_") and function.__module__ == module.__name__
            if own and re.search(r"\bSVC\b", inspect.getsource(function)):
                yield name, module, function


def translated(value):
    """An argument of a parametrisation: SVC is ours; other machines are none of this."""
    if value is sklearn.svm.SVC:
        return SVC
    if type(value) is sklearn.svm.SVC:
        return SVC(**{name: one for name, one in value.get_params().items() if name != "probability"})
    return value


def cases(function):
    """All its parametrisations that are not about other machines."""
    choices = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args[:2]
            names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
            rows = [getattr(row, "values", row) if hasattr(row, "marks") else row for row in values]
            rows = [(row,) if len(names) == 1 and not hasattr(row, "marks") else tuple(row) for row in rows]
            rows = [
                row for row in rows if not any(one is other or type(one) is other for one in row for other in OTHERS)
            ]
            choices.append([dict(zip(names, map(translated, row), strict=True)) for row in rows])
    for chosen in itertools.product(*choices):
        yield {name: value for one in chosen for name, value in one.items()}


ALL = [
    pytest.param(module, function, case, id=f"{module.__name__.split('.')[-1]}-{name}-{number}")
    for name, module, function in functions()
    if name not in LEFT_OUT
    for number, case in enumerate(cases(function))
]


@pytest.mark.parametrize(("module", "function", "case"), ALL)
def test_svc(module, function, case, monkeypatch):
    """scikit-learn's own assertions about SVC hold for KernelSVM; those listed as different fail as the list says."""
    for name in ("svm", "SVC"):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, OURS if name == "svm" else SVC)
    if "global_random_seed" in inspect.signature(function).parameters:
        case = {**case, "global_random_seed": SEED}
    message, reason, when = DIFFERENT.get(function.__name__, ("", "", None))
    fails = message and (when is None or when(case))
    if fails and not sklearn.__version__.startswith(VERSION):
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if fails:
            with pytest.raises((AssertionError, ValueError, pytest.fail.Exception), match=message):
                function(**case)
        else:
            function(**case)


def test_the_list_is_complete():
    """Every function of the two modules that mentions SVC is run, in at least one case, or listed with its reason; what
    is listed is there, in the version that the list was made for.
    """
    names = {name for name, _, _ in functions()}
    run = {parameters.values[1].__name__ for parameters in ALL}
    assert run | LEFT_OUT.keys() >= names
    assert not run & LEFT_OUT.keys()
    assert len(names) > 25
    if sklearn.__version__.startswith(VERSION):
        assert LEFT_OUT.keys() | DIFFERENT.keys() <= names

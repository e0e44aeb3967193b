"""ESTIMATOR: the scikit-learn face."""

from widemargin.estimators.certifying import certify
from widemargin.estimators.linear_svm import LinearSVM
from widemargin.estimators.logistic_regression import LogisticRegression

__all__ = ["LinearSVM", "LogisticRegression", "certify"]

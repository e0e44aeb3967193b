"""ESTIMATOR: the scikit-learn face."""

from widemargin.estimators.certifying import certify
from widemargin.estimators.kernel_grids import KernelGrid, kernel_grid
from widemargin.estimators.kernel_svm import IndefiniteKernelWarning, KernelSVM
from widemargin.estimators.least_squares_classifier import LeastSquaresClassifier
from widemargin.estimators.linear_svm import LinearSVM
from widemargin.estimators.logistic_regression import LogisticRegression
from widemargin.estimators.mira import MIRA
from widemargin.estimators.paths import Path, path
from widemargin.estimators.perceptron import Perceptron

__all__ = [
    "MIRA",
    "IndefiniteKernelWarning",
    "KernelGrid",
    "KernelSVM",
    "LeastSquaresClassifier",
    "LinearSVM",
    "LogisticRegression",
    "Path",
    "Perceptron",
    "certify",
    "kernel_grid",
    "path",
]

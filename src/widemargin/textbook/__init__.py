"""TEXTBOOK: the lecture notes' algorithms as the notes write them, in plain NumPy, one to a file.

Each is a generator that yields its whole state, a `Step`, after every step. X is a dense array, the labels y are ±1;
the random choices are the caller's, who passes the examples as `draws`. Nothing here is fast or proved: for that there
are the solvers. `perceptron`, `dual_cd` and `smo` take a kernel in place of the inner product, `hildreth` its matrix;
the usual ones stand in `kernels.py`, the slopes at a kink in `subdifferential.py`.
"""

from widemargin.textbook.dual_cd import dual_cd
from widemargin.textbook.gradient_descent import gradient_descent
from widemargin.textbook.hildreth import hildreth
from widemargin.textbook.least_squares import least_squares, least_squares_sgd
from widemargin.textbook.logistic_regression import logistic_regression, logistic_regression_sgd
from widemargin.textbook.mira import mira
from widemargin.textbook.pegasos import pegasos
from widemargin.textbook.perceptron import perceptron
from widemargin.textbook.running_sum import running_sum
from widemargin.textbook.smo import smo
from widemargin.textbook.step import Step
from widemargin.textbook.stochastic_gradient import stochastic_gradient
from widemargin.textbook.subgradient_descent import online_subgradient, subgradient_descent
from widemargin.textbook.svm_sgd import svm_sgd
from widemargin.textbook.tikhonov import tikhonov

__all__ = [
    "Step",
    "dual_cd",
    "gradient_descent",
    "hildreth",
    "least_squares",
    "least_squares_sgd",
    "logistic_regression",
    "logistic_regression_sgd",
    "mira",
    "online_subgradient",
    "pegasos",
    "perceptron",
    "running_sum",
    "smo",
    "stochastic_gradient",
    "subgradient_descent",
    "svm_sgd",
    "tikhonov",
]

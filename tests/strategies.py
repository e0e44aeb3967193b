"""Hypothesis strategies: losses and small problems of every kind."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from oracles import KERNELS, make_kernel_problem, make_problem
from widemargin.losses import LOSSES

losses = st.sampled_from(list(LOSSES.values()))
margins = st.floats(-50, 50)
strengths = st.floats(-3, 3).map(lambda exponent: 10.0**exponent)


@st.composite
def problems(draw, loss=None):
    """2 to 25 rows, 1 to 5 columns; duplicate, empty and weightless rows, unequal strengths and scales among them."""
    n, d = draw(st.integers(2, 25)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, d)) * 10 ** rng.uniform(-1, 1, d)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1, -1
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]
    if draw(st.booleans()):
        X[-1] = 0
    c = draw(strengths) * 10 ** rng.uniform(-0.5, 0.5, n)
    if draw(st.booleans()):
        c[2::3] = 0
    name = draw(st.sampled_from(list(LOSSES))) if loss is None else loss
    return make_problem(X, y, c, name, draw(st.booleans()))


@st.composite
def primal_points(draw, problem):
    """Any w and b."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** draw(st.integers(-3, 2))
    w = scale * rng.standard_normal(problem.rows.d)
    return w, scale * rng.standard_normal() if problem.fit_intercept else 0.0


@st.composite
def dual_points(draw, problem):
    """Any α, within its bounds or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return problem.c * rng.uniform(-0.5, 1.5, len(problem.c))


@st.composite
def kernel_problems(draw):
    """2 to 25 rows ≥ 0, every semidefinite kernel; duplicate, empty and weightless rows among them."""
    n, d = draw(st.integers(2, 25)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.exponential(size=(n, d)) * 10 ** rng.uniform(-1, 1, d)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1, -1
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]
    if draw(st.booleans()):
        X[-1] = 0
    c = draw(strengths) * 10 ** rng.uniform(-0.5, 0.5, n)
    if draw(st.booleans()):
        c[2::3] = 0
    kernel = KERNELS[draw(st.sampled_from([name for name, one in KERNELS.items() if one.semidefinite]))]
    return make_kernel_problem(kernel, X, y, c)

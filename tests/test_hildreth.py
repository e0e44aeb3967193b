"""The public QP function."""

from itertools import pairwise

import numpy as np
import pytest

from widemargin import hildreth

ORDERS = ["cyclic", "back_and_forth", "random", "greedy"]
EXAMPLE = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([-6.0, -4.0])


def random_qp(n, rank, seed):
    """A positive semidefinite Q of that rank and a b for which the maximum is finite."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank, n))
    return A.T @ A, A.T @ rng.standard_normal(rank) - 0.3 * rng.random(n) * (rank == n)


def test_the_path_of_the_first_four_steps_by_hand():
    """6/4; (4 − 1.5)/2; (6 − 1.25)/4; (4 − 1.1875)/2."""
    path = [hildreth(*EXAMPLE, max_steps=steps).alpha.tolist() for steps in (1, 2, 3, 4)]
    assert path == [[1.5, 0.0], [1.5, 1.25], [1.1875, 1.25], [1.1875, 1.40625]]


@pytest.mark.parametrize("order", ORDERS)
def test_the_example_of_001(order):
    """α = (8/7, 10/7), where both slopes are 0, and nothing can change any more."""
    found = hildreth(*EXAMPLE, order=order)
    assert found.alpha == pytest.approx([8 / 7, 10 / 7], rel=1e-15)
    assert found.objective == pytest.approx(44 / 7)
    assert found.violation <= 1e-14
    assert found.stopped == "no change"


@pytest.mark.parametrize("upper", [np.inf, 0.4])
@pytest.mark.parametrize("rank", [8, 5])
def test_all_orders_agree(rank, upper):
    """Positive definite: the same α; singular: the same Qα and objective, to 1e-10."""
    Q, b = random_qp(8, rank, seed=rank)
    found = [hildreth(Q, b, order=order, upper=upper, max_steps=2_000_000) for order in ORDERS]
    for other in found:
        assert other.violation <= 1e-10
        assert Q @ other.alpha == pytest.approx(Q @ found[0].alpha, abs=1e-10)
        assert other.objective == pytest.approx(found[0].objective, abs=1e-10)
        if rank == 8:
            assert other.alpha == pytest.approx(found[0].alpha, abs=1e-10)


@pytest.mark.parametrize("order", ORDERS)
def test_every_step_ascends(order):
    """The objective never falls, and never leaves the box."""
    Q, b = random_qp(6, 6, seed=1)
    steps = [hildreth(Q, b, order=order, upper=0.5, max_steps=k) for k in range(1, 40)]
    assert all(later.objective >= sooner.objective - 1e-15 for sooner, later in pairwise(steps))
    assert all(((one.alpha >= 0) & (one.alpha <= 0.5)).all() for one in steps)


def test_three_stops():
    """Nothing changes, the increase is at most tol, the steps are used up."""
    Q, b = random_qp(30, 30, seed=2)
    assert hildreth(Q, b, max_steps=7).stopped == "max_steps"
    assert hildreth(Q, b, max_steps=7).steps == 7
    split = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    assert hildreth(split, -np.ones(3), max_steps=4).stopped == "max_steps"  # one visit of a sweep tells nothing
    early = hildreth(Q, b, tol=1e-3)
    assert early.stopped == "tol"
    assert early.steps < hildreth(Q, b).steps


def test_one_variable_and_the_seed():
    """n = 1 in every order; permutations depend on the seed alone."""
    for order in ORDERS:
        assert hildreth([[2.0]], [-3.0], order=order).alpha.tolist() == [1.5]
    Q, b = random_qp(9, 9, seed=3)
    first, again, other = (hildreth(Q, b, order="random", max_steps=9, seed=seed).alpha for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_flat_coordinate_goes_to_the_end_of_its_box():
    """Qᵢᵢ = 0: a straight line in αᵢ."""
    found = hildreth([[1.0, 0.0], [0.0, 0.0]], [-1.0, -2.0], upper=[5.0, 3.0])
    assert found.alpha.tolist() == [1.0, 3.0]
    assert hildreth([[0.0]], [2.0]).alpha.tolist() == [0.0]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1.0, 2.0]], [1.0]), {}, r"Q has shape \(1, 2\); it must be a square matrix"),
        ((np.zeros((0, 0)), []), {}, "at least one row"),
        (([[1.0]], [1.0, 2.0]), {}, r"b has shape \(2,\); Q wants \(1,\)"),
        (([[np.nan]], [1.0]), {}, "NaN or infinity"),
        (([[1.0, 2.0], [0.0, 1.0]], [1.0, 1.0]), {}, r"not symmetric; \(Q \+ Q.T\) / 2"),
        (([[1.0, 2.0], [2.0, 1.0]], [1.0, 1.0]), {}, "not positive semidefinite, its lowest eigenvalue is -1"),
        (([[1.0]], [1.0]), {"upper": -1.0}, r"upper\[0\] is -1: the box 0 ≤ α ≤ upper is empty"),
        (([[1.0]], [1.0]), {"upper": [1.0, 2.0]}, r"upper has shape \(2,\); give one number or 1"),
        (([[1.0]], [1.0]), {"upper": np.nan}, "is empty; give an upper ≥ 0"),
        (([[0.0]], [-1.0]), {}, "without bound along a coordinate .* give a finite upper"),
        (([[1.0]], [1.0]), {"order": "spiral"}, "choose from 'cyclic', 'back_and_forth', 'random', 'greedy'"),
        (([[1.0]], [1.0]), {"tol": -1.0}, "tol=-1.0"),
        (([[1.0]], [1.0]), {"max_steps": 0}, "max_steps=0"),
        (([[1.0]], [1.0]), {"max_steps": 2.5}, "max_steps=2.5"),
    ],
)
def test_hildreth_refuses(arguments, options, message):
    """Each error names the argument and what may be given instead."""
    with pytest.raises(ValueError, match=message):
        hildreth(*arguments, **options)

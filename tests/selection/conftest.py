"""The small problem of the selector's tests."""

import pytest
import zoo


@pytest.fixture
def problem():
    return zoo.source()


@pytest.fixture
def truth(problem):
    return problem.parameters.field([1.0, -0.5, 0.25])


@pytest.fixture
def data(problem, truth):
    return problem.simulate(truth, noise=0.02, seed=1)

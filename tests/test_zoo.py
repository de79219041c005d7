"""The candidates of the zoo are what their names say, for every problem."""

import numpy as np
import pytest
import zoo


def misfit(problem, candidate):
    """In noise levels."""
    data = zoo.data(problem)
    return np.linalg.norm(problem.predict(candidate.state, candidate.parameter) - data.values) / data.noise_level


@pytest.mark.parametrize("name", zoo.PROBLEMS)
def test_what_the_data_say_of_the_candidates(name):
    problem = zoo.PROBLEMS[name]()
    assert misfit(problem, zoo.solved(problem)) == pytest.approx(1.0, rel=1e-6)
    assert misfit(problem, zoo.misfitting(problem)) > 3.0
    assert misfit(problem, zoo.hallucinated(problem)) == pytest.approx(1.0, abs=0.12)


@pytest.mark.parametrize("name", [name for name in zoo.PROBLEMS if name != "tomography"])
def test_only_one_candidate_misses_the_equation(name):
    problem = zoo.PROBLEMS[name]()
    good, bad = (
        np.linalg.norm(problem.residual(found.state, found.parameter)[problem.free])
        for found in (zoo.solved(problem), zoo.unsolved(problem))
    )
    assert good < 1e-9 * bad

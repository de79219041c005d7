"""``lower <= dual norm <= upper`` on hundreds of random problems whose answer is known exactly, and how close they are.

For a state with the right Dirichlet values the dual norm in the energy norm is the energy error, and the solutions are
polynomials.
"""

from itertools import pairwise

import numpy as np
import pytest
from exact_cases import build, draw
from exact_lines import LineCase

import femcert as fc

# Batches of seeds by element. On stretched domains (aspect 10 to 50, a few dozen elements) with data of degree 4 the
# oscillation of the data can dominate.
BATCHES = [("P1", i) for i in range(3)] + [("P2", i) for i in range(2)] + [(Q, i) for Q in ("Q1", "Q2") for i in (0, 1)]
SIZE = 28
# Medians of upper / truth over all states, and over Galerkin solutions on domains that are not stretched.
MEDIAN = {"P1": 1.08, "P2": 1.02, "Q1": 1.08, "Q2": 1.02}
GALERKIN = {"P1": 1.2, "P2": 1.3, "Q1": 1.3, "Q2": 1.3}
WORST, WORST_STRETCHED = 2.5, 100.0


@pytest.mark.parametrize(("element", "batch"), BATCHES)
def test_bounds_enclose_the_energy_error_closely(element, batch):
    over, under, galerkin = [], [], []
    for seed in range(SIZE * batch, SIZE * (batch + 1)):
        case, state, words = draw(element, seed)
        truth = case.error(state)
        result = fc.dual_norm(case.problem, case.candidate(state))
        assert (result.upper.side, result.lower.side) == ("upper", "lower"), (words, result.upper)
        assert result.lower.value <= truth * (1.0 + 1e-9), words
        assert truth <= result.upper.value * (1.0 + 1e-12), words
        ratio = result.upper.value / truth
        assert ratio <= (WORST_STRETCHED if "stretched" in words else WORST), (words, ratio)
        over.append(ratio)
        under.append(result.lower.value / truth)
        if words.endswith("galerkin") and "stretched" not in words:
            galerkin.append(ratio)
    assert np.median(galerkin) <= GALERKIN[element], np.sort(galerkin)
    assert np.median(over) <= MEDIAN[element], np.sort(over)
    assert np.median(under) >= 0.97, np.sort(under)
    assert np.quantile(under, 0.1) >= 0.85, np.sort(under)


@pytest.mark.parametrize("element", ["P1", "P2"])
def test_on_lines_both_bounds_are_the_energy_error_to_ten_digits(element):
    for seed in range(45):
        case = LineCase(element, seed)
        truth = case.error()
        result = fc.dual_norm(case.problem, fc.Candidate(case.state, case.parameter))
        assert (result.upper.side, result.lower.side) == ("upper", "lower"), case.name
        # No slack towards the truth: the bounds allow 1e-12 for their own rounding, that of the truth is 1e-15.
        assert truth * (1.0 - 1e-10) <= result.lower.value <= truth, case.name
        assert truth <= result.upper.value <= truth * (1.0 + 1e-10), case.name


@pytest.mark.parametrize("element", ["P1", "P2", "Q1", "Q2"])
@pytest.mark.parametrize("coefficient", ["constant", "linear"])
def test_without_an_error_the_bounds_are_next_to_zero(element, coefficient):
    rng = np.random.default_rng(7)
    # Without bubble the solution belongs to the trial space.
    case = build(rng, element, coefficient, "dirichlet", reaction=2.0, bubble=0.0)
    state = case.state("exact", rng)
    size = fc.dual_norm(case.problem, case.candidate(0.0 * state + case.problem.boundary.values)).upper.value
    result = fc.dual_norm(case.problem, case.candidate(state))
    # Where 1 / a or 1 / det J is no polynomial, what quadrature may miss of the state remains.
    exact = "quadrature exact" in result.upper.source
    assert 0.0 < result.upper.value <= (1e-12 if exact else 3e-3) * size, (result.upper, size)
    assert result.lower.value <= 1e-12 * size


@pytest.mark.parametrize("seed", range(4))
def test_more_steps_never_hurt_and_none_are_needed(seed):
    case, state, words = draw("P1", seed)
    truth = case.error(state)
    bounds = [fc.dual_norm(case.problem, case.candidate(state), steps=n).upper.value for n in (0, 1, 3, 30)]
    assert min(bounds) >= truth, words
    assert all(b <= a * (1.0 + 1e-6) for a, b in pairwise(bounds)), (words, bounds)

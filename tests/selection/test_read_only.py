"""The arrays of a problem, its data and its candidates are read-only, and each candidate is certified once."""

import numpy as np
import pytest
import zoo
from selector_helpers import BASELINE, RULE, select
from zoo import solved

import femcert as fc
from femcert.certificate.weighted import WeightedJudge

ARRAYS = {
    "residual mass": lambda p: p.residual_mass.data,
    "boundary values": lambda p: p.boundary.values,
    "boundary mass": lambda p: p.boundary.mass.data,
    "free dofs": lambda p: p.free,
    "prescribed dofs": lambda p: p.boundary.prescribed,
    "offset": lambda p: p.offset,
    "gram": lambda p: p.parameters.gram,
    "root": lambda p: p.parameters.root,
    "weight": lambda p: p.parameters.weight.data,
    "space": lambda p: p.parameters.matrix,
    "sensors": lambda p: p.sensors.matrix.data,
    "forward": lambda p: p.forward_matrix(),
    "operator": lambda p: p.operator.data,
    "load": lambda p: p.load.data,
    "source": lambda p: p.source,
}


@pytest.mark.parametrize("level", [0.0, 1.0])
@pytest.mark.parametrize("name", ARRAYS)
def test_no_array_of_the_problem_is_written_to_by_accident(name, level):
    array = ARRAYS[name](zoo.source(dirichlet=level))
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0


def test_nor_data_or_candidates(problem, data, truth):
    def learned(p, d):
        d.values[...] = 0.0

    before = data.values.copy()
    assert "read-only" in select(problem, data, learned).reason
    np.testing.assert_array_equal(data.values, before)
    candidate = solved(problem, truth)
    for array in (candidate.state, candidate.parameter):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0


def test_a_baseline_is_what_it_was_when_it_was_certified(problem, data, truth):
    base = BASELINE(problem, data)
    before = fc.Candidate(base.state, base.parameter, base.optimality)

    def learned(p, d):
        base._parameter, base.name = truth, "mine"
        return fc.Candidate.from_coefficients(p, [30.0, -30.0, 30.0], optimality=0.0)

    found = select(problem, data, learned, baseline=base)
    assert found.accepted is False
    np.testing.assert_array_equal(found.parameter, before.parameter)
    assert found.baseline.radius == fc.certify(problem, data, before, RULE).radius


def test_two_certificates_for_two_candidates(problem, data, truth, monkeypatch):
    made, certify = [], WeightedJudge.certify

    def counted(self, candidate):
        made.append(candidate.name)
        return certify(self, candidate)

    monkeypatch.setattr(WeightedJudge, "certify", counted)
    assert select(problem, data, lambda p, d: solved(p, truth)).accepted
    assert made == ["baseline", "learned"]

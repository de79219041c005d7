"""What the tests of the selector share: a small problem, a selection, and what a fallback promises."""

import json

import numpy as np
from skfem import Basis, ElementLineP1, MeshLine

import femcert as fc

RULE = fc.OperationalRadius(pde=0.01, optimality=0.1)
BASELINE = fc.Tikhonov(weight=1e-3)


def line(n=20, k=3, m=6, **options):
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, n + 1)), ElementLineP1())
    sensors = fc.PointSensors(basis, np.linspace(0.1, 0.9, m))
    return fc.EllipticSource(basis, parameters=fc.SineSpace(basis, k), sensors=sensors, **options)


def select(problem, data, learned, rule=RULE, baseline=BASELINE, **options):
    return fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule, **options)


def check_fallback(problem, data, learned, *words, usable=False, **options):
    """Run a selection that must fall back, and check everything that a fallback promises."""
    fresh = BASELINE(line(), data) if type(problem) is fc.EllipticSource else None
    found = select(problem, data, learned, **options)
    assert found.accepted is False
    assert found.reason
    for word in words:
        assert word in found.reason, found.reason
    if not usable:
        assert found.learned is None
        assert found.ratio is None
    assert found.baseline is not None
    if fresh is not None:
        np.testing.assert_allclose(found.parameter, fresh.parameter, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.state, fresh.state, rtol=0, atol=1e-12)
    str(found)
    return found


def good(problem, truth, **options):
    return fc.Candidate(problem.solve(truth), truth, 0.0, **options)


def rewritten(selection, path, change):
    """The file of a selection after `change` has been at its record, without a digest as in older files."""
    selection.save(path)
    record = json.loads(path.read_text())
    del record["digest"]
    change(record)
    path.write_text(json.dumps(record))
    return path


class OwnError(Exception):
    pass


def _shared():
    problem = line()
    truth = problem.parameters.field([1.0, -0.5, 0.25])
    return problem, problem.simulate(truth, noise=0.02, seed=1), truth


SHARED = _shared()

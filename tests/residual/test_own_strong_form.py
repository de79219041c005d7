"""A problem of the user's own that offers `strong()` is certified like the shipped one with the same equation."""

import numpy as np
import pytest
from skfem import Basis, ElementTriRT1
from zoo import OwnSource, source, unit_basis

import femcert as fc
from femcert.residual import evaluate

ELEMENTS = {"line P1": 10, "tri P1": 4, "tri P2": 3, "bent quad Q1": 4}
A = fc.Polynomial(lambda x: 1.0 + 0.5 * x[0], 1)
C = 2.0


def pair(name):
    """The shipped problem and the own one, and a candidate that is not a solution."""
    basis = unit_basis(name, ELEMENTS[name])
    sides = {"dirichlet": {"left": 0.0}, "robin": {"right": (1.0, 0.5)}}
    shipped = source(basis, conductivity=A, reaction=C, parameters=(fc.CosineSpace, 3), **sides)
    given = {"parameters": shipped.parameters, "sensors": shipped.sensors}
    own = OwnSource(basis, a=A, c=C, known=0.0, **given, **sides)
    q = shipped.parameters.field([1.0, 0.3, -0.2])
    u = shipped.solve(q) + 0.01 * np.sin(3.0 * np.arange(basis.N)) * (basis.doflocs[0] > 0.0)
    return shipped, own, fc.Candidate(u, q)


def same(first, second):
    """Two bounds to rounding, with side and source."""
    return (first.side, first.source) == (second.side, second.source) and first.value == pytest.approx(
        second.value, rel=1e-9
    )


@pytest.mark.parametrize("norm", ["energy", "h1"])
@pytest.mark.parametrize("method", ["equilibrated", "enriched", "riesz", "indicator"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_dual_norms_are_those_of_the_shipped_problem(name, method, norm):
    shipped, own, candidate = pair(name)
    first, second = (fc.dual_norm(problem, candidate, method, norm=norm) for problem in (shipped, own))
    assert same(first.best, second.best)
    assert method == "indicator" or same(first.lower, second.lower)
    assert second.indicators == pytest.approx(first.indicators, rel=1e-8, abs=1e-12)
    if method == "equilibrated":
        assert (second.upper.side, second.lower.side) == ("upper", "lower")


@pytest.mark.parametrize("name", ELEMENTS)
def test_so_are_the_components_of_a_candidate(name):
    shipped, own, candidate = pair(name)
    data = shipped.simulate(candidate.parameter, noise=0.01)
    moved = fc.Candidate(candidate.state + 0.1, candidate.parameter)
    assert same(fc.boundary_norm(shipped, moved.state), fc.boundary_norm(own, moved.state))
    first, second = (evaluate(p, data, moved, pde_norm="equilibrated") for p in (shipped, own))
    for (component, one), (_, other) in zip(first.items(), second.items(), strict=True):
        assert same(one, other), component
    first, second = (fc.kkt_residual(p, data, candidate, weight=0.1) for p in (shipped, own))
    assert same(first.total, second.total)


def test_a_flux_from_elsewhere_is_checked_for_it_too():
    shipped, own, candidate = pair("tri P1")
    basis = Basis(shipped.basis.mesh, ElementTriRT1())
    flux = basis, np.zeros(basis.N)
    first, second = (fc.flux_majorant(problem, candidate, flux).bound for problem in (shipped, own))
    assert first.side == "upper"
    assert same(first, second)


@pytest.mark.parametrize("method", ["equilibrated", "enriched", "indicator"])
def test_without_a_strong_form_there_is_no_such_bound(method):
    shipped, own, candidate = pair("tri P1")
    given = {"parameters": shipped.parameters, "sensors": shipped.sensors}
    mute = fc.LinearProblem(shipped.basis, operator=own.operator, definite=True, **given)
    for bound in (lambda: fc.dual_norm(mute, candidate, method), lambda: fc.flux_majorant(mute, candidate, None)):
        with pytest.raises(fc.UncertifiedError, match="strong form"):
            bound()


@pytest.mark.parametrize("wrong", ["number", "boundary", "field", "unknown", "given"])
def test_a_strong_form_that_contradicts_the_forms_is_refused(wrong):
    class Wrong(fc.EllipticSource):
        def strong(self, parameter):
            right = super().strong(parameter)
            parts = [right.conductivity, right.reaction, right.source, right.boundary]
            if wrong == "number":
                return 1.0
            if wrong == "boundary":
                parts[3] = fc.EllipticSource(self.basis, parameters=self.parameters, sensors=self.sensors).boundary
            if wrong == "given":
                parts[2] = fc.Given(1.0, "source")
            if wrong == "field":
                parts[0] = 1.0
            return fc.StrongForm(*parts, "Source" if wrong == "unknown" else "source")

    basis = unit_basis("tri P1", 4)
    problem = Wrong(basis, parameters=fc.SineSpace(basis, 2), sensors=fc.PointSensors(basis, [[0.4, 0.4], [0.6, 0.3]]))
    with pytest.raises(fc.InputError):
        fc.dual_norm(problem, fc.Candidate.from_coefficients(problem, [1.0, 0.5]))

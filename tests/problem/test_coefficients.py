"""Coefficients at quadrature points: four ways to say the same, and what is refused."""

import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from skfem import Basis, ElementLineP1, ElementTriP1, MeshLine
from zoo import unit_mesh

import femcert as fc
from femcert.mesh.sample import Points
from femcert.problem.coefficients import at_points, at_quadrature


def halves(n=4):
    mesh = unit_mesh("tri", n).with_subdomains(
        {"west": lambda x: x[0] < 0.5, "east": lambda x: x[0] > 0.5, "all": lambda x: x[0] > -1.0}
    )
    return Basis(mesh, ElementTriP1())


@settings(deadline=None, max_examples=25)
@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_four_ways(west, east):
    basis = halves()
    is_west = basis.mesh.p[0, basis.mesh.t].mean(axis=0) < 0.5
    per_element = np.where(is_west, west, east)
    expected = np.repeat(per_element[:, None], basis.dx.shape[1], axis=1)
    ways = [per_element, {"west": west, "east": east}, lambda x: np.where(x[0] < 0.5, west, east)]
    for value in ways:
        found = at_quadrature(value, basis, "a")
        assert found.shape == basis.dx.shape
        assert np.array_equal(found, expected)
    assert np.all(at_quadrature(west, basis, "a") == west)
    assert np.all(at_quadrature(lambda x: west, basis, "a") == west)


def test_a_table_of_functions():
    basis = halves()
    x = np.asarray(basis.global_coordinates())
    table = {"west": lambda x: x[0] * x[1], "east": 3.0}
    expected = np.where(x[0] < 0.5, x[0] * x[1], 3.0)
    np.testing.assert_array_equal(at_quadrature(table, basis, "a"), expected)
    cells, points = np.array([3, 17, 30]), x[:, [3, 17, 30], 1]
    np.testing.assert_array_equal(at_points(table, Points(basis.mesh, points, cells), "a"), expected[[3, 17, 30], 1])


def test_a_table_of_functions_is_the_same_equation_for_the_bounds():
    basis, ramp = halves(8), fc.Polynomial(lambda x: 1.0 + x[0], 1)
    reaction = {"west": 0.5, "east": 1.0}
    made = [
        zoo.source(basis, parameters=fc.FullSpace, conductivity=a, reaction=reaction)
        for a in (ramp, {"west": ramp, "east": ramp})
    ]
    bounds = [fc.dual_norm(p, fc.Candidate(p.solve(np.ones(basis.N)), np.ones(basis.N))) for p in made]
    assert [bound.upper.value for bound in bounds] == [bounds[0].upper.value] * 2
    assert [bound.upper.side for bound in bounds] == ["upper"] * 2


def test_a_table_of_functions_on_a_line_cut_at_its_sensors():
    mesh = MeshLine(np.linspace(0.0, 1.0, 21)).with_subdomains({"a": lambda x: x[0] < 0.5, "b": lambda x: x[0] > 0.5})
    basis, ramp = Basis(mesh, ElementLineP1()), fc.Polynomial(lambda x: 1.0 + x[0], 1)
    common = {"parameters": (fc.RegionSpace, ["a", "b"]), "sensors": [0.22, 0.51, 0.83]}
    made = [zoo.source(basis, conductivity=a, **common) for a in (ramp, {"a": ramp, "b": ramp})]
    constants = [fc.stability(problem, guarantee="continuous").constant.value for problem in made]
    assert constants[0] == pytest.approx(constants[1], rel=1e-12)


@pytest.mark.parametrize(
    ("value", "sign", "message"),
    [
        (0.0, "positive", "a takes the value 0"),
        ({"west": 1.0}, "any", "a is not given on 16 of 32 elements"),
        ({"west": 1.0, "all": 1.0}, "any", "a: subdomain 'all' overlaps"),
        ({"west": 1.0, "est": 1.0}, "any", "region 'est' is not in the mesh.*did you mean"),
        ({"west": 1.0, "east": np.nan}, "any", "a on 'east' has 1 NaN"),
        (np.ones((32, 3)), "any", r"a has shape \(32, 3\)"),
        (np.r_[np.ones(31), np.nan], "any", r"a has 1 NaN or infinite entries, the first at index \(31,\)"),
        (lambda x: x[0][:, 0], "any", r"a returned shape \(32,\) for x of shape \(2, 32, \d+\); expected"),
        ([[1.0], [1.0, 2.0]], "any", "a is not an array of numbers"),
    ],
)
def test_refused(value, sign, message):
    with pytest.raises(fc.InputError, match=message):
        at_quadrature(value, halves(), "a", sign=sign)

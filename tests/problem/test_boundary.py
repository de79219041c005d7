"""Boundary conditions as algebra: prescribed dofs and boundary integrals in closed form; what is refused."""

import numpy as np
import pytest
from skfem import Basis, ElementTriP1, ElementTriP2
from zoo import ELEMENTS, unit_basis, unit_mesh

import femcert as fc
from femcert.problem.boundary import boundary_conditions


@pytest.mark.parametrize("name", ELEMENTS)
def test_default_is_zero_on_the_whole_boundary(name):
    basis = unit_basis(name, 4)
    found = boundary_conditions(basis)
    x = basis.doflocs
    on_boundary = np.any(np.isclose(x, 0.0) | np.isclose(x, 1.0), axis=0)
    assert np.array_equal(found.prescribed, np.flatnonzero(on_boundary))
    assert np.array_equal(found.free, np.flatnonzero(~on_boundary))
    assert not found.values.any()
    assert found.homogeneous
    assert found.operator is None
    assert found.load is None
    ones = np.ones(basis.N)
    # The measure of the boundary: two points, or the perimeter.
    assert ones @ found.mass @ ones == pytest.approx(2.0 if basis.mesh.dim() == 1 else 4.0)


@pytest.mark.parametrize("name", ELEMENTS)
def test_boundary_integrals(name):
    """Load (g, v) and Robin matrix (alpha u, v) tested with polynomials of the element's degree."""
    basis = unit_basis(name, 3)
    p = ELEMENTS[name][2]
    plane = basis.mesh.dim() == 2
    v = basis.doflocs[-1] ** p
    w = 1.0 + basis.doflocs[0]
    found = boundary_conditions(
        basis, dirichlet={}, neumann={"left": lambda x: 2.0 + x[-1]}, robin={"right": (lambda x: 1.0 + x[-1], 0.5)}
    )
    # On the left side x = 0, w = 1; on the right x = 1, w = 2. In 1D, y is x itself.
    left = 2.0 / (p + 1) + 1.0 / (p + 2) if plane else 0.0
    right = 0.5 / (p + 1) if plane else 0.5
    assert v @ found.load == pytest.approx(left + right, abs=1e-14)
    assert w @ found.load == pytest.approx((2.5 if plane else 2.0) + 1.0)
    assert v @ found.operator @ w == pytest.approx(2.0 * (1.0 / (p + 1) + 1.0 / (p + 2) if plane else 2.0))
    # Of degree 2 p + 1 along the side: no rule of lower order will do.
    assert v @ found.operator @ v == pytest.approx(1.0 / (2 * p + 1) + 1.0 / (2 * p + 2) if plane else 2.0)
    assert not found.prescribed.size
    assert not found.homogeneous


def test_dirichlet_elsewhere():
    """A number or function holds wherever no natural condition is named; a mapping only where it says."""
    basis = unit_basis("tri P2", 4)
    x = basis.doflocs
    found = boundary_conditions(
        basis, dirichlet=lambda x: x[0] + 1.0, neumann={"right": 0.0}, robin={"top": (1.0, 0.0)}
    )
    expected = np.isclose(x[0], 0.0) | np.isclose(x[1], 0.0)
    assert np.array_equal(found.prescribed, np.flatnonzero(expected))
    assert np.allclose(found.values, np.where(expected, x[0] + 1.0, 0.0))
    ones = np.ones(basis.N)
    assert ones @ found.mass @ ones == pytest.approx(2.0)
    named = boundary_conditions(basis, dirichlet={"left": 3.0})
    assert np.array_equal(named.prescribed, np.flatnonzero(np.isclose(x[0], 0.0)))
    assert np.all(named.values[named.prescribed] == 3.0)
    assert not named.homogeneous
    everywhere_natural = boundary_conditions(basis, neumann={"left": 0.0, "right": 0.0, "bottom": 0.0, "top": 0.0})
    assert not everywhere_natural.prescribed.size
    assert everywhere_natural.homogeneous


def test_parts_that_meet_in_a_corner_must_agree():
    basis = unit_basis("quad Q1", 4)
    agree = boundary_conditions(basis, dirichlet={"left": lambda x: x[1], "top": lambda x: 1.0 + x[0]})
    corner = np.flatnonzero(np.isclose(basis.doflocs[0], 0.0) & np.isclose(basis.doflocs[1], 1.0))
    assert agree.values[corner] == pytest.approx([1.0])
    with pytest.raises(fc.InputError, match=r"Dirichlet value on 'top' contradicts another part at \[0\.0, 1\.0\]"):
        boundary_conditions(basis, dirichlet={"left": lambda x: x[1], "top": 0.0})
    # Opposite sides do not meet.
    boundary_conditions(basis, dirichlet={"left": 1.0, "right": 2.0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dirichlet": {"lft": 0.0}}, r"boundary 'lft' is not in the mesh.*did you mean 'left'"),
        ({"neumann": {"left": 0.0}, "robin": {"left": (1.0, 0.0)}}, r"\['left'\] is both in neumann and in robin"),
        ({"dirichlet": {"left": 0.0}, "neumann": {"left": 0.0}}, r"'left' and 'dirichlet left' share 3 facets"),
        ({"dirichlet": {"left": 0.0, "west": 0.0}}, r"'dirichlet left' and 'dirichlet west' share 2 facets"),
        ({"robin": {"left": (-0.1, 0.0)}}, r"Robin coefficient on 'left' takes -0\.1"),
        ({"robin": {"left": 1.0}}, r"robin\['left'\] is 1\.0"),
        ({"robin": {"left": (np.nan, 0.0)}}, "Robin coefficient on 'left' has 1 NaN"),
        ({"neumann": {"left": lambda x: x}}, r"flux on 'left' returned shape \(2, 3, \d\)"),
        ({"neumann": {"left": [1.0, 2.0]}}, r"flux on 'left' has shape \(2,\)"),
        ({"neumann": 1.0}, "neumann is a float"),
        ({"dirichlet": np.nan}, "Dirichlet value on 'boundary' has 12 NaN"),
        ({"dirichlet": {"left": "warm"}}, "Dirichlet value on 'left' has type .*expected real"),
        ({"dirichlet": {"empty": 0.0}}, "boundary 'empty' of the mesh is empty"),
        ({"dirichlet": {"inside": 1.0}}, "3 facets of 'inside' lie inside the domain"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_bad_input(options, message):
    mesh = unit_mesh("quad", 3)
    west = mesh.facets_satisfying(lambda x: np.isclose(x[0], 0.0) & (x[1] > 0.3), boundaries_only=True)
    inside = mesh.facets_satisfying(lambda x: np.isclose(x[0], 1 / 3))
    mesh = mesh.with_boundaries({"west": west, "empty": np.zeros(0, dtype=np.int64), "inside": inside})
    basis = Basis(mesh, ELEMENTS["quad Q1"][1]())
    with pytest.raises(fc.InputError, match=message):
        boundary_conditions(basis, **options)


def test_all_dofs_prescribed():
    mesh = unit_mesh("tri", 1)
    with pytest.raises(fc.InputError, match=r"the mesh \(2 elements\) has no interior dofs"):
        boundary_conditions(Basis(mesh, ElementTriP1()))
    assert len(boundary_conditions(Basis(mesh, ElementTriP2())).free) == 1
    assert len(boundary_conditions(Basis(mesh, ElementTriP1()), neumann={"top": 0.0, "right": 0.0}).free) == 1


def test_a_dirichlet_function_is_asked_on_the_boundary_only():
    basis = unit_basis("tri P1", 4)
    seen = []

    def distance(x):
        seen.append(x)
        # Minus infinity at the node in the middle, with a warning, which is an error here.
        return np.log(np.hypot(x[0] - 0.5, x[1] - 0.5))

    found = boundary_conditions(basis, dirichlet=distance)
    assert np.array_equal(seen[0], basis.doflocs[:, found.prescribed])
    assert found.values[found.prescribed].max() == pytest.approx(0.5 * np.log(0.5))
    assert not found.values[found.free].any()
    # On a named part, of its dofs only: 1 / (x - 1) is not defined on the right.
    left = boundary_conditions(basis, dirichlet={"left": lambda x: 1.0 / (x[0] - 1.0)})
    assert np.array_equal(left.values[left.prescribed], np.full(5, -1.0))

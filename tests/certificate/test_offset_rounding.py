"""Rounding of what is subtracted from the data: prescribed values and sources that are large against the signal."""

from __future__ import annotations

import numpy as np
import pytest
from skfem import Basis, ElementTriP1, ElementTriP2, MeshTri
from skfem.models.poisson import laplace, unit_load

import femcert as fc

MILLIMETRE, ROOM = 1e-3, 300.0


def plate(sensors, *, element=ElementTriP1, k=6, **conditions):
    mesh = MeshTri.init_tensor(*[np.linspace(0.0, MILLIMETRE, 17)] * 2).with_defaults()
    basis = Basis(mesh, element())
    points = np.random.default_rng(0).uniform(0.1, 0.9, (2, 2 * k)) * MILLIMETRE
    made = {
        "points": lambda: fc.PointSensors(basis, points[:, :k]),
        "averages": lambda: fc.AverageSensors(basis, points, radius=0.05 * MILLIMETRE),
        "differences": lambda: fc.MatrixSensors(differences(basis, points)),
    }[sensors]()
    options = {"parameters": fc.SineSpace(basis, k), "sensors": made, **conditions}
    if "source" not in conditions:
        return fc.EllipticSource(basis, **options)
    options["source"] = conditions["source"] * unit_load.assemble(basis)
    return fc.LinearProblem(basis, operator=laplace, definite=True, **options)


def differences(basis, points):
    H = fc.PointSensors(basis, points).matrix
    return (H[1:] - H[:-1]).tocsr()


CONDITIONS = {
    "room temperature": {"dirichlet": ROOM},
    "a source": {"source": ROOM / MILLIMETRE**2},
    "flux and room": {"dirichlet": {"left": ROOM}, "neumann": {"right": ROOM / MILLIMETRE}},
    "hot and cold": {"dirichlet": {"left": ROOM, "right": -ROOM}},
}


@pytest.mark.parametrize("conditions", CONDITIONS)
@pytest.mark.parametrize("sensors", ["points", "averages", "differences"])
def test_exact_radii_without_noise(conditions, sensors):
    problem = plate(sensors, **CONDITIONS[conditions])
    check_radii_and_dominance(problem)


def test_exact_radii_with_quadratic_elements():
    check_radii_and_dominance(plate("averages", element=ElementTriP2, dirichlet=ROOM))


def check_radii_and_dominance(problem):
    space, rng = problem.parameters, np.random.default_rng(1)
    for _ in range(4):
        c = rng.standard_normal(space.dimension)
        truth = space.field(c)
        data = fc.Data(problem.observe(problem.solve(truth)), 0.0)
        found = np.linalg.lstsq(problem.forward_matrix(), data.values - problem.offset, rcond=None)[0]
        reconstructed = fc.Candidate.from_coefficients(problem, found)
        error = space.norm(reconstructed.parameter - truth)
        assert error > 0.0
        for rule in (fc.ExactRadius(), fc.ResidualRadius()):
            certificate = fc.certify(problem, data, reconstructed, rule)
            assert certificate.radius.side == "upper"
            assert error <= certificate.radius.value
        # Far from what rounding does here, but small against the truth.
        assert fc.certify(problem, data, reconstructed, fc.ExactRadius()).radius.value <= 5e-3 * space.norm(truth)
        exact = fc.Candidate.from_coefficients(problem, c)
        selection = fc.no_harm(problem, data, baseline=exact, learned=reconstructed, rule=fc.Dominance())
        assert not selection.accepted


def test_guaranteed_radii_count_the_rounding_of_the_offset():
    """The same problem, in units in which nothing cancels, has the same radii but for rounding; here it is not less."""
    radii = []
    for room in (0.0, ROOM):
        mesh = MeshTri.init_tensor(*[np.linspace(0.0, MILLIMETRE, 33)] * 2)
        basis = Basis(mesh, ElementTriP2())
        points = np.random.default_rng(0).uniform(0.2, 0.8, (2, 8)) * MILLIMETRE
        sensors = fc.AverageSensors(basis, points, radius=0.1 * MILLIMETRE)
        problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 2), sensors=sensors, dirichlet=room)
        truth = problem.parameters.field([1.0, 0.5])
        data = fc.Data(problem.observe(problem.solve(truth)), 0.0)
        candidate = fc.Candidate.from_coefficients(problem, [1.0, 0.5])
        radii.append(fc.certify(problem, data, candidate, fc.GuaranteedRadius(state="recomputed")).radius.value)
    lost = problem.rounding * ROOM * np.sqrt(8)
    assert radii[1] >= radii[0] + lost / fc.stability(problem).sigma_max


def test_a_coefficient_seen_at_room_temperature():
    mesh = MeshTri.init_tensor(*[np.linspace(0.0, 1.0, 9)] * 2)
    basis = Basis(mesh, ElementTriP1())
    space = fc.CosineSpace(basis, 2).within_ball(1e-6, norm="l2")
    sensors = fc.PointSensors(basis, np.random.default_rng(0).uniform(0.2, 0.8, (2, 9)))
    problem = fc.EllipticCoefficient(basis, parameters=space, sensors=sensors, source=1e-3, dirichlet=ROOM)
    c = np.array([3e-7, -2e-7])
    truth = space.field(c)
    data = fc.Data(problem.observe(problem.solve(truth)), 0.0)
    J = problem.jacobian(truth)
    state = problem.observe(problem.solve(np.zeros(basis.N)))
    found = np.linalg.lstsq(J, data.values - state, rcond=None)[0]
    candidate = fc.Candidate.from_coefficients(problem, found)
    certificate = fc.certify(problem, data, candidate, fc.ExactRadius())
    assert space.norm(candidate.parameter - truth) <= certificate.radius.value

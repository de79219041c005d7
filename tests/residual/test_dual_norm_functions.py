"""The dual norm of a state function: with exact gradients it is the function's own energy error."""

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementQuad2, ElementTriP1, ElementTriP2, MeshQuad, MeshTri

import femcert as fc
from femcert.residual import dual_norm_of_functions

PI = np.pi


class Wave:
    """sin(pi x) sin(pi y) plus a wave of another frequency, which is the error."""

    def __init__(self, size=0.0):
        self.size = size

    def value(self, x):
        return np.sin(PI * x[0]) * np.sin(PI * x[1]) + self.size * np.sin(3 * PI * x[0]) * np.sin(2 * PI * x[1])

    def gradient(self, x):
        (s, t), (c, d) = np.sin(PI * x), np.cos(PI * x)
        first, second = (
            PI * np.array([c * t, s * d]),
            PI
            * self.size
            * np.array(
                [3 * np.cos(3 * PI * x[0]) * np.sin(2 * PI * x[1]), 2 * np.sin(3 * PI * x[0]) * np.cos(2 * PI * x[1])]
            ),
        )
        return first + second


def source(a=1.0, c=0.0):
    return lambda x: (2.0 * a * PI**2 + c) * np.sin(PI * x[0]) * np.sin(PI * x[1])


def problem_on(mesh, element, **options):
    basis = Basis(mesh, element)
    sensors = fc.PointSensors(basis, np.array([[0.4, 0.6]]))
    return zoo.source(basis, parameters=fc.FullSpace, sensors=sensors, **options)


def square(kind, cells):
    ticks = np.linspace(0.0, 1.0, cells + 1)
    return kind.init_tensor(ticks, ticks)


@pytest.mark.parametrize(("kind", "element"), [(MeshTri, ElementTriP2()), (MeshQuad, ElementQuad2())])
@pytest.mark.parametrize(("a", "c"), [(1.0, 0.0), (3.0, 5.0)])
def test_it_is_the_energy_error_of_the_function(kind, element, a, c):
    problem = problem_on(square(kind, 8), element, conductivity=a, reaction=c)
    candidate = fc.Candidate.from_functions(problem, state=Wave(0.1), parameter=source(a, c))
    truth = 0.1 * np.sqrt(a * 13.0 * PI**2 / 4.0 + c / 4.0)
    norm = dual_norm_of_functions(problem, candidate)
    assert norm.upper.value == pytest.approx(truth, rel=2e-3)
    assert norm.lower.value == pytest.approx(truth, rel=2e-3)
    assert norm.lower.value <= norm.upper.value
    assert norm.upper.side == norm.lower.side == "estimate"
    assert np.sqrt((norm.indicators**2).sum()) == pytest.approx(norm.upper.value, rel=0.01)


def test_the_interpolant_has_a_residual_that_the_function_does_not_have():
    problem = problem_on(square(MeshTri, 8), ElementTriP1())
    candidate = fc.Candidate.from_functions(problem, state=Wave(), parameter=source())
    own, interpolant = dual_norm_of_functions(problem, candidate), fc.dual_norm(problem, candidate)
    # The function solves the equation; what is left is the interpolation of the source.
    assert own.upper.value < 0.15 * interpolant.lower.value


def test_natural_conditions_are_part_of_the_residual():
    mesh = square(MeshTri, 8).with_boundaries({"right": lambda x: x[0] == 1.0})
    flux = lambda x: -PI * np.sin(PI * x[1])  # noqa: E731
    right, wrong = (
        problem_on(mesh, ElementTriP2(), robin={"right": (2.0, value)}) for value in (flux, lambda x: 0.0 * x[0])
    )
    norms = [
        dual_norm_of_functions(p, fc.Candidate.from_functions(p, state=Wave(), parameter=source())).upper.value
        for p in (right, wrong)
    ]
    assert norms[0] < 1e-3
    assert norms[1] > 0.5


def test_a_coefficient_problem_is_measured_too():
    basis = Basis(square(MeshTri, 8), ElementTriP2())
    problem = zoo.coefficient(
        basis, parameters=(fc.CosineSpace, (1, 1)), sensors=np.array([[0.4, 0.6]]), source=lambda x: 2.0 * source()(x)
    )
    candidate = fc.Candidate.from_functions(problem, state=Wave(), parameter=np.log(2.0))
    assert dual_norm_of_functions(problem, candidate).upper.value < 0.02


def test_what_it_cannot_measure_is_refused():
    class Short(Wave):
        def gradient(self, x):
            return super().gradient(x)[:1]

    problem, line = problem_on(square(MeshTri, 4), ElementTriP1()), zoo.source(sensors=[[0.3], [0.6]], parameters=2)
    for state, word in ((lambda x: x[0], "no state function with a method gradient"), (Short(), "returned shape")):
        with pytest.raises(fc.InputError, match=word):
            dual_norm_of_functions(problem, fc.Candidate.from_functions(problem, state=state, parameter=0.0))
    with pytest.raises(fc.UncertifiedError, match="in the plane"):
        dual_norm_of_functions(line, fc.Candidate.from_coefficients(line, [1.0, 0.0]))

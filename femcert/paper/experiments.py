"""The five experiments: problems, truths and learned candidates of the four inverse ones, and the sampled residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from skfem import Basis, ElementLineP1, ElementQuad1, MeshLine, MeshQuad

from ..certificate import OperationalRadius, hoeffding
from ..checks import Array
from ..problem import (
    CosineSpace,
    EllipticCoefficient,
    EllipticSource,
    HeatInitial,
    PointSensors,
    Problem,
    SineSpace,
    Tomography,
)
from ..selection import GaussNewton, Tikhonov
from ..stability import Stability, stability
from .setup import (
    ANGLES,
    COEFFICIENT,
    COEFFICIENT_TRUTH,
    DIFFUSIVITY,
    HALLUCINATION,
    HEAT,
    HEAT_DECAY,
    HEAT_TIMES,
    HEAT_TRUTH_NORM,
    MODES_PER_DIRECTION,
    POISSON,
    POISSON_DECAY,
    POISSON_TRUTH_NORM,
    STOCHASTIC,
    TOMOGRAPHY,
    TOMOGRAPHY_TRUTH_NORM,
    UNFINISHED_PERTURBATION,
    UNFINISHED_STATE,
    Experiment,
    candidate_seed,
)

# Times of the heat curve: from well before the first to well after the last time of the paper.
CURVE = np.linspace(0.0025, 0.24, 48)

# Name, parameter, and the state where it is not that of the parameter.
Learned = tuple[str, Array, Any]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """An inverse problem with a known truth, and the learned candidates to be judged.

    Attributes
    ----------
    number
        Through all experiments, for the seeds.
    truth
        Coordinates of the true parameter.
    stability
        Of the problem; of the nonlinear one at the truth, as in the paper.
    solver
        The classical method that makes the baseline.
    learned
        ``(scenario, random generator) -> [(name, parameter, state or None)]``.
    measured
        The field in which relative errors are measured; the parameter itself unless said otherwise.
    variant
        Name and problem of another discretization, whose stability constant the paper does not have.
    """

    experiment: Experiment
    problem: Problem
    truth: Array
    stability: Stability
    learned: Callable[[Scenario, np.random.Generator], list[Learned]]
    number: int
    name: str = "default"
    solver: type[Tikhonov | GaussNewton] = Tikhonov
    measured: Callable[[Array], Array] = lambda q: q
    variant: tuple[str, Problem] | None = None

    @property
    def rule(self) -> OperationalRadius:
        """The paper's operational radius with the weights of its table; the boundary residual counts fully."""
        pde, optimality = self.experiment.pde, self.experiment.optimality
        return OperationalRadius(pde=pde, bc=1.0, optimality=optimality, stability=self.stability, covered=False)

    @property
    def true_field(self) -> Array:
        """Dof vector of the truth."""
        return self.problem.parameters.field(self.truth)

    def relative_error(self, parameter: Array) -> float:
        """``‖q - q_true‖ / ‖q_true‖`` in the Euclidean norm of the paper, of the measured field."""
        exact = self.measured(self.true_field)
        return float(np.linalg.norm(self.measured(parameter) - exact) / np.linalg.norm(exact))

    def moved(self, rng: np.random.Generator, scale: float) -> Array:
        """The truth with every coordinate moved by `scale` times a standard normal number (dof vector)."""
        c = self.truth + scale * rng.standard_normal(self.truth.size)
        return self.problem.parameters.field(c)

    def shifted(self) -> Array:
        """The truth with the structured shift added to its modes (dof vector)."""
        c = self.truth.copy()
        c[list(self.experiment.shifted)] += self.experiment.shift
        return self.problem.parameters.field(c)


def line_basis(interior: int) -> Basis:
    """P1 on the unit interval with this many interior nodes."""
    return Basis(MeshLine(np.linspace(0.0, 1.0, interior + 2)), ElementLineP1())


def on_line(experiment: Experiment, sites: Any = None) -> tuple[Basis, dict[str, Any]]:
    """The mesh of an experiment on the unit interval, and its class and sensors.

    Sensors are values at the interior nodes with the numbers `sites`; default: the paper's, ``linspace(0, n - 1, m)``
    truncated to integers.
    """
    basis = line_basis(experiment.grid)
    nodes = np.sort(basis.mesh.p[0])[1:-1]
    chosen = np.linspace(0, nodes.size - 1, experiment.observations).astype(int) if sites is None else sites
    space = SineSpace(basis, experiment.modes, inner="euclidean")
    return basis, {"parameters": space, "sensors": PointSensors(basis, nodes[chosen])}


def decaying(modes: int, norm: float, decay: float, ratio: float = 1.0) -> Array:
    """Coordinates ``(-1)^(j+1) j^-decay ratio^j``, scaled to a norm."""
    j = np.arange(1.0, modes + 1.0)
    c = (-1.0) ** (j + 1) * j**-decay * ratio**j
    return np.asarray(norm * c / np.linalg.norm(c))


def poisson_problem(mass: str = "lumped", sites: Any = None) -> EllipticSource:
    """Source of ``-u'' = q`` from 35 values of u; P1 with the lumped (finite differences) or the consistent mass."""
    basis, rest = on_line(POISSON, sites)
    return EllipticSource(basis, mass=mass, **rest)


def poisson_scenarios() -> list[Scenario]:
    """The one scenario of the paper."""
    problem = poisson_problem()
    return [
        Scenario(
            experiment=POISSON,
            number=POISSON.first,
            problem=problem,
            truth=decaying(POISSON.modes, POISSON_TRUTH_NORM, POISSON_DECAY),
            stability=stability(problem),
            learned=poisson_learned,
            variant=("consistent mass", poisson_problem("consistent")),
        )
    ]


def poisson_learned(case: Scenario, rng: np.random.Generator) -> list[Learned]:
    """Close to the truth; shifted in three modes; and a state that does not solve its own equation."""
    good = case.moved(rng, POISSON.perturbation)
    rough = case.moved(rng, UNFINISHED_PERTURBATION)
    state: Any = case.problem.solve(rough)
    return [
        ("learned good", good, None),
        ("shifted learned", case.shifted(), None),
        ("unfinished PINN", rough, state + _wave(case.problem, UNFINISHED_STATE)),
    ]


def heat_problem(time: float | Array, mass: str = "lumped") -> HeatInitial:
    """Initial value of the heat equation from 45 values of u later; P1 in space, the exact exponential in time."""
    basis, rest = on_line(HEAT)
    return HeatInitial(basis, times=time, diffusivity=DIFFUSIVITY, scheme="exact", mass=mass, **rest)


def heat_scenarios() -> list[Scenario]:
    """One for each observation time."""
    cases = []
    for i, time in enumerate(HEAT_TIMES):
        problem = heat_problem(time)
        case = Scenario(
            experiment=HEAT,
            name=f"T={time:.2f}",
            number=HEAT.first + i,
            problem=problem,
            truth=decaying(HEAT.modes, HEAT_TRUTH_NORM, HEAT_DECAY),
            stability=stability(problem),
            learned=heat_learned,
            variant=("consistent mass", heat_problem(time, "consistent")),
        )
        cases.append(case)
    return cases


def heat_learned(case: Scenario, rng: np.random.Generator) -> list[Learned]:
    """Close to the truth; the same with a high frequency that the data hardly see; shifted in four modes."""
    good = case.moved(rng, HEAT.perturbation)
    return [
        ("learned good", good, None),
        ("hallucinated high freq.", good + _wave(case.problem, HALLUCINATION), None),
        ("shifted learned", case.shifted(), None),
    ]


def heat_curve() -> tuple[Array, Array]:
    """Times and stability constants between and around the three times of the paper.

    One problem observed at all times: each time's block of rows is the forward matrix of that time alone.
    """
    blocks = heat_problem(CURVE).linearize().matrix.reshape(len(CURVE), HEAT.observations, HEAT.modes)
    # The basis is orthonormal, so coordinates have the norm of the parameter.
    sigma_min = [np.linalg.svd(block, compute_uv=False)[-1] for block in blocks]
    return CURVE, 1.0 / np.array(sigma_min)


def tomography_problem(rule: str = "sampled") -> Tomography:
    """A 28 x 28 image from its line integrals at 15 angles within 100 degrees.

    Q1 with the nodes at the pixel centres; rays sampled as in the paper, or integrated exactly.
    """
    N, k = TOMOGRAPHY.grid, MODES_PER_DIRECTION
    centres = np.arange(N) + 0.5
    basis = Basis(MeshQuad.init_tensor(centres, centres), ElementQuad1())
    space = CosineSpace(basis, (k, k), inner="euclidean", box=[[0.0, N], [0.0, N]])
    return Tomography(basis, parameters=space, angles=np.linspace(*ANGLES), bins=N, spacing=1.0, rule=rule)


def phantom(x: Array) -> Array:
    """Three bodies on a background, in pixel coordinates ``(2, points)``."""
    s, t = x / TOMOGRAPHY.grid

    def body(at: tuple[float, float], size: tuple[float, float]) -> Array:
        return np.exp(-(((s - at[0]) / size[0]) ** 2) - ((t - at[1]) / size[1]) ** 2)

    bodies = body((0.24, 0.74), (0.13, 0.16)) + 0.8 * body((0.78, 0.30), (0.12, 0.12))
    return 0.1 + bodies + 0.4 * body((0.70, 0.78), (0.12, 0.10))


def tomography_scenarios() -> list[Scenario]:
    """The one scenario of the paper; its truth is the projection of the phantom on the class, scaled."""
    problem = tomography_problem()
    c, _ = problem.parameters.project(phantom(problem.basis.doflocs))
    return [
        Scenario(
            experiment=TOMOGRAPHY,
            number=TOMOGRAPHY.first,
            problem=problem,
            truth=np.asarray(TOMOGRAPHY_TRUTH_NORM * c / np.linalg.norm(c)),
            stability=stability(problem),
            learned=tomography_learned,
            variant=("exact rays", tomography_problem("exact")),
        )
    ]


def tomography_learned(case: Scenario, rng: np.random.Generator) -> list[Learned]:
    """Close to the truth; and with structure of five low modes that is not there."""
    return [
        ("learned good", case.moved(rng, TOMOGRAPHY.perturbation), None),
        ("hallucinated learned", case.shifted(), None),
    ]


def coefficient_problem() -> EllipticCoefficient:
    """Conductivity ``a = exp(q)`` of ``-(a u')' = 1 + 0.5 sin(2 pi x)`` from 30 values of u."""
    basis, rest = on_line(COEFFICIENT)
    return EllipticCoefficient(basis, source=lambda x: 1.0 + 0.5 * np.sin(2.0 * np.pi * x[0]), **rest)


def coefficient_scenarios() -> list[Scenario]:
    """The one scenario of the paper; relative errors are those of ``exp(q)`` at the interior nodes.

    It has no variant: the mass enters only the known source, not the map from the conductivity to the data.
    """
    problem = coefficient_problem()
    inside, truth = problem.free, np.array(COEFFICIENT_TRUTH)
    return [
        Scenario(
            experiment=COEFFICIENT,
            number=COEFFICIENT.first,
            problem=problem,
            truth=truth,
            stability=stability(problem, at=problem.parameters.field(truth)),
            solver=GaussNewton,
            learned=coefficient_learned,
            measured=lambda q: np.exp(q[inside]),
        )
    ]


def coefficient_learned(case: Scenario, rng: np.random.Generator) -> list[Learned]:
    """Close to the truth; and shifted in all six modes."""
    return [
        ("learned good", case.moved(rng, COEFFICIENT.perturbation), None),
        ("shifted learned", case.shifted(), None),
    ]


SCENARIOS: dict[str, Callable[[], list[Scenario]]] = {
    "poisson": poisson_scenarios,
    "heat": heat_scenarios,
    "tomography": tomography_scenarios,
    "coefficient": coefficient_scenarios,
}


@dataclass(frozen=True)
class SamplingRow:
    """Means over the repetitions for one number of points.

    Attributes
    ----------
    empirical_msr, upper_bound, coverage
        Mean of the empirical mean square, mean of the bound, and the share of bounds above the true mean square.
    standard_error
        Of the first two means, over the repetitions.
    """

    points: int
    repetitions: int
    zeta: float
    empirical_msr: float
    upper_bound: float
    coverage: float
    standard_error: float


@dataclass(frozen=True)
class SamplingCurve:
    """The residual field on its nodes, the two constants of the paper, and a row for each number of points."""

    basis: Basis
    field: Array
    true_msr: float
    envelope: float
    rows: tuple[SamplingRow, ...]


def residual_field(x: Array) -> Array:
    """``0.3 sin(6 pi x)`` with two narrow peaks (the paper's r)."""
    peaks = 1.5 * np.exp(-((x - 0.72) ** 2) / 0.002) + 0.8 * np.exp(-((x - 0.22) ** 2) / 0.0008)
    return 0.3 * np.sin(6.0 * np.pi * x) + peaks


def sampling_curve(base_seed: int) -> SamplingCurve:
    """The residual field sampled at random nodes, and the bound of its mean square, for each number of points."""
    basis = line_basis(STOCHASTIC.grid - 2)
    field = residual_field(basis.doflocs[0])
    squares = field**2
    true_msr, envelope = float(squares.mean()), float(squares.max())
    rng = np.random.default_rng(candidate_seed(base_seed, STOCHASTIC.first))
    rows = tuple(_sampled(squares, true_msr, envelope, M, rng) for M in STOCHASTIC.points)
    return SamplingCurve(basis, field, true_msr, envelope, rows)


def _sampled(squares: Array, true_msr: float, envelope: float, points: int, rng: np.random.Generator) -> SamplingRow:
    repetitions, zeta = STOCHASTIC.repetitions, STOCHASTIC.zeta
    samples = squares[rng.integers(squares.size, size=(repetitions, points))]
    bounds = np.array([hoeffding(sample, envelope, zeta) for sample in samples])
    return SamplingRow(
        points=points,
        repetitions=repetitions,
        zeta=zeta,
        empirical_msr=float(samples.mean()),
        upper_bound=float(bounds.mean()),
        coverage=float(np.mean(bounds >= true_msr)),
        standard_error=float(np.std(squares) / np.sqrt(points * repetitions)),
    )


def _wave(problem: Problem, amplitude_and_frequency: tuple[float, int]) -> Array:
    """``amplitude sin(frequency pi x)`` at the dofs."""
    amplitude, frequency = amplitude_and_frequency
    return np.asarray(amplitude * np.sin(frequency * np.pi * problem.basis.doflocs[0]))

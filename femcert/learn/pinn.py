"""A physics-informed network that solves an inverse problem."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..checks import count, number
from ..errors import InputError
from ..problem.base import Problem, check_problem
from ..problem.candidate import Candidate
from ..problem.data import Data
from .terms import build
from .torch import recording
from .training import Record, Trainer

PARAMETERS, BOUNDARIES = ("class", "network"), ("hard", "soft")


@dataclass(kw_only=True)
class PINN:
    """An inverse PINN: a network u for the state, and a parameter q that is trained with it. Call it as a solver.

    For problems that offer the strong form of one state (`StateEquation.strong`, or that of `StateEquation.time`), on
    lines and in the plane. With the strong residual ``r = -div(a grad u) + c u - f`` (with time ``+ u_t``), where the
    parameter is f, a or the initial value, at random points inside, it minimizes

        L = w_data ‖H u - y‖² / ‖y‖²  +  w_physics mean r² / P²  +  w_boundary mean (boundary defect)² / G²,

    where P and G are the sizes that r and the defect have for states as large as the data, so that L has no unit.
    With time, u is a network in space and time and q its value at time zero; with ``parameter="class"`` the mean of
    ``(u(0) - q)²`` is added (w_initial = w_data).

    Near re-entrant corners (an eighth of the extent), where strong residuals are unbounded, r is weighted by the
    squared distance from the corner.

    What it does not do: a conductivity that jumps (tables, values per element) is constant inside of the elements, and
    the continuity of the flux across a jump is not enforced. The gradient of a conductivity given as a function is its
    own ``gradient(x)``, or a difference quotient.

    Parameters
    ----------
    parameter
        ``"class"``: coordinates in the problem's admissible class. ``"network"``: a network of its own; then q is not
        in the class, and rules count how far it is outside.
    boundary
        ``"hard"``: Dirichlet values hold exactly, ``u = g + phi N`` with a smooth function phi that vanishes there
        (`femcert.learn.distance.BoundaryDistance`); for one number g. ``"soft"``: a term of the loss. Neumann and Robin
        conditions always are one.
    width, depth
        Of the networks (tanh).
    points, boundary_points
        Number of random collocation points inside, and on each kind of boundary.
    adam, lbfgs, rate
        Steps of Adam with its first learning rate, which falls tenfold, then iterations of L-BFGS.
    data_weight, physics_weight, boundary_weight
        The weights w.
    seed
        Of weights and points: the same seed gives the same candidate (on one machine; training uses one thread).
        PyTorch's own random state is neither used nor changed.
    quiet
        No progress bar. There is none without a terminal either.
    name
        Of the candidate.

    Attributes
    ----------
    record
        Of the last training: losses by term, steps, seconds; None before.
    """

    parameter: str = "class"
    boundary: str = "hard"
    width: int = 32
    depth: int = 3
    points: int = 1000
    boundary_points: int = 200
    adam: int = 1000
    lbfgs: int = 500
    rate: float = 5e-3
    data_weight: float = 1.0
    physics_weight: float = 1.0
    boundary_weight: float = 1.0
    seed: int = 0
    quiet: bool = False
    name: str = "PINN"
    record: Record | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, known in (("parameter", PARAMETERS), ("boundary", BOUNDARIES)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} is {getattr(self, name)!r}; expected {' or '.join(map(repr, known))}")
        for name in ("width", "depth", "points", "boundary_points"):
            setattr(self, name, count(getattr(self, name), name))
        for name in ("adam", "lbfgs", "seed"):
            setattr(self, name, count(getattr(self, name), name, least=0))
        for name in ("rate", "data_weight", "physics_weight", "boundary_weight"):
            setattr(self, name, number(getattr(self, name), name, above=0.0))

    @recording()
    def __call__(self, problem: Problem, data: Data) -> Candidate:
        """Train, and return the candidate with the functions it is made of.

        Its ``optimality`` is ``‖y‖ ‖grad L‖``: the Euclidean norm of the gradient of the loss by all trainable numbers
        (weights, biases, coordinates in units of their size), in the unit of the data like the other residuals.

        Raises
        ------
        InputError
            The problem does not offer the strong form of one state, or PyTorch is not installed.
        SolveError
            The training diverged.
        """
        self.record = None
        losses = build(problem, _checked(problem, data), self, np.random.default_rng(self.seed))
        weights = {"data": self.data_weight, "physics": self.physics_weight, "boundary": self.boundary_weight}
        weights["initial"] = self.data_weight
        trainer = Trainer(losses.terms, weights, losses.variables, seed=self.seed)
        record = trainer.run(adam=self.adam, lbfgs=self.lbfgs, rate=self.rate, quiet=self.quiet)
        self.record = record
        state, parameter = losses.functions()
        return Candidate.from_functions(
            problem,
            state=state,
            parameter=parameter,
            optimality=data.norm(data.values) * record.gradient_norm,
            name=self.name,
        )


def _checked(problem: Problem, data: Data) -> Data:
    check_problem(problem)
    return problem.check_data(data)

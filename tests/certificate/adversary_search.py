"""Searches, without gradients, for a candidate that is accepted although its true error exceeds its radius.

The adversary knows the truth, the data and the rule. A round draws a truth of the class, noise within its level and a
baseline; then a (1+1) evolution strategy moves a candidate where error / radius grows while it is still accepted: along
the directions that the sensors see least or not at all, out of the class, between the nodes, with states that fit the
data but not the equation, and with optimality values as it likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from closed_forms import heat_case, on_line, on_square
from skfem import Basis, ElementLineP1, ElementQuad1, ElementTriP1, MeshLine, MeshTri

import femcert as fc
from femcert.problem.forward import dense
from femcert.problem.space import ParameterSpace

# What a bound may be off by the rounding of the error that it is compared with.
ROUNDING = 1e-9
ROUND = 100


@dataclass(frozen=True)
class Arena:
    """A problem with its true forward map ``y = F c``, and the true distance of a parameter from a truth."""

    problem: Any
    forward: np.ndarray
    distance: Callable[[np.ndarray, np.ndarray], float]

    @property
    def unseen(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters and states, as columns, from those that the sensors see least on."""
        return _unseen(self.problem)


@cache
def _unseen(problem: Any) -> tuple[np.ndarray, np.ndarray]:
    response = problem.apply(np.eye(problem.parameters.basis.N))
    parameters = np.linalg.svd(response)[2][::-1].T
    return parameters, np.linalg.svd(dense(problem.sensors.matrix))[2][::-1].T


@cache
def arenas(continuous: bool) -> dict[str, Arena]:
    """Where truths are consistent with the equation itself, or with the discretized one."""
    cases = {
        "source, line": on_line(24, ElementLineP1),
        "source, square": on_square(8, ElementQuad1),
        "heat, line": heat_case(ElementLineP1, 8, "regions"),
    }
    found = {}
    for name, case in cases.items():
        space = case.problem.parameters
        if continuous:
            # As a function, and as the dof vector that stands for it.
            found[name] = Arena(
                case.problem, case.F, lambda q, c, e=case.error, s=space: max(e(q, c), s.norm(q - s.field(c)))
            )
        else:
            found[name] = _discrete(case.problem)
    line = np.linspace(0.0, 1.0, 7)
    basis = Basis(MeshTri.init_tensor(line, line), ElementTriP1())
    # The class of the interpolants, as fields: of the functions themselves only samples would be known.
    waves = fc.FunctionSpace(basis, [lambda x, i=i: np.cos(i * x[0] + (3 - i) * x[1]) for i in range(4)])
    space = ParameterSpace(basis, waves.matrix)
    found["tomography"] = _discrete(fc.Tomography(basis, parameters=space, angles=[0.0, 50.0, 110.0], bins=5))
    if not continuous:
        found["source, ball"] = _discrete(_on_ball())
    return found


def _on_ball() -> fc.EllipticSource:
    """More coordinates than sensors, determined by a ball alone."""
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 25)), ElementLineP1())
    space = fc.SineSpace(basis, 6).within_ball(3.0, norm="h1")
    return fc.EllipticSource(basis, parameters=space, sensors=fc.PointSensors(basis, [0.2, 0.45, 0.7, 0.85]))


def _discrete(problem: Any) -> Arena:
    space = problem.parameters
    return Arena(problem, problem.forward_matrix(), lambda q, c: space.norm(q - space.field(c)))


@dataclass(frozen=True)
class Opponent:
    """A rule to attack. `continuous`: it speaks of the equation itself; `certain`: acceptance excludes harm."""

    rule: fc.certificate.Rule
    continuous: bool = False
    certain: bool = False


OPPONENTS = {
    "GuaranteedRadius": Opponent(fc.GuaranteedRadius(), continuous=True),
    "GuaranteedRadius, recomputed": Opponent(fc.GuaranteedRadius(state="recomputed"), continuous=True),
    "ExactRadius": Opponent(fc.ExactRadius()),
    "ExactRadius, continuous": Opponent(fc.ExactRadius(guarantee="continuous"), continuous=True),
    "Dominance": Opponent(fc.Dominance(), certain=True),
    "Dominance, continuous": Opponent(fc.Dominance(guarantee="continuous"), continuous=True, certain=True),
    "ResidualRadius": Opponent(fc.ResidualRadius()),
    "OperationalRadius": Opponent(fc.OperationalRadius(pde=0.05, bc=1.0, optimality=0.01)),
    "the paper's OperationalRadius": Opponent(fc.OperationalRadius(pde=0.05, bc=1.0, optimality=0.01, covered=False)),
}
# Rules that claim a bound for every candidate that they accept.
PROVEN = [name for name in OPPONENTS if name.startswith(("Guaranteed", "Exact", "Dominance"))]
PAPER = "the paper's OperationalRadius"


@dataclass
class Tally:
    """What a search found."""

    tries: int = 0
    accepted: int = 0
    beyond_bound: int = 0
    beyond_estimate: int = 0
    harm: int = 0
    worst: float = 0.0
    examples: list[str] = field(default_factory=list)

    def __iadd__(self, other: Tally) -> Tally:
        for name in ("tries", "accepted", "beyond_bound", "beyond_estimate", "harm"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.worst = max(self.worst, other.worst)
        self.examples += other.examples
        return self


class Round:
    """One truth with its data and baseline, and the search against it."""

    def __init__(self, arena: Arena, opponent: Opponent, rng: np.random.Generator) -> None:
        self.arena, self.opponent, self.rng, self.tally = arena, opponent, rng, Tally()
        problem = self.problem = arena.problem
        self.truth = self._truth(arena.forward.shape[1])
        self.data = self._data(arena.forward @ self.truth)
        self.judge_of_rule = opponent.rule.prepare(problem, self.data)
        self.safe = self._baseline()
        self.base = self.judge_of_rule.certify(self.safe)
        self.true_field = problem.parameters.field(self.truth)

    def _truth(self, dimension: int) -> np.ndarray:
        """Of the class; where it has a ball, often on its surface."""
        c, space = self.rng.standard_normal(dimension), self.problem.parameters
        if space.ball is None:
            return c
        q = space.field(c)
        size = float(np.sqrt(q @ (space.form(space.ball.norm) @ q)))
        return c * space.ball.radius / size * float(self.rng.choice([1.0 - 1e-12, 1.0 - 1e-12, 0.5]))

    def _data(self, clean: np.ndarray) -> fc.Data:
        """With noise of just its level, or less: random, or what looks most like a parameter; some with variances."""
        rng, size = self.rng, float(np.linalg.norm(clean))
        level = float(rng.choice([0.0, 1e-4, 1e-2, 0.2])) * size
        left = np.linalg.svd(self.arena.forward)[0]
        weak = left[:, min(self.arena.forward.shape) - 1]
        noise = rng.standard_normal(clean.size) if rng.random() < 0.5 else weak
        noise = noise * (level * float(rng.choice([1.0, 1.0, 0.5])) / np.linalg.norm(noise))
        variances = rng.uniform(0.2, 5.0, clean.size) if rng.random() < 0.3 else None
        scales = 1.0 if variances is None else np.sqrt(variances)
        # The sum rounds.
        return fc.Data(clean + scales * noise, level + 1e-15 * size, covariance=variances)

    def _baseline(self) -> fc.Candidate:
        """Tikhonov's, or one that is anywhere."""
        if self.rng.random() < 0.5:
            return fc.Tikhonov(weight=10.0 ** self.rng.uniform(-8.0, 0.0))(self.problem, self.data)
        off = 10.0 ** self.rng.uniform(-3.0, 1.0) * self.rng.standard_normal(len(self.truth))
        return fc.Candidate.from_coefficients(self.problem, self.truth + off, optimality=0.0)

    def run(self, tries: int) -> Tally:
        """Start at the truth, the baseline or the least squares solution; keep what is better, adapt the step."""
        fitted = np.linalg.lstsq(self.problem.forward_matrix(), self.data.values, rcond=None)[0]
        starts = [self.true_field, self.safe.parameter, self.problem.parameters.field(fitted)]
        q = starts[self.rng.integers(len(starts))]
        best = fc.Candidate(self._state(q), q, 0.0)
        score, step = self.judge(best), 1.0
        for _ in range(tries - 1):
            other = self.moved(best, step)
            found = self.judge(other)
            step = float(np.clip(step * (1.5 if found > score else 0.9), 1e-8, 1e3))
            if found > score:
                best, score = other, found
        return self.tally

    def _state(self, q: np.ndarray) -> np.ndarray | None:
        return self.problem.solve(q) if self.problem.states else None

    def moved(self, candidate: fc.Candidate, step: float) -> fc.Candidate:
        """One trick of the adversary."""
        q, u = np.array(candidate.parameter), None if candidate.state is None else np.array(candidate.state)
        size = step * 10.0 ** self.rng.uniform(-3.0, 0.5)
        trick = self.rng.integers(5 if u is None else 9)
        if trick < 5:
            q = q + size * self._direction(trick, q)
            if u is not None and self.rng.random() < 0.7:
                u = self._state(q if self.rng.random() < 0.7 else self.problem.parameters.nearest(q))
        else:
            u = self._disguised(trick, u, size)
        optimality = float(self.rng.choice([0.0, candidate.optimality or 0.0, 10.0 ** self.rng.uniform(-12.0, 3.0)]))
        return fc.Candidate(u, q, optimality)

    def _direction(self, trick: int, q: np.ndarray) -> np.ndarray:
        """Of the parameter: in the class, its weakest one, away from the truth, unseen, or jumping at the nodes."""
        space = self.problem.parameters
        if trick == 0:
            return space.field(self.rng.standard_normal(space.dimension))
        if trick == 1:
            weakest = np.linalg.svd(self.arena.forward)[2][-1]
            return space.field(weakest * self.rng.choice([-1.0, 1.0]))
        if trick == 2:
            return q - self.true_field
        if trick == 3:
            unseen = self.arena.unseen[0]
            mix = unseen[:, : self.rng.integers(1, unseen.shape[1])]
            return mix @ self.rng.standard_normal(mix.shape[1])
        return self.rng.choice([-1.0, 1.0], q.size) if self.rng.random() < 0.5 else (-1.0) ** np.arange(q.size)

    def _disguised(self, trick: int, u: np.ndarray, size: float) -> np.ndarray:
        """Of the state: fits the data, is that of the truth, moves unseen, or is off on the boundary or anywhere."""
        matrix = dense(self.problem.sensors.matrix)
        columns = u if u.ndim == 2 else u[:, None]
        if trick == 5:
            wanted = self.data.values.reshape(columns.shape[1], -1).T
            fitted = columns + np.linalg.lstsq(matrix, wanted - matrix @ columns, rcond=None)[0]
            return fitted if u.ndim == 2 else fitted[:, 0]
        if trick == 6:
            return self.problem.solve(self.true_field)
        if trick == 7:
            unseen = self.arena.unseen[1][:, : max(1, len(matrix.T) - len(matrix))]
            shift = unseen @ self.rng.standard_normal((unseen.shape[1], columns.shape[1]))
            return u + size * (shift if u.ndim == 2 else shift[:, 0])
        return u + size * self.rng.standard_normal(u.shape)

    def judge(self, candidate: fc.Candidate) -> float:
        """Count a candidate; what the adversary wants of it: error / radius, less where it is not accepted."""
        # Also a spike between the nodes of a function is none of what is judged and handed out: the dof values.
        self.tally.tries += 1
        try:
            found = self.judge_of_rule.certify(candidate)
            comparison = self.judge_of_rule.compare(self.safe, candidate)
        except fc.UncertifiedError:
            return -np.inf
        error = self.arena.distance(candidate.parameter, self.truth)
        limit, radius = self.base.radius.value, found.radius.value
        accepted = radius <= limit if comparison is None else comparison.accepts(0.0)
        ratio = error / radius if radius > 0.0 else np.inf * (error > 0.0)
        if accepted:
            self._count(candidate, found, error, ratio)
            return ratio
        return ratio - 1.0 - abs(radius - limit) / limit if limit > 0.0 else -np.inf

    def _count(self, candidate: fc.Candidate, found: fc.Certificate, error: float, ratio: float) -> None:
        tally = self.tally
        tally.accepted += 1
        tally.worst = max(tally.worst, ratio)
        beyond = ratio > 1.0 + ROUNDING
        harm = error > self.arena.distance(self.safe.parameter, self.truth) * (1.0 + ROUNDING)
        if beyond or (harm and self.opponent.certain) or self.rng.random() < 0.01:
            self._confirm(candidate)
        tally.harm += harm
        if found.radius.side == "upper":
            tally.beyond_bound += beyond
        else:
            tally.beyond_estimate += beyond
        if (beyond and found.radius.side == "upper") or (harm and self.opponent.certain):
            tally.examples.append(f"error {error!r}, radius {found.radius}, truth {self.truth.tolist()}")

    def _confirm(self, candidate: fc.Candidate) -> None:
        """The selector decides as the adversary thinks."""
        selection = fc.no_harm(self.problem, self.data, baseline=self.safe, learned=candidate, rule=self.opponent.rule)
        if not selection.accepted or not np.array_equal(selection.parameter, candidate.parameter):
            raise AssertionError(f"the selector decides otherwise: {selection.reason}")


def attack(name: str, arena: str, tries: int, seed: int) -> Tally:
    """Search in one arena against one rule."""
    opponent = OPPONENTS[name]
    place = arenas(opponent.continuous)[arena]
    rng = np.random.default_rng([seed, list(OPPONENTS).index(name), list(arenas(False)).index(arena)])
    total = Tally()
    while total.tries < tries:
        total += Round(place, opponent, rng).run(min(ROUND, tries - total.tries))
    return total

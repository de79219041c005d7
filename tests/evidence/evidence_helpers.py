"""Small dense problems for the tests of evidence, and how often a level may fail."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.stats import betabinom, binom

import femcert as fc

STD = 0.05


def matrix_problem(seed: int = 0, m: int = 7, k: int = 15, **ball: Any) -> Any:
    """Random sensors of k coordinates on a ball with a random norm, or without a ball for ``radius=None``."""
    rng = np.random.default_rng(seed)
    space = fc.MatrixProblem(operator=np.eye(k), load=np.eye(k), observe=np.eye(k)).parameters
    radius = ball.pop("radius", 2.0)
    if radius is not None:
        root = rng.standard_normal((k, k)) + 3.0 * np.eye(k)
        space = space.within_ball(radius, norm=csr_matrix(root.T @ root), **ball)
    observe = rng.standard_normal((m, k)) / np.arange(1.0, k + 1.0)
    return fc.MatrixProblem(operator=np.eye(k), load=np.eye(k), observe=observe, parameters=space)


def form(problem: Any) -> Any:
    """The dense form of the ball."""
    return problem.parameters.ball_form.toarray()


def on_sphere(problem: Any, direction: Any) -> Any:
    """The point of the ball that is farthest in a direction."""
    lifted = np.linalg.solve(form(problem), direction)
    ball = problem.parameters.ball
    return (0.0 if ball.centre is None else ball.centre) + lifted * ball.radius / np.sqrt(direction @ lifted)


def data(problem: Any, values: Any, std: float = STD, **more: Any) -> Any:
    """Gaussian data."""
    return fc.Data.gaussian(values, std=std, **more)


def noisy(problem: Any, truth: Any, seed: int, std: float = STD) -> Any:
    """Readings of a truth."""
    exact = problem.forward.apply(truth[:, None])[:, 0] + problem.offset
    return exact + std * np.random.default_rng(seed).standard_normal(len(exact))


def fewest(trials: int, level: float, cells: int = 1) -> int:
    """How many of so many trials must be covered: below it a level of this size is refuted at 1 % over all cells."""
    return int(binom.ppf(0.01 / cells, trials, level))


def fewest_conformal(trials: int, samples: int, level: float, cells: int = 1) -> int:
    """The same for a set whose size is the conformal quantile of one set of samples, which all trials share."""
    missed = int(np.floor((samples + 1) * (1.0 - level) + 1e-9))
    return int(betabinom.ppf(0.01 / cells, trials, samples + 1 - missed, missed))


def best_of(function: Any, starts: Any) -> float:
    """The least value that a general optimizer finds."""
    return min(minimize(function, start, method="BFGS").fun for start in starts)


class Span(fc.CoordinateSpace):
    """A few columns of a space of coordinates."""

    def __init__(self, whole: Any, B: Any) -> None:
        super().__init__(whole.size, gram=whole.weight)
        self.matrix = B


def span_problem(tau: float | None = None) -> Any:
    """Nine sensors of a span of four of twelve coordinates, perhaps with a remainder."""
    rng, k = np.random.default_rng(0), 12
    whole = fc.CoordinateSpace(k, gram=np.diag(np.linspace(1.0, 2.0, k)))
    space = Span(whole, np.linalg.qr(rng.standard_normal((k, 4)))[0])
    space = space if tau is None else space.with_remainder(tau)
    return fc.MatrixProblem(operator=np.eye(k), load=np.eye(k), observe=rng.standard_normal((9, k)), parameters=space)

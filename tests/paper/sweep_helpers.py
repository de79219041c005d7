"""One trial of the sweep rebuilt as a problem of the library."""

from dataclasses import dataclass

import numpy as np

import femcert as fc
from femcert.paper import Grid, Setting
from femcert.paper.experiments import poisson_problem
from femcert.paper.trials import draw, paper_mismatch, paper_truth

RULES = {
    "operational": fc.OperationalRadius(pde=0.05, bc=1.0, optimality=0.01),
    "residual": fc.ResidualRadius(),
    "exact": fc.ExactRadius(),
    "dominance": fc.Dominance(),
    "dominance, zeta = 0.05": fc.Dominance(zeta=0.05),
}


@dataclass(frozen=True)
class Single:
    problem: fc.Problem
    data: fc.Data
    baseline: fc.Candidate
    learned: fc.Candidate
    deviation: float

    def selection(self, name):
        """The library's decision; with zeta on data that know their covariance, where there is noise."""
        rule, data = RULES[name], self.data
        if name == "dominance, zeta = 0.05":
            if self.deviation > 0.0:
                variances = np.full(data.values.size, self.deviation**2)
                data = fc.Data(data.values, data.noise_level / self.deviation * (1.0 + 1e-12), covariance=variances)
            else:
                rule = fc.Dominance()
        return fc.no_harm(self.problem, data, baseline=self.baseline, learned=self.learned, rule=rule)


def single(setting: Setting, grid: Grid, seed: int, trial: int) -> Single:
    """Written with problem objects and solves, not with the sweep's algebra; the random numbers are the sweep's."""
    values = grid.values(np.array([trial]))
    m, row = int(values.sensors[0]), np.array([0])
    draws = draw(seed, trial, trial + 1, sites=setting.sites, dimension=setting.dimension)
    problem = poisson_problem(sites=draws.chosen(row, m)[0])
    truth = paper_truth()
    clean = problem.observe(problem.solve(problem.parameters.field(truth)))
    deviation = float(values.noise[0] * np.linalg.norm(clean) / np.sqrt(m))
    noise = deviation * draws.noise_normals(row, m)[0]
    data = fc.Data(clean + noise, float(np.linalg.norm(noise)))
    q = problem.parameters.field(truth + values.perturbation[0] * draws.perturbation_normals(row)[0])
    state = problem.solve(q) + values.mismatch[0] * paper_mismatch(problem)
    optimality = fc.reduced_gradient_norm(problem, data, q, weight=setting.weight)
    learned = fc.Candidate(state, q, optimality)
    return Single(problem, data, fc.Tikhonov(weight=setting.weight)(problem, data), learned, deviation)

"""A state with its derivatives, a problem for it, and its stochastic radius."""

import numpy as np
import zoo

import femcert as fc
from femcert.mesh.elements import mass_matrix
from femcert.residual.residuals import strong_field

PI = np.pi


class Sine:
    """``s sin(pi x) sin(pi y)`` plus a ripple, with its derivatives: what automatic differentiation would give."""

    def __init__(self, scale=1.0, ripple=0.0):
        self.scale, self.ripple = scale, ripple

    def __call__(self, x):
        return self.scale * np.prod(np.sin(PI * x), axis=0) + self.ripple * np.prod(np.sin(8 * PI * x), axis=0)

    def gradient(self, x):
        parts = []
        for i in range(len(x)):
            for s, k in ((self.scale, 1), (self.ripple, 8)):
                factors = np.sin(k * PI * x)
                factors[i] = k * PI * np.cos(k * PI * x[i])
                parts.append(s * np.prod(factors, axis=0))
        return np.array([parts[2 * i] + parts[2 * i + 1] for i in range(len(x))])

    def laplacian(self, x):
        d = len(x)
        ripple = self.ripple * np.prod(np.sin(8 * PI * x), axis=0)
        return -d * PI**2 * (self.scale * np.prod(np.sin(PI * x), axis=0) + 64.0 * ripple)


def square(level=4, **options):
    points = np.random.default_rng(0).uniform(0.2, 0.8, (6, 2))
    return zoo.source(zoo.square(level), parameters=(fc.EigenmodeSpace, 2), sensors=points, **options)


def load(x):
    return 2.0 * PI**2 * np.prod(np.sin(PI * x), axis=0)


def residual_values(problem, candidate):
    """Dof values of the discrete strong residual, a column for each time."""
    field = strong_field(problem, candidate.state, candidate.parameter)
    values = np.zeros((problem.basis.N, *field.shape[1:]))
    values[problem.free] = field
    return values


def population(problem, candidate):
    """Its root mean square over the domain and the times."""
    values = residual_values(problem, candidate).reshape(problem.basis.N, -1)
    M = mass_matrix(problem.basis)
    return np.sqrt(np.einsum("ij,ij->", values, M @ values) / M.sum() / values.shape[1])


def certified(problem, candidate, **options):
    data = fc.Data(np.zeros(problem.observation_count), 0.1)
    return fc.certify(problem, data, candidate, fc.StochasticRadius(covered=False, **options))

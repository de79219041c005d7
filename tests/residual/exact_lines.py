"""Random problems on lines with piecewise polynomial solutions, so that the energy error of any state is known."""

import numpy as np
from exact_cases import CONTRAST, STATES
from numpy.polynomial import Polynomial
from plain import any_source
from skfem import Basis, ElementLineP1, ElementLineP2, MeshLine

import femcert as fc
from femcert.mesh.sample import Sampler

ELEMENTS = {"P1": ElementLineP1, "P2": ElementLineP2}
ENDS = {"left": lambda x: x[0] < 1e-12, "right": lambda x: x[0] > 1.0 - 1e-12}


def random_line(rng):
    """Random or graded nodes with one in the middle; elements in any order, some of them from right to left."""
    inner = rng.random(rng.integers(1, 40)) if rng.random() < 0.5 else np.linspace(0, 1, 20) ** rng.uniform(1, 5)
    x = np.unique(np.r_[0.0, inner, 0.5, 1.0])
    t = np.vstack([np.arange(len(x) - 1), np.arange(1, len(x))])
    flip = rng.random(t.shape[1]) < 0.3
    t[:, flip] = t[::-1][:, flip]
    return MeshLine(x[None], t[:, rng.permutation(t.shape[1])]).with_boundaries(ENDS)


class LineCase:
    """``-(a u')' + c u = f`` with ``a u'`` a polynomial F, or with u one."""

    def __init__(self, element, seed):
        rng = np.random.default_rng([seed, *map(ord, element)])
        mesh = random_line(rng)
        coefficient = rng.choice(["constant", "linear", "jump"])
        self.c = float(rng.choice([0.0, 3.0])) if coefficient != "jump" else 0.0
        degree = 2 if self.c else 4 - (coefficient == "linear")
        right = mesh.p[0, mesh.t].mean(axis=0) > 0.5
        self.pieces = (Polynomial(rng.standard_normal(degree + 1)),) * 2
        if coefficient == "constant":
            self.a = (Polynomial([rng.uniform(0.2, 5.0)]),) * 2
            conductivity = float(self.a[0].coef[0])
        elif coefficient == "linear":
            self.a = (Polynomial([1.0, 2.0]),) * 2
            conductivity = fc.Polynomial(lambda x: 1.0 + 2.0 * x[0], 1)
        else:
            low, high = (1.0, CONTRAST)[:: rng.choice([-1, 1])]
            self.a = Polynomial([low]), Polynomial([high])
            F = Polynomial(rng.standard_normal(4))
            self.pieces = tuple(F.integ(lbnd=0.5) / a.coef[0] + 1.0 for a in self.a)
            conductivity = np.where(right, high, low)
        self.right = right
        flux = [a * u.deriv() for a, u in zip(self.a, self.pieces, strict=True)]
        f = -flux[0].deriv() + self.c * self.pieces[0]
        self.boundary = rng.choice(["dirichlet", "neumann", "robin"])
        conditions = {"dirichlet": {"left": self.pieces[0](0.0), "right": self.pieces[1](1.0)}}
        self.alpha = float(rng.uniform(0.5, 5.0)) if self.boundary == "robin" else 0.0
        if self.boundary != "dirichlet":
            del conditions["dirichlet"]["right"]
            g = float(flux[1](1.0) + self.alpha * self.pieces[1](1.0))
            conditions |= {"robin": {"right": (self.alpha, g)}} if self.alpha else {"neumann": {"right": g}}
        basis, source = Basis(mesh, ELEMENTS[element]()), Basis(mesh, ElementLineP2())
        self.problem = any_source(basis, source, conductivity=conductivity, reaction=self.c, **conditions)
        self.parameter = f(source.doflocs[0])
        kind = STATES[seed % 3]
        self.state = self.problem.solve(self.parameter).copy()
        free = self.problem.free
        if kind == "waves":
            self.state[free] += 0.06 * np.sin(15 * np.pi * basis.doflocs[0, free])
        if kind == "noise" or self.error() < 1e-8:
            self.state[free] += 10.0 ** rng.uniform(-3, -1) * rng.standard_normal(len(free))
        self.name = f"seed {seed}: {coefficient}, {self.boundary}, c = {self.c}, {kind}, {mesh.nelements} elements"

    def error(self):
        """Energy norm of the error, by quadrature of high order."""
        basis = self.problem.basis
        sampler = Sampler(basis.mesh, 20)
        x, right = sampler.x[0], self.right[:, None]
        slope = np.where(right, self.pieces[1].deriv()(x), self.pieces[0].deriv()(x))
        value = np.where(right, self.pieces[1](x), self.pieces[0](x)) - sampler.values(basis, self.state)
        slope = slope - sampler.gradients(basis, self.state)[0]
        a = np.where(right, self.a[1](x), self.a[0](x))
        end = self.pieces[1](1.0) - self.state[basis.nodal_dofs[0, np.argmax(basis.mesh.p[0])]]
        return np.sqrt(float(sampler.integral(a * slope**2 + self.c * value**2).sum()) + self.alpha * end**2)

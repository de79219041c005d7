"""Pairs of femcert and what one would pick instead, each a function without arguments to be timed.

A case is made for a number of dofs. Peers that are not installed raise `ImportError` here, and are left out.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import eigsh, splu
from scipy.spatial import Delaunay
from skfem import Basis, BilinearForm, ElementTriP1, LinearForm, MeshTri, condense, solve
from skfem.helpers import dot, grad

import femcert as fc
from femcert.linalg import Factorization, smallest_eigenpairs, use_backend
from femcert.mesh.assembly import DiffusionPattern, diffusion

laplace = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)))
mass = BilinearForm(lambda u, v, w: u * v)
unit = LinearForm(lambda v, w: 1.0 * v)


@dataclass
class Case:
    """What is compared: two calls that are timed, the least ratio ``peer / ours`` that is wanted, and the size."""

    name: str
    peer: str
    ours: object
    theirs: object
    bar: float | None
    size: str


def square(dofs):
    """The unit square with about so many vertices, each cell of a grid cut in two."""
    line = np.linspace(0.0, 1.0, round(dofs**0.5))
    return MeshTri.init_tensor(line, line)


def irregular(dofs):
    """The unit square with about so many vertices, as mesh generators cut it: a Delaunay mesh of a grid with noise."""
    mesh = square(dofs)
    p, inner = mesh.p.copy(), mesh.interior_nodes()
    p[:, inner] += 0.35 * np.random.default_rng(0).uniform(-1.0, 1.0, (2, len(inner))) / (dofs**0.5 - 1.0)
    return MeshTri(p, Delaunay(p.T).simplices.T.astype(np.int32))


def fresh(mesh):
    """The mesh without what was computed of it before."""
    return MeshTri(mesh.p, mesh.t)


def inner_matrices(mesh):
    """Stiffness and mass on the inner vertices."""
    basis = Basis(mesh, ElementTriP1())
    free = mesh.interior_nodes()
    return [form.assemble(basis).tocsr()[free][:, free] for form in (laplace, mass)]


def source_problem(mesh):
    """The problem of a source on all of the mesh, with one sensor."""
    basis = Basis(mesh, ElementTriP1())
    sensor = csr_matrix(([1.0], ([0], [basis.N // 2])), shape=(1, basis.N))
    return fc.EllipticSource(basis, parameters=fc.FullSpace(basis), sensors=fc.MatrixSensors(sensor))


def mesh_to_state(mesh, backend):
    """The state of the source 1."""
    with use_backend(backend):
        return source_problem(fresh(mesh)).solve(np.ones(mesh.nvertices))


def plain_state(mesh, source=None):
    """The same by a plain scikit-fem script."""
    mesh = fresh(mesh)
    basis = Basis(mesh, ElementTriP1())
    b = unit.assemble(basis) if source is None else mass.assemble(basis) @ source
    return solve(*condense(laplace.assemble(basis), b, D=mesh.boundary_nodes()))


def default_factorization(mesh):
    """SuperLU as it is called here, and as it is called by default."""
    A = inner_matrices(mesh)[0].tocsc()

    def ours():
        with use_backend("superlu"):
            Factorization(A, definite=True)

    return Case("factorization, checks included", "scipy's splu", ours, partial(splu, A), 1.8, f"{A.shape[0]} unknowns")


def direct_pardiso(mesh):
    """PARDISO with all checks, and called directly."""
    import pypardiso
    from scipy.sparse import triu

    A = inner_matrices(mesh)[0]

    def ours():
        with use_backend("pardiso"):
            Factorization(A, definite=True)

    # Made once: it searches the disk for its library.
    solver = pypardiso.PyPardisoSolver(mtype=2)

    def theirs():
        solver.factorize(triu(A, format="csr"))
        solver.free_memory(everything=True)

    name, size = "factorization with PARDISO, checks included", f"{A.shape[0]} unknowns"
    return Case(name, "PARDISO alone", ours, theirs, 1.0 / 1.2, size)


def scikit_fem_solve(mesh, backend):
    """From the mesh to the state."""
    bar = 8.0 if backend == "pardiso" else None
    name, size = f"mesh to state, {backend}", f"{mesh.nvertices} dofs"
    return Case(name, "plain scikit-fem", partial(mesh_to_state, mesh, backend), partial(plain_state, mesh), bar, size)


def forward_map(dofs):
    """Twelve columns of a forward map with one factorization, and twelve solves of a plain script."""
    mesh = square(dofs)
    basis = Basis(mesh, ElementTriP1())
    sensors = fc.AverageSensors(basis, np.random.default_rng(0).uniform(0.1, 0.9, (20, 2)), radius=0.05)
    space = fc.SineSpace(basis, 12)

    def ours():
        return fc.EllipticSource(basis, parameters=space, sensors=sensors).forward_matrix()

    def theirs():
        return np.column_stack([sensors.matrix @ plain_state(mesh, column) for column in space.matrix.T])

    return Case("forward map, 12 columns", "plain scikit-fem", ours, theirs, None, f"{mesh.nvertices} dofs")


def point_location(dofs, count):
    """Point sensors on an irregular mesh."""
    basis = Basis(irregular(dofs), ElementTriP1())
    points = np.random.default_rng(0).uniform(0.05, 0.95, (count, 2))
    bar = 500.0 if count == 2000 else None
    size = f"{count} points, {basis.N} dofs"
    ours, theirs = partial(fc.PointSensors, basis, points), partial(basis.probes, points.T)
    return Case("point sensors", "basis.probes", ours, theirs, bar, size)


def eigenpairs(dofs):
    """Ten eigenpairs."""
    K, M = inner_matrices(square(dofs))
    name, size = "10 eigenpairs, residuals checked", f"{K.shape[0]} unknowns"
    ours, theirs = partial(smallest_eigenpairs, K, M, 10), partial(eigsh, K, k=10, M=M, sigma=0.0)
    return Case(name, "scipy's eigsh", ours, theirs, None, size)


def reassembly(dofs):
    """The matrix of a new conductivity, one number an element, on a mesh that was seen before."""
    basis = Basis(square(dofs), ElementTriP1())
    pattern = DiffusionPattern(basis)
    a = 1.0 + np.random.default_rng(0).random((basis.mesh.nelements, 1))
    points = np.repeat(a, basis.dx.shape[1], axis=1)
    ours, theirs = partial(pattern.matrix, a), partial(diffusion.assemble, basis, a=points)
    return Case("assembly, new conductivity", "scikit-fem's assembly", ours, theirs, 30.0, f"{basis.N} dofs")


def ngsolve_solve(mesh, inverse, threads, bar):
    """From the mesh to the state by NGSolve: its own factorization or MKL's, as it is or on all threads."""
    import ngsolve as ng

    other = _ngsolve_mesh(mesh)

    def theirs():
        space = ng.H1(other, order=1, dirichlet=".*")
        u, v = space.TnT()
        a = ng.BilinearForm(ng.grad(u) * ng.grad(v) * ng.dx, symmetric=True).Assemble()
        f = ng.LinearForm(v * ng.dx).Assemble()
        state = ng.GridFunction(space)
        state.vec.data = a.mat.Inverse(space.FreeDofs(), inverse=inverse) * f.vec
        return state.vec.FV().NumPy()

    def theirs_on_all_threads():
        with ng.TaskManager():
            return theirs()

    state = mesh_to_state(mesh, "pardiso")
    assert np.abs(theirs() - state).max() <= 1e-9 * np.abs(state).max()
    peer = "NGSolve" + (" with MKL" if inverse == "pardiso" else "") + (", TaskManager" if threads else "")
    ours, call = partial(mesh_to_state, mesh, "pardiso"), theirs_on_all_threads if threads else theirs
    return Case("mesh to state, pardiso", peer, ours, call, bar, f"{mesh.nvertices} dofs")


def _ngsolve_mesh(mesh):
    """The same mesh in NGSolve."""
    import ngsolve as ng
    from netgen import meshing

    result = meshing.Mesh(dim=2)
    result.AddPoints(np.ascontiguousarray(mesh.p.T))
    result.Add(meshing.FaceDescriptor(surfnr=1, domin=1, domout=0, bc=1))
    result.AddElements(dim=2, index=1, data=np.ascontiguousarray(mesh.t.T, dtype=np.int32), base=0)
    edges = mesh.facets[:, mesh.boundary_facets()]
    result.AddElements(dim=1, index=1, data=np.ascontiguousarray(edges.T, dtype=np.int32), base=0)
    return ng.Mesh(result)


def _pymor_model(dofs):
    from pymor.analyticalproblems.domaindescriptions import RectDomain
    from pymor.analyticalproblems.elliptic import StationaryProblem
    from pymor.analyticalproblems.functions import ConstantFunction
    from pymor.core.logger import set_log_levels
    from pymor.discretizers.builtin import discretize_stationary_cg
    from pymor.discretizers.builtin.grids.boundaryinfos import AllDirichletBoundaryInfo
    from pymor.discretizers.builtin.grids.tria import TriaGrid

    set_log_levels({"pymor": "ERROR"})
    # Its triangles have a vertex in the middle of each cell.
    grid = TriaGrid((round((dofs / 2.0) ** 0.5),) * 2, RectDomain().domain)
    problem = StationaryProblem(domain=RectDomain(), rhs=ConstantFunction(1.0, 2), diffusion=ConstantFunction(1.0, 2))
    return discretize_stationary_cg(problem, grid=grid, boundary_info=AllDirichletBoundaryInfo(grid))[0]


def pymor_solve(dofs):
    """From the mesh to the state by pyMOR's built-in discretizer."""
    import pymor  # noqa: F401

    ours = partial(mesh_to_state, square(dofs), "pardiso")
    return Case("mesh to state, pardiso", "pyMOR", ours, lambda: _pymor_model(dofs).solve(), 6.0, f"about {dofs} dofs")


def pymor_estimator(dofs):
    """A state with a bound of its error: of the equation here, of the reduced model there."""
    from pymor.parameters.functionals import ConstantParameterFunctional
    from pymor.reductors.coercive import CoerciveRBReductor

    mesh = square(dofs)

    def ours():
        problem = source_problem(mesh)
        source = np.ones(problem.basis.N)
        return fc.dual_norm(problem, fc.Candidate(problem.solve(source), source)).upper

    def theirs():
        model = _pymor_model(dofs)
        product, one = model.h1_0_semi_product, ConstantParameterFunctional(1.0)
        reductor = CoerciveRBReductor(model, product=product, coercivity_estimator=one)
        reductor.extend_basis(model.solve())
        return reductor.reduce().estimate_error()

    return Case("state with an error bound", "pyMOR's estimator", ours, theirs, None, f"about {dofs} dofs")

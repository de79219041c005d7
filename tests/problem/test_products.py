"""Several unknowns at once: blocks, balls of factors, what is asked of one of them, and coverage."""

from __future__ import annotations

import meshio
import numpy as np
import pytest
from scipy.linalg import block_diag, null_space
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.stats import binom, ncx2
from skfem import BilinearForm
from skfem.helpers import dot, grad
from zoo import hits, inside_points, unit_basis

import femcert as fc

diffusion = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)))
ELSEWHERE = dict.fromkeys(("right", "bottom", "top"), 0.0)


def classes(basis):
    return {"source": fc.FullSpace(basis), "flux": fc.TraceSpace(basis, "left")}


def problem_of(basis, space, **options):
    chosen = {"operator": diffusion, "dirichlet": ELSEWHERE, "definite": True, **options}
    sensors = fc.PointSensors(basis, inside_points(basis, count=9))
    return fc.LinearProblem(basis, parameters=space, sensors=sensors, **chosen)


def bounded(basis, source=2.0, flux=3.0):
    found = classes(basis)
    return {
        "source": found["source"].within_ball(source, norm="h1", length=0.3),
        "flux": found["flux"].within_ball(flux, norm="h1", length=0.3),
    }


def test_blocks_are_those_of_the_factors():
    basis = unit_basis("tri P1", 4)
    parts = {"source": fc.CosineSpace(basis, 3), "flux": fc.TraceSpace(basis, "left")}
    space, rng = fc.ProductSpace(parts), np.random.default_rng(0)
    grams = block_diag(parts["source"].gram, parts["flux"].gram.toarray())
    assert space.gram.toarray() == pytest.approx(grams)
    assert (space.dimension, space.size) == (8, basis.N + 5)
    c = rng.standard_normal(8)
    fields = {"source": parts["source"].field(c[:3]), "flux": parts["flux"].field(c[3:])}
    q = space.join(fields)
    assert space.field(c) == pytest.approx(q)
    assert space.join(list(fields.values())) == pytest.approx(q)
    assert {name: field.tolist() for name, field in space.split_field(q).items()} == {
        name: field.tolist() for name, field in fields.items()
    }
    assert space.project(q)[0] == pytest.approx(c, rel=1e-10)
    assert space.norm(q) ** 2 == pytest.approx(sum(parts[name].norm(field) ** 2 for name, field in fields.items()))
    problem = problem_of(basis, space)
    states = [problem_of(basis, parts[name]).solve(field) for name, field in fields.items()]
    assert problem.solve(q) == pytest.approx(sum(states), rel=1e-11, abs=1e-13)
    w = rng.standard_normal((9, 1))
    assert np.sum(problem.forward.apply(q[:, None]) * w) == pytest.approx(q @ problem.forward.adjoint(w)[:, 0])


def test_a_matrix_is_a_column_of_numbers():
    """A background without a mesh: the known load times an unknown number."""
    basis = unit_basis("tri P1", 4)
    flux, load = fc.TraceSpace(basis, "left"), problem_of(basis, fc.FullSpace(basis)).load
    one = csr_matrix(load @ np.ones((basis.N, 1)))
    space = fc.ProductSpace([flux, fc.CoordinateSpace(1)])
    problem = problem_of(basis, space, load=[None, one])
    q = np.concatenate([np.ones(flux.size), [2.0]])
    both = fc.ProductSpace([flux, fc.FullSpace(basis)])
    expected = problem_of(basis, both).solve(np.concatenate([np.ones(flux.size), np.full(basis.N, 2.0)]))
    assert problem.solve(q) == pytest.approx(expected, rel=1e-11, abs=1e-14)
    whole = problem_of(basis, space, load=problem.load)
    assert whole.solve(q) == pytest.approx(expected, rel=1e-11, abs=1e-14)


def test_a_part_is_a_factor_by_number_or_name():
    basis = unit_basis("tri P1", 4)
    space = fc.ProductSpace(bounded(basis))
    n, mean, flux = basis.N, fc.Mean(basis, lambda x: x[0] > 0.5), fc.Flux(basis, "left")
    chosen = np.arange(n + 5) >= n
    for part in (1, "flux", [1], ["flux"], slice(n, None), np.arange(n, n + 5), chosen):
        assert np.array_equal(space.interest(part).part.chosen, chosen)
    assert space.interest([0, 1]).part.chosen.all()
    q = np.random.default_rng(0).standard_normal(n + 5)
    parts = space.split_field(q)
    assert mean.value(space.interest(0), q) == pytest.approx(mean.value(space.spaces[0], parts["source"]))
    assert flux.value(space.interest(1), q) == pytest.approx(flux.value(space.spaces[1], parts["flux"]))
    for part in (2, "fluxes", -1, None, True):
        with pytest.raises(fc.InputError):
            space.interest(part)
    for unclear in (space, space.interest([0, 1])):
        with pytest.raises(fc.InputError, match=r"expected a class with space.interest\(factor\)"):
            mean.value(unclear, q)
    # The flux of a field in the domain is that of its trace.
    assert flux.value(space.interest(0), q) == pytest.approx(flux.value(space.spaces[0], parts["source"]))


def test_interval_is_that_of_the_assembled_ball():
    basis = unit_basis("tri P1", 4)
    parts = bounded(basis)
    problem = problem_of(basis, fc.ProductSpace(parts).interest("flux"))
    L = block_diag(*(0.5 * p.form("h1", 0.3).toarray() / p.ball.radius**2 for p in parts.values()))
    n, k = basis.N, basis.N + 5
    plain = fc.CoordinateSpace(k, gram=problem.parameters.weight)
    plain = plain.within_ball(1.0, norm=csr_matrix(L)).interest(slice(n, k))
    other = fc.ForwardMap(problem.forward_matrix(), parameters=plain)
    data = fc.Data.gaussian(np.random.default_rng(0).standard_normal(9) * 0.1, std=0.01)
    mean = fc.Flux(basis, "left")
    weights = mean.of_fields(parts["flux"])
    one, two = fc.evidence(problem, data).interval(mean), fc.evidence(other, data).interval(weights)
    assert one.estimate == pytest.approx(two.estimate, rel=1e-7)
    assert one.half_length == pytest.approx(two.half_length, rel=1e-7)
    assert "(as one ball, shares 0.5, 0.5)" in one.claim
    # One ball alone is that of the factor, whose own problem has shorter intervals: it knows the source.
    alone = fc.evidence(problem_of(basis, parts["flux"]), data).interval(mean)
    assert alone.half_length < one.half_length


def test_shares_make_intervals_as_short_as_the_product_allows():
    """Over the product the bias is ``sum rho_i t_i``: that of the ball, if the shares are like these terms."""
    basis = unit_basis("tri P1", 4)
    parts, mean, data = bounded(basis, source=0.3), fc.Flux(basis, "left"), fc.Data.gaussian(np.zeros(9), std=0.01)

    def half(share):
        space = fc.ProductSpace(parts, shares=[share, 1.0 - share]).interest("flux")
        return fc.evidence(problem_of(basis, space), data).interval(mean).half_length

    found = [half(share) for share in np.linspace(0.05, 0.95, 37)]
    assert half(0.5) == pytest.approx(found[18])
    # The product, by the weights of each ball: no affine interval of the product is shorter than the best of these.
    F = [problem_of(basis, part).forward_matrix() / 0.01 for part in parts.values()]
    inverse = [part.ball.radius**2 * np.linalg.inv(part.form("h1", 0.3).toarray()) for part in parts.values()]
    psi = mean.of_fields(parts["flux"])

    def of_product(a):
        reached = (F[0].T @ a, F[1].T @ a - psi)
        bias = sum(np.sqrt(r @ inverse[i] @ r) for i, r in enumerate(reached))
        size = np.linalg.norm(a)
        return size * np.sqrt(ncx2.ppf(0.95, 1, (bias / size) ** 2)) if size else bias

    start = np.linalg.lstsq(np.vstack([F[1].T, 0.1 * F[0].T]), np.concatenate([psi, np.zeros(basis.N)]), rcond=None)[0]
    best = min(minimize(of_product, s * start, method="Powell", options={"maxiter": 60}).fun for s in (1.0, 0.3))
    assert min(found) == pytest.approx(best, rel=0.01)
    assert min(found) < 0.99 * half(0.5)


def test_factors_without_a_ball_are_free():
    """The same as the data that they do not reach."""
    basis = unit_basis("tri P1", 4)
    source = fc.CosineSpace(basis, 8).within_ball(2.0, norm="h1", length=0.3)
    flux = fc.TraceSpace(basis, "left", functions=[lambda x: 1.0 + 0.0 * x[0], lambda x: x[1]])
    problem = problem_of(basis, fc.ProductSpace([source, flux]).interest(0))
    F = problem.forward_matrix()
    Z = null_space(F[:, 8:].T)
    form = csr_matrix(source.ball_of_coordinates)
    rest = fc.CoordinateSpace(8, gram=source.gram).within_ball(2.0, norm=form)
    apart = fc.ForwardMap(Z.T @ F[:, :8], parameters=rest)
    y, psi = np.random.default_rng(0).standard_normal(9), np.arange(8.0)
    one = fc.evidence(problem, fc.Data.gaussian(y, std=0.01)).interval(psi)
    two = fc.evidence(apart, fc.Data.gaussian(Z.T @ y, std=0.01)).interval(psi)
    assert one.estimate == pytest.approx(two.estimate, rel=1e-6)
    assert one.half_length == pytest.approx(two.half_length, rel=1e-6)
    # A ball that leaves the rest free, said in the other way.
    with pytest.raises(fc.UncertifiedError, match="no norm binds q1"):
        problem.parameters.ball_form  # noqa: B018


@pytest.mark.parametrize("part", ["source", "flux"])
def test_coverage_on_the_edge_of_both_balls(part):
    basis = unit_basis("tri P1", 5)
    parts = bounded(basis)
    space = fc.ProductSpace(parts).interest(part)
    problem = problem_of(basis, space)
    shapes = {"source": np.cos(basis.doflocs[0]), "flux": 1.0 + parts["flux"].points[1]}
    truth = space.join({n: f * 0.9999 * parts[n].ball.radius / parts[n].ball_norm(f) for n, f in shapes.items()})
    assert space.ball_norm(truth) == pytest.approx(0.9999 * space.ball.radius)
    asked = fc.Mean(basis) if part == "source" else fc.Flux(basis, "left")
    value, exact = asked.value(space, truth), problem.observe(problem.solve(truth))
    found = fc.evidence(problem, fc.Data.gaussian(exact, std=0.01))
    assert hits(found, exact, 0.01, asked, value, seed=5) >= binom.ppf(0.005, 200, 0.95)


def test_selection_of_both_unknowns():
    """Rarely, at most in one of twenty, a candidate is taken that is farther from the truth."""
    basis = unit_basis("tri P1", 5)
    flux = fc.TraceSpace(basis, "left", functions=[lambda x: 1.0 + 0.0 * x[0]])
    space = fc.ProductSpace({"source": fc.CosineSpace(basis, 2), "flux": flux})
    problem, truth = problem_of(basis, space), np.array([1.0, -0.5, 2.0])
    exact, worse, accepted = problem.observe(problem.solve(space.field(truth))), 0, 0
    rng, std = np.random.default_rng(6), 0.002
    for _ in range(200):
        data = fc.Data.gaussian(exact + std * rng.standard_normal(9), std=std)
        learned = space.field(truth + 0.15 * rng.standard_normal(3))
        candidate, baseline = fc.Candidate(problem.solve(learned), learned), fc.Tikhonov(weight=1000.0)
        selection = fc.no_harm(problem, data, baseline=baseline, learned=candidate, rule=fc.Dominance())
        errors = [space.norm(q - space.field(truth)) for q in (learned, baseline(problem, data).parameter)]
        accepted += selection.accepted
        worse += selection.accepted and errors[0] > errors[1]
    assert 20 < accepted < 180
    assert worse <= 200 - binom.ppf(0.01, 200, 0.95)


def test_bounds_centres_and_samples_are_those_of_the_factors():
    basis = unit_basis("tri P1", 4)
    source, flux = classes(basis).values()
    samples = np.random.default_rng(0).standard_normal((40, flux.size))
    parts = [
        source.within_ball(2.0, centre=np.ones(basis.N)).within_bounds(lower=0.0),
        flux.within_ball(samples=samples, norm="l2", confidence=0.9),
    ]
    space = fc.ProductSpace(parts)
    assert space.alpha == pytest.approx(0.1)
    assert space.ball.centre.tolist() == [1.0] * basis.N + [0.0] * 5
    assert (space.bounds.lower[0], space.bounds.lower[-1]) == (0.0, -np.inf)
    evidence = fc.evidence(problem_of(basis, space.interest(0)), fc.Data.gaussian(np.zeros(9), std=0.1))
    assert evidence.confidence == pytest.approx(0.85)


def test_fields_and_page_of_a_selection(tmp_path):
    basis = unit_basis("tri P1", 4)
    flux = fc.TraceSpace(basis, "left", functions=[lambda x: 1.0 + x[1]])
    space = fc.ProductSpace({"source": fc.CosineSpace(basis, 2), "flux": flux, "level": fc.CoordinateSpace(1)})
    load = np.asarray(problem_of(basis, fc.FullSpace(basis)).load @ np.exp(basis.doflocs[0]))[:, None]
    problem = problem_of(basis, space, load={"source": None, "flux": None, "level": csr_matrix(load)})
    truth = space.field([1.0, -0.5, 2.0, 0.5])
    data = problem.simulate(truth, noise=0.01, seed=0)
    candidate = fc.Candidate(problem.solve(truth), truth)
    rule, baseline = fc.Dominance(), fc.Tikhonov(weight=1.0)
    selection = fc.no_harm(problem, data, baseline=baseline, learned=candidate, rule=rule)
    read = meshio.read(fc.write_fields(selection, tmp_path / "fields.vtu"))
    known = read.point_data["learned_parameter_flux"]
    assert known[flux.dofs] == pytest.approx(2.0 * (1.0 + flux.points[1]))
    assert np.isnan(np.delete(known, flux.dofs)).all()
    assert read.point_data["learned_parameter_source"] == pytest.approx(space.split_field(truth)["source"])
    assert read.point_data["learned_state"] == pytest.approx(candidate.state)
    assert not any("level" in name for name in read.point_data)
    page = fc.write_report(selection, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The parameter is no field in the domain" in page
    assert "The state" in page
    with pytest.raises(fc.InputError, match="this problem's parameters are none"):
        fc.plot_selection(selection, problem, tmp_path / "picture.png")


def test_refusals():
    basis = unit_basis("tri P1", 4)
    source, flux = classes(basis).values()
    space, far = fc.ProductSpace([source, flux]), fc.TraceSpace(unit_basis("tri P1", 5), "left")
    for deed, word in (
        (lambda: fc.ProductSpace([]), "at least one"),
        (lambda: fc.ProductSpace(source), "a list of spaces"),
        (lambda: fc.ProductSpace([source, 1]), "expected a space"),
        (lambda: fc.ProductSpace({"u": source}), "called 'u'"),
        (lambda: fc.ProductSpace([source, source.interest(slice(0, 3))]), "without them"),
        (lambda: fc.ProductSpace([source, source.with_remainder(0.0)]), "without them"),
        (lambda: fc.ProductSpace([space]), "without them"),
        (lambda: fc.ProductSpace([source, flux], shares=[1.0]), "shares"),
        (lambda: fc.ProductSpace([source, flux], shares=[1.0, 0.0]), "shares"),
        (lambda: space.within_ball(1.0, norm="h1"), "sparse matrix of a norm"),
        (lambda: space.join([np.zeros(basis.N)]), "one for each of"),
        (lambda: problem_of(basis, space, load=diffusion), "BilinearForm came for a product"),
        (lambda: problem_of(basis, space, load=[None]), "1 forms came"),
        (lambda: problem_of(basis, space, load={"q0": None, "flux": None}), "one for each of"),
        (lambda: problem_of(basis, fc.ProductSpace([source, far])), "another mesh"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()

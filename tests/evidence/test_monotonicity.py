"""Monotonicity: what is proved is true for any truth; margins on a strip by hand; errors; what is refused."""

import numpy as np
import pytest
from bodies import disc, model, strip
from skfem import Basis, ElementTriP0, ElementTriP1, MeshTri

import femcert as fc

HALVES = {
    f"{side} half": lambda x, a=a, b=b: a * x[0] + b * x[1] > 0.0
    for side, (a, b) in {"right": (1, 0), "top": (0, 1), "left": (-1, 0), "bottom": (0, -1)}.items()
}


def two_ends(**options):
    basis = strip()
    space = fc.FullSpace(basis.with_element(ElementTriP0()))
    problem = fc.ElectrodeModel(
        basis, electrodes=["left", "right"], impedances=[0.2, 0.7], parameters=space, conductivity=2.0, **options
    )
    return problem, basis.mesh.p[0, basis.mesh.t].mean(axis=0)


def test_margins_of_a_strip_by_hand():
    """With C = (1, -1) / 2^1/2 forms are half of the resistances: 1/4 of a third of the strip, 1/8 if twice as good."""
    problem, x = two_ends()
    data = problem.simulate(np.where((x > 1.0) & (x < 2.0), np.log(2.0), 0.0))
    # S = -1/8; shorted outside of the region D = -(rest) / 2.
    found = fc.monotonicity(problem, data, lambda x: x[0] > 0.0, error=0.01, model_error=0.0)
    assert found.above_by == pytest.approx(0.125 - 0.01, rel=1e-9)
    assert found.below_by == pytest.approx(-0.125 - 0.01, rel=1e-9)
    found = fc.monotonicity(problem, data, lambda x: x[0] < 2.0, error=0.01, model_error=0.1)
    assert found.above_by == pytest.approx(0.125 - 1.1 * 0.25 - 0.01, rel=1e-9)
    # No current passes a part of the strip alone: nothing about worse matter.
    assert found.below_by == -np.inf
    assert not found.above
    assert not found.below
    # Worse matter in one third, more than the others could make up for: proved for the whole strip only.
    data = problem.simulate(np.where(x < 1.0, -np.log(3.0), 0.0))
    found = fc.monotonicity(problem, data, lambda x: x[0] > 0.0, error=0.01, model_error=0.1)
    assert found.below_by == pytest.approx(0.5 - 0.01, rel=1e-9)
    assert (found.above, found.below, found.label) == (False, True, "proved")
    assert found.margin == found.below_by


def test_what_is_proved_is_true():
    """Random matter of both signs, another mesh, other impedances and gains: decisions are never wrong."""
    fine, coarse = disc(refined=2), disc(refined=1)
    problem = model(coarse)
    zero = np.zeros(fine.N)
    decided = {"above": 0, "below": 0}
    rng = np.random.default_rng(3)
    middles = fine.doflocs
    for _ in range(30):
        q = np.zeros(fine.N)
        for _ in range(rng.integers(1, 4)):
            r, angle = rng.uniform(0.3, 0.9), rng.uniform(0.0, 2.0 * np.pi)
            near = np.hypot(middles[0] - r * np.cos(angle), middles[1] - r * np.sin(angle)) < rng.uniform(0.15, 0.35)
            q[near] = rng.choice([-2.0, 2.0])
        options = {"impedances": 0.1 * rng.uniform(0.8, 1.2, 8), "gains": 1.0 + 0.01 * rng.standard_normal(8)}
        true = model(fine, **options)
        noise = 1e-4 * rng.standard_normal((2, 49))
        data, empty = (fc.Data(true.predict(None, each) + e, 0.1) for each, e in zip((q, zero), noise, strict=True))
        for region in HALVES.values():
            found = fc.monotonicity(problem, data, region, reference=empty, model_error=0.1)
            assert found.label == "estimate"
            # Between nodes the exponent is interpolated: what touches the region counts.
            touched = fine.mesh.t[:, region(fine.mesh.p[:, fine.mesh.t].mean(axis=1))]
            assert not found.above or np.any(q[touched] > 0.0)
            assert not found.below or np.any(q[touched] < 0.0)
            decided["above"] += found.above
            decided["below"] += found.below
    assert min(decided.values()) >= 20


@pytest.mark.parametrize("seed", range(3))
def test_noise_level_of_the_data_bounds_the_error(seed):
    basis = disc()
    rng = np.random.default_rng(seed)
    problem = model(basis, gains=rng.uniform(0.9, 1.1, 8))
    q = np.where(basis.doflocs[0] > 0.5, 1.5, 0.0)
    exact = problem.predict(None, q)
    std = rng.uniform(1e-4, 3e-4, 49)
    data = fc.Data.gaussian(exact + std * rng.standard_normal(49), std=std)
    found = fc.monotonicity(problem, data, HALVES["right half"], error="noise", model_error=0.0)
    assert (found.above, found.below, found.confidence) == (True, False, 0.95)
    # The mesh may err where it simulates the background.
    assert found.label == "estimate"
    contacts = problem.electrodes
    form, norm = contacts.measured_form(data.values)
    off = form - contacts.measured_form(exact)[0]
    assert np.linalg.norm(off + off.T, 2) / 2.0 <= found.error <= norm * data.noise_level * std.max() / 4.0
    assert np.linalg.norm(off, 2) <= norm * np.linalg.norm(data.values - exact)
    both = fc.monotonicity(problem, data, HALVES["right half"], reference=data, error="noise", model_error=0.0)
    assert both.error == pytest.approx(2.0 * found.error)
    assert both.label == "proved"
    assert both.confidence == pytest.approx(0.9)
    assert not both.above


def test_with_the_noise_level_wrong_statements_are_as_rare_as_said():
    """Conductive matter close to the half that is asked about, noise of many sizes: at most 5 % may be wrong."""
    basis = disc()
    problem = model(basis)
    x = basis.doflocs[0]
    exact = problem.predict(None, np.where(x < -0.05, 1.5, np.where(x > 0.4, -1.0, 0.0)))
    rng = np.random.default_rng(0)
    said = np.zeros((60, 2), dtype=bool)
    for i, size in enumerate(np.logspace(-4.0, -1.0, 60)):
        data = fc.Data.gaussian(exact + size * rng.standard_normal(49), std=size)
        found = fc.monotonicity(problem, data, HALVES["right half"], error="noise", model_error=0.0)
        said[i] = found.above, found.below
    # More than 8 of 60 have a probability below 1 %.
    assert said[:, 0].sum() <= 8
    assert said[:, 1].sum() >= 30


@pytest.mark.parametrize("correlated", [False, True])
def test_noise_of_the_form_has_the_quantile_of_its_norm(correlated):
    """The symmetric part of simulated errors, in the norm of Frobenius: at most 5 % are larger, and not far fewer."""
    problem = model(disc())
    rng = np.random.default_rng(1)
    root = np.diag(rng.uniform(1e-3, 3e-3, 49))
    if correlated:
        root += np.tril(rng.uniform(0.0, 3e-4, (49, 49)))
    data = fc.Data.gaussian(np.ones(49), covariance=root @ root.T)
    found = fc.monotonicity(problem, data, HALVES["right half"], error="noise", model_error=0.0)
    errors, _ = problem.electrodes.measured_form(root @ rng.standard_normal((49, 2000)))
    one, _ = problem.electrodes.measured_form(root[:, 0])
    assert one.shape == errors.shape[:2] == (7, 7)
    larger = np.mean(np.linalg.norm(errors + errors.transpose(1, 0, 2), axis=(0, 1)) / 2.0 > found.error)
    # Four deviations of a share of 2000 draws are 0.02.
    assert 0.03 <= larger <= 0.07


def test_the_usual_guess_is_twice_what_is_not_symmetric():
    basis = disc()
    problem = model(basis)
    zero = np.zeros(basis.N)
    exact = problem.predict(None, zero)
    E = 1e-3 * np.random.default_rng(0).standard_normal(49)
    found = fc.monotonicity(problem, fc.Data(exact + E, 1.0), HALVES["top half"], model_error=0.0)
    error, _ = problem.electrodes.measured_form(E)
    assert found.error == pytest.approx(np.linalg.norm(error - error.T, 2), rel=1e-6)
    assert found.margin < 0.0
    assert "nothing is known of" in str(found)


def test_in_words():
    problem, x = two_ends()
    data = problem.simulate(np.where(x < 1.0, -1.0, 0.0))
    found = fc.monotonicity(problem, data, np.arange(len(x)), error=0.01, model_error=0.05)
    claim = "somewhere in region there is matter that conducts worse than the background, given errors of 0.01 and 5 %"
    assert found.claim == claim
    assert f"{claim} (proved)" in str(found)
    assert "nothing" in repr(fc.monotonicity(problem, data, np.arange(2), error=9.0, model_error=0.0))


def test_refused():
    problem, x = two_ends()
    data = problem.simulate(0.0 * x)
    with pytest.raises(fc.UncertifiedError, match="one current has no part"):
        fc.monotonicity(problem, data, lambda x: x[0] > 1.0, model_error=0.0)
    with pytest.raises(fc.InputError, match="error is 'guess'; expected"):
        fc.monotonicity(problem, data, lambda x: x[0] > 1.0, model_error=0.0, error="guess")
    with pytest.raises(fc.InputError, match=r"model_error is -0\.1"):
        fc.monotonicity(problem, data, lambda x: x[0] > 1.0, model_error=-0.1, error=0.0)
    basis = disc()
    few = model(basis, voltages=np.eye(8)[:, :3])
    with pytest.raises(fc.UncertifiedError, match="do not determine the potentials"):
        fc.monotonicity(few, few.simulate(np.zeros(basis.N)), HALVES["top half"], model_error=0.0)
    whole = model(basis)
    values = whole.predict(None, np.zeros(basis.N)).copy()
    values[3] = np.nan
    with pytest.raises(fc.UncertifiedError, match="readings are missing"):
        fc.monotonicity(whole, fc.Data.gaussian(values, std=1.0), HALVES["top half"], model_error=0.0)
    plain = Basis(MeshTri().refined(2), ElementTriP1())
    source = fc.EllipticSource(plain, parameters=fc.SineSpace(plain, 2), sensors=fc.PointSensors(plain, [[0.5, 0.5]]))
    with pytest.raises(fc.UncertifiedError, match="electrodes that drive currents"):
        fc.monotonicity(source, fc.Data([1.0], 0.1), lambda x: x[0] > 0.5, model_error=0.0)

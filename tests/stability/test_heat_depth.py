"""Conditional stability of the heat equation backwards: logarithmic, and weaker the deeper in time one looks.

On the interval, with the state at time T seen in L2 and the ball ``‖q'‖ <= rho``, mode j is hidden up to

    eps_j = exp(-j² pi² T) rho / (j pi),   omega(eps_j) = rho / (j pi)

(the curve through these points is concave in squares, so that no mixture of modes hides better). Between modes its
slope in log-log is ``p = 1 / (1 + 2 pi² j² T)``, and ``omega ~ rho (T / log(rho / eps))^1/2`` for small eps.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import zoo
from scipy.optimize import brentq

import femcert as fc
from femcert.stability import Modulus

TIMES = (1e-4, 1e-3, 1e-2, 5e-2)
LOW, HIGH = 1e-7, 1e-3


@pytest.fixture(scope="module")
def basis():
    return zoo.unit_basis("line P2", 256)


@pytest.fixture(scope="module")
def moduli(basis):
    sensors = in_l2(basis)
    space = fc.SineSpace(basis, 140).within_ball(1.0, norm="h1-seminorm")
    return {
        T: Modulus(fc.HeatInitial(basis, parameters=space, sensors=sensors, times=T, scheme="exact")) for T in TIMES
    }


def in_l2(basis):
    """Sensors with ``‖H u‖ = ‖u‖`` in L2."""
    return fc.MatrixSensors(np.linalg.cholesky(fc.FullSpace(basis).weight.toarray()).T)


def hidden(j, T, rho):
    return np.exp(-((j * np.pi) ** 2) * T) * rho / (j * np.pi)


def mode(eps, T, rho):
    """The (fractional) j that an error eps hides."""
    return brentq(lambda j: np.log(rho / (j * np.pi * eps)) - (j * np.pi) ** 2 * T, 1e-3, 1e3)


def exponent(eps, T, rho):
    return 1.0 / (1.0 + 2.0 * np.pi**2 * mode(eps, T, rho) ** 2 * T)


@pytest.mark.parametrize("T", TIMES)
def test_single_modes_in_closed_form(moduli, T):
    modulus = moduli[T]
    assert modulus.radius == 2.0
    first, last = (int(mode(eps, T, 2.0)) for eps in (HIGH, LOW))
    for j in np.unique(np.linspace(max(first, 1), last, 4).astype(int)):
        assert modulus(hidden(j, T, 2.0)).value == pytest.approx(2.0 / (j * np.pi), rel=2e-3)


def test_the_exponent_falls_with_depth_in_time(moduli):
    found = {T: modulus.envelope(LOW, HIGH)[1] for T, modulus in moduli.items()}
    assert np.all(np.diff(list(found.values())) < -0.005)
    for T, p in found.items():
        # The formula at the middle of the range; the fit over four decades is a little above it, few modes below.
        assert p == pytest.approx(exponent(np.sqrt(LOW * HIGH), T, moduli[T].radius), rel=0.11)


@pytest.mark.parametrize("T", TIMES[:3])
def test_the_exponent_falls_with_the_noise(moduli, T):
    # Unlike a power: two more decades of precision are worth less and less. Late in time a range holds too few modes.
    ranges = list(pairwise((1e-8, 1e-6, 1e-4, 1e-2)))
    found = [moduli[T].envelope(low, high)[1] for low, high in ranges]
    assert found[0] < 0.75 * found[1] < 0.75**2 * found[2]
    for p, (low, high) in zip(found, ranges, strict=True):
        assert p == pytest.approx(exponent(np.sqrt(low * high), T, moduli[T].radius), rel=0.15)


def test_a_power_does_not_fall_with_the_noise(basis):
    # The same class and sensors, but a source: p = 1/3 at any noise that the modes resolve.
    space = fc.SineSpace(basis, 140).within_ball(1.0, norm="h1-seminorm")
    modulus = Modulus(fc.EllipticSource(basis, parameters=space, sensors=in_l2(basis)))
    for low, high in ((1e-6, 1e-5), (1e-5, 1e-4), (1e-4, 1e-3)):
        assert modulus.envelope(low, high)[1] == pytest.approx(1.0 / 3.0, abs=0.02)


@pytest.mark.parametrize("T", TIMES)
def test_logarithmic_law(moduli, T):
    modulus = moduli[T]
    levels = np.geomspace(LOW, HIGH, 9)
    law = modulus.radius * np.sqrt(T / np.log(modulus.radius / levels))
    ratio = np.array([bound.value for bound in modulus(levels)]) / law
    # log(rho/eps) is above (j pi)² T by log(j pi), so the law is below, the more the more modes there are.
    assert np.all((ratio >= 0.95) & (ratio <= 1.8))
    # Over four decades of noise; the cube root of the source problem would be off by a factor of 20.
    assert ratio.max() / ratio.min() <= 1.5

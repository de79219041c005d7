"""Sweeps, and ways to spare the drawing where pictures do not matter."""

import pytest
from pages import SMALL

from femcert import sweep
from femcert.paper import Validation
from femcert.paper.page import SWEEP_FIGURES
from femcert.paper.validate import validate
from femcert.report import style


@pytest.fixture(scope="session")
def result() -> Validation:
    """One full validation serves all tests."""
    return validate(robustness_seeds=10)


@pytest.fixture(scope="session")
def small():
    return read_only(sweep(grid=SMALL))


@pytest.fixture(scope="session")
def full():
    return read_only(sweep())


def read_only(found):
    """For several files of tests."""
    found.records.flags.writeable = False
    return found


@pytest.fixture
def undrawn(monkeypatch):
    """Pages without pictures, where these do not matter."""
    monkeypatch.setattr("femcert.paper.page.SWEEP_FIGURES", ())


@pytest.fixture
def blank(monkeypatch):
    """Pictures of the right names with nothing in them."""
    empty = [(name, lambda result: style.new_figure(1, 1), words) for name, _, words in SWEEP_FIGURES]
    monkeypatch.setattr("femcert.paper.page.SWEEP_FIGURES", empty)


@pytest.fixture
def coarse(monkeypatch):
    """Pictures with few pixels, and labels wherever they fall; those of the paper's sweep are laid out."""
    monkeypatch.setattr(style, "DPI", 30)
    monkeypatch.setattr("matplotlib.figure.Figure.get_layout_engine", lambda figure: None)

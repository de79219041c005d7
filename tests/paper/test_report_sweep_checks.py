"""When the paper's numbers are checked, that every check can fail, and what an agreement is worth."""

from dataclasses import replace

import numpy as np
import pytest
from pages import parsed

from femcert import sweep
from femcert.paper import RULES, Grid, checks, paper_setting
from femcert.paper.checks import comparable, sweep_checks
from femcert.paper.page import sweep_page


def test_checks_belong_to_the_paper_s_grid_and_rule_alone(full, small):
    assert comparable(full)
    assert sweep_checks(small) == []
    assert not comparable(small)
    other = replace(full, rules=("mine", *full.rules[1:]))
    assert not comparable(other)
    assert sweep_checks(other) == []


def test_other_replications_are_compared_and_not_checked():
    found = sweep(grid=Grid(replications=2))
    assert comparable(found)
    assert sweep_checks(found) == []
    _, text = parsed(sweep_page(found, []))
    assert "1,235" in text
    assert "they are not checked" in text
    assert "Passed" not in text


def spoiled(result, **columns):
    records = result.records.copy()
    for name, change in columns.items():
        records[name] = change(records[name])
    return replace(result, records=records)


@pytest.mark.parametrize(
    ("columns", "quantity"),
    [
        ({"accepted": np.ones_like}, "selected"),
        ({"accepted": np.ones_like}, "unsafe"),
        ({"accepted": np.ones_like}, "selected at mu = 0.05"),
        ({"accepted": np.ones_like}, "dominance: unsafe, by noise level"),
        ({"accepted": np.ones_like}, "dominance, zeta = 0.05: unsafe, worst noise level"),
        ({"accepted": np.zeros_like}, "dominance: accepted"),
        ({"accepted": np.zeros_like}, "selected at mu = 0"),
        ({"learned_error": np.zeros_like}, "false rejections"),
        ({"ratio": lambda ratio: 1.1 * ratio}, "median Gamma at mu = 0.1"),
        ({"ratio": lambda ratio: 1.4 * ratio}, "certificate-sufficient regimes"),
        ({"ratio": lambda ratio: np.full_like(ratio, np.nan)}, "median Gamma at mu = 0"),
        ({"learned_error": lambda error: 1.2 * error}, "median E at mu = 0.02"),
        ({"learned_error": lambda error: 1.2 * error}, "E of fallback regimes"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_a_wrong_number_fails_its_check(full, columns, quantity):
    found = {check.quantity: check for check in sweep_checks(spoiled(full, **columns))}
    assert not found[quantity].passed


J = np.arange(1.0, 11.0)
TRUTHS = {"1/j": 1.0 / J, "one mode": np.eye(10)[0], "all alike": np.ones(10)}


@pytest.mark.parametrize("name", TRUTHS)
def test_the_worth_of_a_check_is_what_sweeps_with_other_truths_gave(full, name):
    setting, c = paper_setting(), (-1.0) ** J * TRUTHS[name]
    truth = np.linalg.norm(setting.truth) * c / np.linalg.norm(c)
    other = sweep(setting=replace(setting, truth=truth), rules={"operational": RULES["operational"]})
    pairs = {check.quantity: (check, now) for check, now in zip(sweep_checks(full), sweep_checks(other), strict=False)}
    for quantity, (check, now) in pairs.items():
        then, value = (float(band.computed.rstrip(" %").replace(",", "")) for band in (check, now))
        if check.worth == checks.NONE:
            assert value == 0.0, quantity
        if check.worth == checks.WEAK:
            assert abs(value / then - 1.0) <= 0.10, quantity
        if check.worth == checks.FIRM:
            change = abs(value / then - 1.0)
            assert 0.27 <= change <= 0.285 if name == "all alike" else change <= 0.05, quantity
    assert {check.worth for check, _ in pairs.values()} >= {checks.NONE, checks.WEAK, checks.FIRM}

"""A rule of a user is told from another of the same name: by source, settings, bound variables and what it uses."""

import functools
import re
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest

from femcert.errors import InputError
from femcert.study.sweep import RULES, Grid, Verdict, identity, sweep
from femcert.study.sweep.identity import Unrecognizable, described

GRID = Grid(sensors=(10,), noise=(0.0,), perturbation=(0.1,), mismatch=(0.0,), replications=4)


class Threshold:
    """A rule with a setting."""

    def __init__(self, limit):
        self.limit = limit

    def __call__(self, trials):
        return Verdict(trials.learned.data <= self.limit)


@dataclass(frozen=True)
class Frozen:
    limit: float
    weights: dict = field(default_factory=dict)

    def __call__(self, trials):
        return Verdict(trials.learned.data <= self.limit)


class Slotted(ABC):
    __slots__ = ("limit",)

    def __init__(self, limit):
        self.limit = limit

    @abstractmethod
    def name(self): ...

    def __call__(self, trials):
        # Names itself, and so goes round in a circle.
        return Verdict(trials.learned.data <= self.limit) if isinstance(self, Slotted) else None


class Concrete(Slotted):
    __slots__ = ()

    def name(self):
        return "concrete"


def closed_over(value):
    return lambda trials: Verdict(trials.learned.data <= value)


def with_default(value):
    def rule(trials, limit=value, *, other=None):
        return Verdict(trials.learned.data <= limit)

    return rule


def method(value):
    return Threshold(value).__call__


@pytest.mark.parametrize("make", [Threshold, Frozen, Concrete, closed_over, with_default, method])
def test_settings_are_told_apart(make):
    values = [1.0, 2.0, 1, True, "1.0", None, (1.0,), [1.0], {"a": 1.0}, {"a": 2.0}, {1.0, 2.0}, np.ones(2), np.ones(3)]
    values += [np.ones(2, np.float32), np.float64(1.0), -0.0, 0.0, Threshold(1.0), Threshold(2.0), print, len, np.sin]
    values += [np, np.random.default_rng(0), np.random.default_rng(1), partial(len), partial(abs), range(3)]
    seen = [described(make(value)) for value in values]
    assert len(set(seen)) == len(values)
    assert seen == [described(make(value)) for value in values]


def rules_of(source):
    space = {"__name__": "mine", "np": np, "Verdict": Verdict, "functools": functools}
    exec(source, space)
    return space["rule"]


SOURCE = """
LIMIT = 1.0
class Helper:
    factor = 2.0
    def scaled(self, x):
        return self.factor * x
def helper(x):
    return Helper().scaled(x)
@functools.cache
def cached():
    return 3.0
def rule(trials):
    def inner(x):
        return helper(x) + cached()
    return Verdict(inner(trials.level) <= LIMIT)
"""


@pytest.mark.parametrize(
    "change",
    [("<= LIMIT", "< LIMIT"), ("LIMIT = 1.0", "LIMIT = 2.0"), ("factor = 2.0", "factor = 3.0"),
     ("self.factor *", "2.0 +"), ("Helper().scaled(x)", "Helper().scaled(x) + 0.0"), ("helper(x) + ", "helper(x) - "),
     ("return 3.0", "return 4.0")],
)  # fmt: skip
def test_changed_source_is_noticed_wherever_it_is(change):
    assert SOURCE.count(change[0]) == 1
    assert described(rules_of(SOURCE)) == described(rules_of(SOURCE))
    assert described(rules_of(SOURCE)) == described(rules_of("\n# moved, and with a comment\n" + SOURCE))
    assert described(rules_of(SOURCE)) != described(rules_of(SOURCE.replace(*change)))


def test_what_is_installed_goes_by_its_name():
    assert described(RULES["exact"]) == "femcert.study.sweep.rules.exact"
    assert described(RULES["operational"]).endswith("weighted(pde=0.05, bc=1.0, optimality=0.01)")
    mine = described(closed_over(1))
    assert re.fullmatch(r".*closed_over.<locals>.<lambda> sha256:[0-9a-f]{16}, Python 3\.\d+", mine)


def test_another_version_of_an_installed_package_is_another_rule(monkeypatch):
    def used():
        return described(lambda trials: np.sum(trials.level)), described(closed_over(np.linalg.norm))

    before = used()
    monkeypatch.setattr(np, "__version__", "0.1")
    assert all(now != then for now, then in zip(used(), before, strict=True))


def test_a_rule_of_the_library_bound_to_an_array_is_told_apart():
    """repr cuts long arrays short."""
    long = np.arange(5000.0)
    other = long.copy()
    other[2500] = 0.0
    first, second = (partial(RULES["residual"], pde=weight) for weight in (long, other))
    assert described(first) != described(second)


def test_the_description_is_the_same_in_every_process(tmp_path):
    """Sets of texts have another order in each, and objects other addresses."""
    (tmp_path / "helpers.py").write_text("def used(x):\n    return x in {'a', 'b', 'c'}\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(
        "import helpers\nNAMES = frozenset(['x', 'y', 'z'])\n"
        "class Rule:\n    def __init__(self):\n        self.names = {'p', 'q', 'r'}\n"
        "    def __call__(self, trials):\n        return helpers.used('a'), NAMES, self.names\n",
        encoding="utf-8",
    )
    # The module by itself: the whole library would take most of the time.
    code = "import sys, runpy; sys.path.insert(0, sys.argv[1]); import mine; "
    code += "print(runpy.run_path(sys.argv[2])['described'](mine.Rule()))"

    def said(seed):
        command = [sys.executable, "-B", "-c", code, str(tmp_path), identity.__file__]
        done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONHASHSEED": str(seed)}, timeout=120)
        return done.stdout

    first = said(1)
    assert first.startswith("mine.Rule sha256:")
    assert said(2) == first
    # A function of another module of the user's, by way of that module.
    (tmp_path / "helpers.py").write_text("def used(x):\n    return x in {'a', 'b'}\n", encoding="utf-8")
    assert said(1) != first


def unrecognizable():
    loop = []
    for _ in range(100_000):
        loop = [loop]
    return {"a generator": (i for i in range(3)), "a lock": threading.Lock(), "too deep": loop}


@pytest.mark.parametrize("what", unrecognizable())
def test_what_nobody_can_recognize_runs_but_is_not_resumed(tmp_path, what):
    value = unrecognizable()[what]

    def rule(trials):
        assert value is not None
        return Verdict(np.ones(len(trials.level), dtype=bool))

    with pytest.raises(Unrecognizable):
        described(rule)
    sweep(grid=GRID, rules={"mine": rule}, store=tmp_path)
    with pytest.raises(InputError, match="cannot resume: the rule 'mine' is not recognizable: "):
        sweep(grid=GRID, rules={"mine": rule}, store=tmp_path, resume=True)


@pytest.mark.parametrize("make", [Threshold, Frozen, closed_over])
def test_another_setting_is_not_resumed(tmp_path, make):
    sweep(grid=GRID, rules={"mine": make(1.0)}, store=tmp_path)
    sweep(grid=GRID, rules={"mine": make(1.0)}, store=tmp_path, resume=True)
    with pytest.raises(InputError, match="another rules: mine was"):
        sweep(grid=GRID, rules={"mine": make(2.0)}, store=tmp_path, resume=True)

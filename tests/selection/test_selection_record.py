"""A selection as a table, as HTML and as JSON."""

import dataclasses
import json
import math
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from selector_helpers import rewritten
from skfem import Basis, ElementLineP1, ElementQuad1, ElementTriP1, MeshLine, MeshQuad, MeshTri

import femcert as fc
from femcert.linalg import backends, installed_backends, use_backend
from femcert.selection.selection import SCHEMA

BASELINE = fc.Tikhonov(weight=1e-3)


def source(k=3, m=6):
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 21)), ElementLineP1())
    return fc.EllipticSource(
        basis, parameters=fc.SineSpace(basis, k), sensors=fc.PointSensors(basis, np.linspace(0.1, 0.9, m))
    )


def heat():
    basis = Basis(MeshLine(np.linspace(0.0, 1.0, 21)), ElementLineP1())
    return fc.HeatInitial(
        basis, parameters=fc.SineSpace(basis, 3), sensors=fc.PointSensors(basis, [0.2, 0.4, 0.7]), times=[0.01, 0.02],
        steps=4,
    )  # fmt: skip


def tomography():
    basis = Basis(MeshTri().refined(2), ElementTriP1())
    return fc.Tomography(basis, parameters=fc.CosineSpace(basis, 3), angles=[0.0, 60.0, 120.0], bins=4)


def blind():
    basis = Basis(MeshTri().refined(3), ElementTriP1())
    row = fc.PointSensors(basis, [[0.4, 0.4]]).matrix.toarray()
    return fc.EllipticSource(
        basis, parameters=fc.SineSpace(basis, 2), sensors=fc.MatrixSensors(np.vstack([row, 2.0 * row]))
    )


def selection_of(problem, learned=None, rule=None, covariance=None):
    k = problem.parameters.dimension
    data = problem.simulate(problem.parameters.field(1.0 / np.arange(1, k + 1) / 3.0), noise=0.02, seed=1)
    if covariance is not None:
        data = fc.Data(data.values, data.noise_level, covariance)
    if learned is None:
        learned = fc.Candidate.from_coefficients(problem, np.full(k, 1.0 / 7.0), optimality=0.1)
    return fc.no_harm(
        problem, data, baseline=BASELINE, learned=learned, rule=rule or fc.OperationalRadius(pde=0.3, optimality=0.1)
    )


def raising(p, d):
    raise ValueError("no <b>luck</b> & more")


CASES = {
    "rejected": lambda: selection_of(source()),
    "accepted": lambda: selection_of(source(), learned=fc.Tikhonov(weight=1e-9)),
    "weighted": lambda: selection_of(source(), covariance=np.linspace(0.1, 1.0, 6)),
    "stochastic": lambda: selection_of(source(), rule=fc.StochasticRadius(points=40, zeta=0.1, seed=11)),
    "given constant": lambda: selection_of(source(), rule=fc.ResidualRadius(stability=fc.stability(source()))),
    "raised": lambda: selection_of(source(), learned=raising),
    "blind": lambda: selection_of(blind()),
    "heat": lambda: selection_of(heat()),
    "tomography": lambda: selection_of(tomography()),
    "single precision": lambda: selection_of(source(), learned=single),
}


def single(p, d):
    best = fc.Tikhonov(weight=1e-9)(p, d)
    return fc.Candidate(best.state.astype(np.float32), best.parameter.astype(np.float32), np.float32(1e-9))


def identical(a, b):
    return a is b is None or (a.dtype == b.dtype == np.float64 and a.shape == b.shape and a.tobytes() == b.tobytes())


@pytest.mark.parametrize("case", CASES)
def test_json_round_trip_is_the_identity(case, tmp_path):
    selection = CASES[case]()
    path = tmp_path / "deep" / "selection.json"
    selection.save(path)
    again = fc.Selection.load(path)
    assert again.to_dict() == selection.to_dict()
    assert identical(again.parameter, selection.parameter)
    assert identical(again.state, selection.state)
    assert not again.parameter.flags.writeable
    assert str(again) == str(selection)
    assert again._repr_html_() == selection._repr_html_()
    assert (again.accepted, again.reason, again.ratio) == (selection.accepted, selection.reason, selection.ratio)
    for mine, theirs in ((again.baseline, selection.baseline), (again.learned, selection.learned)):
        if theirs is None:
            assert mine is None
            continue
        assert (mine.radius, mine.residuals, mine.total) == (theirs.radius, theirs.residuals, theirs.total)
        assert identical(mine.stability.singular_values, theirs.stability.singular_values)
    # Once more, to the byte.
    second = tmp_path / "second.json"
    again.save(second)
    assert second.read_bytes() == path.read_bytes()


def test_a_modulus_without_slope_is_loaded_again(tmp_path):
    """A ball so small beside the noise that its modulus is constant: the fitted slope is rounding of either sign."""
    basis = Basis(MeshQuad().refined(2), ElementQuad1())
    points = [[0.2, 0.3], [0.4, 0.8], [0.6, 0.2], [0.7, 0.6], [0.3, 0.55], [0.85, 0.4]]
    space, sensors = fc.FullSpace(basis).within_ball(2.4, norm="h1"), fc.PointSensors(basis, points)
    problem = fc.EllipticSource(basis, parameters=space, sensors=sensors, reaction=1.0)
    q = 0.1 * np.sin(2.0 * basis.doflocs[0])
    learned = fc.Candidate(problem.solve(q), q)
    for level in np.geomspace(0.8, 20.0, 12):
        data = fc.Data(problem.observe(learned.state), level)
        selection = fc.no_harm(problem, data, baseline=BASELINE, learned=learned, rule=fc.ResidualRadius())
        assert 0.0 <= selection.baseline.stability.exponent < 1e-9
        selection.save(tmp_path / "s.json")
        assert fc.Selection.load(tmp_path / "s.json").to_dict() == selection.to_dict()


def test_the_cases_are_what_they_say():
    accepted = {case: make().accepted for case, make in CASES.items()}
    assert accepted["accepted"]
    assert accepted["single precision"]
    assert not accepted["rejected"]
    assert CASES["blind"]().baseline is None


def test_awkward_numbers_survive(tmp_path):
    values = np.array([0.1, -0.0, 5e-324, 1.7976931348623157e308, math.pi, 1 / 3, 2.0**-1074 * 3])
    selection = dataclasses.replace(CASES["raised"](), parameter=values, state=np.outer(values[:2], values[:3]))
    selection.save(tmp_path / "s.json")
    again = fc.Selection.load(tmp_path / "s.json")
    assert again.parameter.tobytes() == values.tobytes()
    assert again.state.tobytes() == selection.state.tobytes()


def test_what_the_record_holds(tmp_path):
    selection = CASES["stochastic"]()
    selection.save(tmp_path / "s.json")

    def refuse(name):
        raise AssertionError(name)

    record = json.loads((tmp_path / "s.json").read_text(), parse_constant=refuse)
    assert record["schema"] == SCHEMA == "femcert.selection/2"
    for package in ("femcert", "scikit-fem", "numpy", "scipy"):
        assert record["versions"][package] == version(package)
    assert record["seeds"] == {"rule": 11}
    assert record["rule"] == {
        "name": "StochasticRadius", "weights": {"pde": 1.0, "bc": 1.0, "optimality": 0.0}, "stability": "computed",
        "decides": ["data", "pde", "bc", "admissibility"],
        "pde_norm": "rms", "norm": "energy", "covered": True,
        "points": 40, "zeta": 0.1, "seed": 11, "bound": "hoeffding",
    }  # fmt: skip
    assert record["tolerance"] == 0.0
    assert isinstance(record["accepted"], bool)
    assert record["status"] == ("accepted" if record["accepted"] else "rejected")
    radii = [record[side]["radius"]["value"] for side in ("learned", "baseline")]
    assert record["ratio"] == radii[0] / radii[1]
    for side in ("baseline", "learned"):
        assert set(record[side]["residuals"]) == {"data", "pde", "bc", "optimality", "admissibility"}
        for part in (*record[side]["residuals"].values(), record[side]["radius"]):
            assert set(part) - {"probability"} == {"value", "side", "source"}
            assert part["side"] in ("upper", "lower", "estimate")
        assert record[side]["stability"]["constant"]["value"] > 0.0
    assert len(record["parameter"]) == 21


def test_numpy_numbers_in_a_rule_can_be_saved(tmp_path):
    rule = fc.OperationalRadius(pde=np.float32(0.5), bc=np.int64(2))
    selection_of(source(), rule=rule).save(tmp_path / "a.json")
    assert fc.Selection.load(tmp_path / "a.json").rule["weights"] == {"pde": 0.5, "bc": 2.0, "optimality": 0.0}
    rule = fc.StochasticRadius(points=np.int64(20), seed=np.int64(1), zeta=np.float32(0.1))
    selection_of(source(), rule=rule).save(tmp_path / "b.json")
    again = fc.Selection.load(tmp_path / "b.json").rule
    assert (again["points"], again["seed"]) == (20, 1)
    assert again["zeta"] == pytest.approx(0.1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Own(fc.Rule):
    """A rule of a user: what its options come to is its own affair."""

    factor: float = 1.0
    names: tuple[str, ...] = ("a", "b")
    matrix: object = dataclasses.field(default_factory=lambda: np.eye(2))

    def prepare(self, problem, data, solvers=None):
        return OwnJudge(self, problem, data)


class OwnJudge(fc.Judge):
    def certify(self, candidate):
        radius = self.rule.factor * (1.0 + self.split(candidate).size)
        return self.certificate(candidate, fc.Bound(radius, "estimate", "own"))


def test_options_of_a_rule_of_a_user(tmp_path):
    selection = selection_of(source(), rule=Own(factor=np.float64(2.0)))
    selection.save(tmp_path / "s.json")
    again = fc.Selection.load(tmp_path / "s.json")
    assert again.to_dict() == selection.to_dict()
    assert again.rule["options"] == {"factor": 2.0, "names": ["a", "b"], "matrix": "a ndarray"}
    # Its parts are not known: only the radii are said.
    assert re.fullmatch(r"the learned radius \S+ (exceeds|is within) the baseline's \S+", selection.reason)
    fc.write_report(selection, tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text()
    assert "Rule: Own." in page
    assert "Consistent set" not in page
    assert "option factor" in page


def test_an_answer_of_zero_has_no_share():
    problem = source()
    learned = fc.Candidate.from_coefficients(problem, np.zeros(3))
    found = selection_of(problem, learned=learned, rule=fc.ExactRadius())
    assert found.learned.scale_of_answer.startswith("more than any share of the L2 norm of the answer: the data do not")
    assert "inf" not in str(found)


def test_an_infinite_radius_is_loaded_again(tmp_path):
    selection = selection_of(source(), rule=Own(factor=math.inf))
    assert selection.status == "undecided"
    selection.save(tmp_path / "s.json")
    again = fc.Selection.load(tmp_path / "s.json")
    assert again.to_dict() == selection.to_dict()
    assert again.baseline.radius == selection.baseline.radius == fc.Bound(math.inf, "estimate", "own")
    json.loads((tmp_path / "s.json").read_text(), parse_constant=pytest.fail)
    fc.write_report(selection, tmp_path / "s.html")
    fc.plot_selection(selection, source(), tmp_path / "s.png")


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_infinite_ends_keep_their_sign(side):
    end = fc.Bound(math.inf if side == "upper" else -math.inf, side, "nothing is known", signed=True)
    assert fc.Bound.from_dict(end.to_dict()) == end


def test_the_table():
    selection = CASES["rejected"]()
    lines = str(selection).splitlines()
    assert lines[0].startswith("learned candidate rejected")
    assert selection.reason in lines[0]
    table = {line.split("  ")[0].strip(): line for line in lines[2:]}
    assert set(table) == {
        "radius", "relative radius", "data", "pde", "bc", "optimality", "admissibility", "noise level",
        "stability constant",
    }  # fmt: skip
    assert f"{selection.baseline.radius.value:.4g}" in table["radius"]
    assert f"{selection.learned.radius.value:.4g}" in table["radius"]
    assert selection.learned.radius.side in table["radius"]
    assert f"{selection.learned.residuals.data.value:.4g}" in table["data"]
    assert str(CASES["accepted"]()).startswith("learned candidate accepted")
    assert max(map(len, lines[1:])) < 120


def test_the_table_of_a_failure():
    text = str(CASES["raised"]())
    assert "ValueError: no <b>luck</b> & more" in text
    assert all(re.search(r"\d.*  -(  |$)", line) for line in text.splitlines()[2:])


def test_html_escapes_what_a_candidate_says():
    html = CASES["raised"]()._repr_html_()
    assert "<b>luck</b>" not in html
    assert "&lt;b&gt;luck&lt;/b&gt; &amp; more" in html

    problem = source()
    named = fc.Candidate(np.full(21, np.nan), np.zeros(21), name="<script>alert(1)</script>")
    wrong_mesh = fc.Candidate(
        np.zeros(21), np.zeros(21), 0.0, name="<script>alert(1)</script>", mesh=MeshLine(np.linspace(0, 2, 21))
    )
    for learned in (named, wrong_mesh):
        found = selection_of(problem, learned=learned)
        assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_html_has_the_evidence():
    selection = CASES["accepted"]()
    html = selection._repr_html_()
    assert html.count("<tr>") == 10
    assert "accepted" in html
    assert f"{selection.learned.radius.value:.4g}" in html


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "selection.json"
    CASES["rejected"]().save(path)
    return path


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_truncated_files(saved, share):
    text = saved.read_text()
    saved.write_text(text[: int(share * len(text))])
    with pytest.raises(fc.InputError, match=r"selection.json cannot be read as JSON"):
        fc.Selection.load(saved)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"not json", "cannot be read as JSON"),
        (b"\xff\xfe\x00", "cannot be read as JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b"[1, 2]", "not a selection of the schema femcert.selection/2"),
        (b"{}", "not a selection of the schema"),
        (b'{"schema": "femcert.selection/3"}', "not a selection of the schema femcert.selection/2"),
        (b'{"schema": "femcert.selection/1"}', "is damaged: KeyError 'state'"),
        (b"null", "not a selection"),
    ],
    ids=["text", "bytes", "deep", "list", "empty", "other schema", "bare", "null"],
)
def test_foreign_files(tmp_path, content, match):
    path = tmp_path / "foreign.json"
    path.write_bytes(content)
    with pytest.raises(fc.InputError, match=match):
        fc.Selection.load(path)


def test_missing_files(tmp_path):
    with pytest.raises(fc.InputError, match=r"nowhere.json cannot be read"):
        fc.Selection.load(tmp_path / "nowhere.json")
    with pytest.raises(fc.InputError, match="cannot be read"):
        fc.Selection.load(tmp_path)


def damage(record, where, value):
    *way, last = where
    for key in way:
        record = record[key]
    record[last] = value


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("status",), "maybe"),
        (("parameter",), "many"),
        (("parameter",), [[1.0], [2.0, 3.0]]),
        (("parameter",), [1.0, None, "x"]),
        (("parameter", 3), 10**400),
        (("state",), {"u": 1}),
        (("rule",), 5),
        (("versions",), None),
        (("tolerance",), "none"),
        (("baseline",), "good"),
        (("baseline",), []),
        (("baseline", "residuals"), [1, 2]),
        (("baseline", "residuals", "data"), 3.0),
        (("baseline", "residuals", "data", "side"), "both"),
        (("baseline", "radius", "value"), -1.0),
        (("learned", "stability"), 5.0),
        (("learned", "stability", "singular_values"), "abc"),
        (("learned", "total"), "many"),
    ],
)
def test_damaged_files(tmp_path, where, value):
    path = rewritten(CASES["rejected"](), tmp_path / "selection.json", lambda record: damage(record, where, value))
    with pytest.raises(fc.InputError, match=r"selection.json is damaged"):
        fc.Selection.load(path)


@pytest.mark.parametrize("key", ["accepted", "reason", "state", "parameter", "baseline", "learned", "rule", "versions"])
def test_missing_keys(tmp_path, key):
    path = rewritten(CASES["rejected"](), tmp_path / "selection.json", lambda record: record.pop(key))
    with pytest.raises(fc.InputError, match=f"is damaged: KeyError '{key}'"):
        fc.Selection.load(path)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("where", [("parameter", 3), ("baseline", "total")])
def test_numbers_that_are_none(tmp_path, where, text):
    path = rewritten(CASES["rejected"](), tmp_path / "selection.json", lambda record: damage(record, where, "PLACE"))
    path.write_text(path.read_text().replace('"PLACE"', text))
    with pytest.raises(fc.InputError, match=r"selection.json is damaged"):
        fc.Selection.load(path)


def test_the_digest_is_of_the_values(saved):
    record = json.loads(saved.read_text())
    assert list(record)[-1] == "digest"
    assert "digest" not in CASES["rejected"]().to_dict()
    # Other spaces and another order are the same record.
    saved.write_text(json.dumps(dict(reversed(record.items()))))
    assert fc.Selection.load(saved).to_dict() == CASES["rejected"]().to_dict()
    damage(record, ("parameter", 3), record["parameter"][3] + 1e-15)
    saved.write_text(json.dumps(record))
    with pytest.raises(fc.InputError, match="digest"):
        fc.Selection.load(saved)


def test_the_seal_of_an_earlier_version_is_ignored(tmp_path):
    selection = CASES["accepted"]()
    path = rewritten(selection, tmp_path / "selection.json", lambda record: record.update(seal="0" * 64))
    assert fc.Selection.load(path).to_dict() == selection.to_dict()


def test_a_failed_save_leaves_nothing(tmp_path, monkeypatch):
    selection = CASES["rejected"]()
    broken = dataclasses.replace(selection, rule={"name": object()})
    nan = dataclasses.replace(selection, tolerance=math.nan)
    path = tmp_path / "selection.json"
    for bad, error in ((broken, TypeError), (nan, ValueError)):
        with pytest.raises(error):
            bad.save(path)
        assert list(tmp_path.iterdir()) == []
    selection.save(path)
    good = path.read_bytes()
    for bad, error in ((broken, TypeError), (nan, ValueError)):
        with pytest.raises(error):
            bad.save(path)
        assert path.read_bytes() == good
        assert list(tmp_path.iterdir()) == [path]

    def full(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(fc.InputError, match="disk full"):
        selection.save(path)
    assert path.read_bytes() == good
    assert list(tmp_path.iterdir()) == [path]


def test_saving_replaces_and_leaves_no_temporary(tmp_path):
    path = tmp_path / "selection.json"
    CASES["rejected"]().save(path)
    CASES["accepted"]().save(str(path))
    assert fc.Selection.load(path).accepted
    assert list(tmp_path.iterdir()) == [path]


def test_a_selection_is_frozen():
    selection = CASES["rejected"]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        selection.accepted = True
    with pytest.raises(ValueError, match="read-only"):
        selection.parameter[0] = 1.0


@pytest.mark.parametrize("case", CASES)
def test_a_selection_remembers_what_it_was_made_from(case, tmp_path):
    selection = CASES[case]()
    made = selection.case
    assert made.data.values.size == made.problem.observation_count
    certificates = (selection.baseline, selection.learned)
    for candidate, certificate in zip((made.baseline, made.learned), certificates, strict=True):
        if candidate is not None and certificate is not None:
            assert certificate.name == candidate.name
            assert certificate.error(candidate.parameter) == 0.0
    assert (made.learned is None) == (selection.learned is None)
    chosen = made.learned if selection.accepted else made.baseline
    np.testing.assert_array_equal(chosen.parameter, selection.parameter)
    assert "case" not in selection.to_dict()
    assert "case" not in repr(selection)
    selection.save(tmp_path / "s.json")
    assert fc.Selection.load(tmp_path / "s.json").case is None


@pytest.mark.parametrize("path", [None, 5, b"x", ["a"], ".", ""])
def test_paths_that_are_no_files(path):
    selection = CASES["rejected"]()
    with pytest.raises(fc.InputError, match=r"path is a|is a directory"):
        selection.save(path)
    with pytest.raises(fc.InputError, match=r"path is a|cannot be read"):
        fc.Selection.load(path)


# What solved


@pytest.mark.parametrize("name", sorted(installed_backends()))
def test_what_solved_is_recorded_and_read_back(name, tmp_path):
    with use_backend(name, tolerance=1e-11):
        found = selection_of(source())
        uncertified = selection_of(blind())
    path = tmp_path / "selection.json"
    for selection in (found, uncertified):
        selection.save(path)
        said = json.loads(path.read_text())["solver"]
        package = backends.PACKAGES[name][0]
        assert said == {
            "backend": name, "package": package, "version": version(package),
            "tolerance": 1e-11 if name == "multigrid" else None,
        }  # fmt: skip
        assert fc.Selection.load(path).solver == selection.solver
        assert selection.versions[package] == version(package)


def test_an_older_file_has_the_probability_in_words(tmp_path):
    def older(record):
        record.pop("status")
        for part in (record["baseline"], record["learned"]):
            pde = part["residuals"]["pde"]
            pde["source"] += f", probability {pde.pop('probability'):g}"

    path = rewritten(CASES["stochastic"](), tmp_path / "selection.json", older)
    assert fc.Selection.load(path).baseline.residuals.pde.source.endswith("probability 0.9")


def test_the_table_says_with_which_probability_a_residual_holds():
    assert "(upper, probability 0.9)" in str(CASES["stochastic"]())


def test_where_nothing_is_solved_nothing_is_said(tmp_path):
    found = selection_of(tomography())
    assert found.solver is None
    assert "solver" not in found.to_dict()


def test_an_older_file_says_nothing_of_the_solver(tmp_path):
    path = rewritten(CASES["rejected"](), tmp_path / "selection.json", lambda record: record.pop("solver"))
    found = fc.Selection.load(path)
    assert found.solver is None
    found.save(tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text())
    del again["digest"]
    assert again == json.loads(path.read_text())


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.pop("backend"), lambda s: s.update(tolerance=0.0), lambda s: s.update(tolerance="small"),
    ],
)  # fmt: skip
def test_a_damaged_solver_is_refused(tmp_path, change):
    path = rewritten(CASES["rejected"](), tmp_path / "selection.json", lambda record: change(record["solver"]))
    with pytest.raises(fc.InputError, match="is damaged"):
        fc.Selection.load(path)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unfinished(Own):
    """A rule that returns nothing that can be used."""

    judge: object = None
    radius: object = 0.5

    def prepare(self, problem, data, solvers=None):
        return UnfinishedJudge(self, problem, data) if self.judge else None


class UnfinishedJudge(fc.Judge):
    def certify(self, candidate):
        return self.rule.radius if self.rule.judge == "float" else self.certificate(candidate, self.rule.radius)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (None, "prepare of the rule Unfinished returned nothing; expected a Judge"),
        ("float", "certify of the rule Unfinished gave a float; expected a Certificate"),
        ("no bound", "certificate of the rule Unfinished got the radius 0.5; expected a Bound"),
    ],
)
def test_a_rule_that_is_not_finished_is_named(judge, words):
    problem, rule = source(), Unfinished(judge=judge)
    found = selection_of(problem, rule=rule)
    assert found.status == "undecided"
    assert words in found.reason
    with pytest.raises(fc.UncertifiedError, match=words):
        fc.certify(problem, fc.Data(np.ones(6), 1.0), fc.Candidate.from_coefficients(problem, np.ones(3)), rule)

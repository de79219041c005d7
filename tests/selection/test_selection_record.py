"""A selection as a table, as HTML and as JSON."""

import dataclasses
import json
import math
import re
from importlib.metadata import version

import numpy as np
import pytest
import zoo
from selector_helpers import rewritten
from skfem import MeshLine

import femcert as fc
from femcert.linalg import backends, installed_backends
from femcert.selection.selection import SCHEMA

BASELINE = fc.Tikhonov(weight=1e-3)


def blind():
    """Two sensors that see the same."""
    basis = zoo.square(3)
    row = fc.PointSensors(basis, [[0.4, 0.4]]).matrix.toarray()
    return zoo.source(basis, parameters=2, sensors=fc.MatrixSensors(np.vstack([row, 2.0 * row])))


def selection_of(problem, learned=None, rule=None, covariance=None):
    k = problem.parameters.dimension
    data = problem.simulate(problem.parameters.field(1.0 / np.arange(1, k + 1) / 3.0), noise=0.02, seed=1)
    if covariance is not None:
        data = fc.Data(data.values, data.noise_level, covariance)
    if learned is None:
        learned = fc.Candidate.from_coefficients(problem, np.full(k, 1.0 / 7.0), optimality=0.1)
    rule = rule or fc.OperationalRadius(pde=0.3, optimality=0.1)
    return fc.no_harm(problem, data, baseline=BASELINE, learned=learned, rule=rule)


def raising(p, d):
    raise ValueError("no <b>luck</b> & more")


def single(p, d):
    best = fc.Tikhonov(weight=1e-9)(p, d)
    return fc.Candidate(best.state.astype(np.float32), best.parameter.astype(np.float32), np.float32(1e-9))


CASES = {
    "rejected": lambda: selection_of(zoo.source()),
    "accepted": lambda: selection_of(zoo.source(), learned=fc.Tikhonov(weight=1e-9)),
    "weighted": lambda: selection_of(zoo.source(), covariance=np.linspace(0.1, 1.0, 6)),
    "stochastic": lambda: selection_of(
        zoo.source(), rule=fc.StochasticRadius(points=40, zeta=0.1, seed=11, sampling="importance")
    ),
    "given constant": lambda: selection_of(zoo.source(), rule=fc.ResidualRadius(stability=fc.stability(zoo.source()))),
    "raised": lambda: selection_of(zoo.source(), learned=raising),
    "blind": lambda: selection_of(blind()),
    "heat": lambda: selection_of(zoo.heat("line P1")),
    "tomography": lambda: selection_of(zoo.tomography()),
    "single precision": lambda: selection_of(zoo.source(), learned=single),
    "infinite radius": lambda: selection_of(zoo.source(), rule=Own(factor=math.inf)),
    "own rule": lambda: selection_of(zoo.source(), rule=Own(factor=np.float64(2.0))),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Own(fc.Rule):
    """A rule of a user: femcert does not know what its options mean."""

    factor: float = 1.0
    names: tuple[str, ...] = ("a", "b")
    matrix: object = dataclasses.field(default_factory=lambda: np.eye(2))

    def prepare(self, problem, data, solvers=None):
        return OwnJudge(self, problem, data)


class OwnJudge(fc.Judge):
    def certify(self, candidate):
        radius = self.rule.factor * (1.0 + self.split(candidate).size)
        return self.certificate(candidate, fc.Bound(radius, "estimate", "own"))


# JSON


@pytest.mark.parametrize("case", CASES)
def test_json_round_trip_is_the_identity(case, tmp_path):
    selection = CASES[case]()
    path = tmp_path / "deep" / "selection.json"
    selection.save(path)
    again = fc.Selection.load(path)
    assert again.to_dict() == selection.to_dict()
    assert again.parameter.tobytes() == selection.parameter.tobytes()
    assert again.parameter.dtype == np.float64
    assert (again.state is None) == (selection.state is None)
    if selection.state is not None:
        assert again.state.tobytes() == selection.state.tobytes()
    assert not again.parameter.flags.writeable
    assert str(again) == str(selection)
    assert again._repr_html_() == selection._repr_html_()
    # Once more, to the byte; and the file is JSON without NaN or Infinity.
    second = tmp_path / "second.json"
    again.save(second)
    assert second.read_bytes() == path.read_bytes()
    json.loads(path.read_text(), parse_constant=pytest.fail)


def test_a_modulus_without_slope_is_loaded_again(tmp_path):
    """A ball so small beside the noise that its modulus is constant: the fitted slope is rounding of either sign."""
    basis = zoo.square(2, kind="quad")
    problem = zoo.source(basis, parameters=fc.FullSpace(basis).within_ball(2.4, norm="h1"), reaction=1.0)
    q = 0.1 * np.sin(2.0 * basis.doflocs[0])
    learned = fc.Candidate(problem.solve(q), q)
    for level in np.geomspace(0.8, 20.0, 12):
        data = fc.Data(problem.observe(learned.state), level)
        selection = fc.no_harm(problem, data, baseline=BASELINE, learned=learned, rule=fc.ResidualRadius())
        assert 0.0 <= selection.baseline.stability.exponent < 1e-9
        selection.save(tmp_path / "s.json")
        assert fc.Selection.load(tmp_path / "s.json").to_dict() == selection.to_dict()


def test_what_the_record_holds(tmp_path):
    selection = CASES["stochastic"]()
    selection.save(tmp_path / "s.json")
    record = json.loads((tmp_path / "s.json").read_text())
    assert record["schema"] == SCHEMA == "femcert.selection/2"
    for package in ("femcert", "scikit-fem", "numpy", "scipy"):
        assert record["versions"][package] == version(package)
    assert record["seeds"] == {"rule": 11}
    assert record["rule"] == {
        "name": "StochasticRadius", "weights": {"pde": 1.0, "bc": 1.0, "optimality": 0.0}, "stability": "computed",
        "decides": ["data", "pde", "bc", "admissibility"],
        "pde_norm": "rms", "norm": "energy", "covered": True,
        "points": 40, "zeta": 0.1, "seed": 11, "bound": "hoeffding", "sampling": "importance",
    }  # fmt: skip
    assert record["tolerance"] == 0.0
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


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"not json", "cannot be read as JSON"),
        (b"[1, 2]", "not a selection of the schema femcert.selection/2"),
        (b'{"schema": "femcert.selection/3"}', "not a selection of the schema femcert.selection/2"),
        (b'{"schema": "femcert.selection/1"}', "is damaged: KeyError 'state'"),
    ],
    ids=["text", "list", "other schema", "bare"],
)
def test_foreign_files(tmp_path, content, match):
    path = tmp_path / "foreign.json"
    path.write_bytes(content)
    with pytest.raises(fc.InputError, match=match):
        fc.Selection.load(path)
    with pytest.raises(fc.InputError, match="cannot be read"):
        fc.Selection.load(tmp_path / "nowhere.json")


def damage(record, where, value):
    *way, last = where
    for key in way:
        record = record[key]
    record[last] = value


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("status",), "maybe"),
        (("parameter",), [1.0, None, "x"]),
        (("parameter", 3), math.inf),
        (("state",), {"u": 1}),
        (("versions",), None),
        (("tolerance",), "none"),
        (("baseline",), "good"),
        (("baseline", "residuals", "data", "side"), "both"),
        (("baseline", "radius", "value"), -1.0),
        (("learned", "stability", "singular_values"), "abc"),
        (("solver", "tolerance"), 0.0),
        (("confidence",), {"zeta_base": 0.0, "zeta_learn": None}),
    ],
)
def test_damaged_files(tmp_path, where, value):
    path = rewritten(CASES["rejected"](), tmp_path / "selection.json", lambda record: damage(record, where, value))
    with pytest.raises(fc.InputError, match=r"selection.json is damaged"):
        fc.Selection.load(path)


def test_the_digest_is_of_the_values(tmp_path):
    path = tmp_path / "s.json"
    CASES["rejected"]().save(path)
    record = json.loads(path.read_text())
    assert list(record)[-1] == "digest"
    # Other spaces and another order are the same record.
    path.write_text(json.dumps(dict(reversed(record.items()))))
    assert fc.Selection.load(path).to_dict() == CASES["rejected"]().to_dict()
    damage(record, ("parameter", 3), record["parameter"][3] + 1e-15)
    path.write_text(json.dumps(record))
    with pytest.raises(fc.InputError, match="digest"):
        fc.Selection.load(path)


def test_what_earlier_versions_wrote(tmp_path):
    """A seal, probabilities in words, no status, no solver, no confidence."""

    def older(record):
        record.update(seal="0" * 64)
        record["baseline"]["digest"] = "0" * 64
        for key in ("status", "solver", "confidence"):
            record.pop(key)
        for part in (record["baseline"], record["learned"]):
            pde = part["residuals"]["pde"]
            pde["source"] += f", probability {pde.pop('probability'):g}"

    selection = CASES["stochastic"]()
    found = fc.Selection.load(rewritten(selection, tmp_path / "selection.json", older))
    assert found.baseline.residuals.pde.source.endswith("probability 0.9")
    assert (found.status, found.solver, found.confidence) == (selection.status, None, None)


def test_a_failed_save_leaves_what_was_there(tmp_path):
    selection = CASES["rejected"]()
    path = tmp_path / "selection.json"
    CASES["accepted"]().save(str(path))
    selection.save(path)
    good = path.read_bytes()
    broken = dataclasses.replace(selection, rule={"name": object()})
    nan = dataclasses.replace(selection, tolerance=math.nan)
    for bad, error in ((broken, TypeError), (nan, ValueError)):
        with pytest.raises(error):
            bad.save(path)
        assert path.read_bytes() == good
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", [None, 5, "."])
def test_paths_that_are_no_files(path):
    selection = CASES["rejected"]()
    with pytest.raises(fc.InputError, match=r"path is a|is a directory"):
        selection.save(path)
    with pytest.raises(fc.InputError, match=r"path is a|cannot be read"):
        fc.Selection.load(path)


# What it was made from, and what solved


@pytest.mark.parametrize("name", sorted(installed_backends()))
def test_what_solved_is_recorded_and_read_back(name, tmp_path):
    with fc.use_backend(name, tolerance=1e-11):
        found = [selection_of(zoo.source()), selection_of(blind())]
    path = tmp_path / "selection.json"
    for selection in found:
        selection.save(path)
        package = backends.PACKAGES[name][0]
        assert json.loads(path.read_text())["solver"] == {
            "backend": name, "package": package, "version": version(package),
            "tolerance": 1e-11 if name == "multigrid" else None,
        }  # fmt: skip
        assert fc.Selection.load(path).solver == selection.solver
        assert selection.versions[package] == version(package)


# Tables


def test_html_has_the_evidence_and_escapes_what_a_candidate_says():
    selection = CASES["accepted"]()
    html = selection._repr_html_()
    assert html.count("<tr>") == 10
    assert f"{selection.learned.radius.value:.4g}" in html
    assert "&lt;b&gt;luck&lt;/b&gt; &amp; more" in CASES["raised"]()._repr_html_()
    other = MeshLine(np.linspace(0, 2, 21))
    for options in ({}, {"mesh": other}):
        learned = fc.Candidate(np.full(21, np.nan), np.zeros(21), 0.0, name="<script>alert(1)</script>", **options)
        assert "<script>" not in selection_of(zoo.source(), learned=learned)._repr_html_()


def test_a_rule_as_an_option_is_recorded_with_its_own_options():
    inner = [fc.OperationalRadius(pde=pde, bc=1.0, optimality=0.1) for pde in (0.3, 0.9)]
    assert [Own(matrix=rule).to_dict()["options"]["matrix"] for rule in inner] == [rule.to_dict() for rule in inner]
    assert inner[0].to_dict() != inner[1].to_dict()


def test_a_page_and_a_figure_for_a_rule_of_a_user(tmp_path):
    for case in ("own rule", "infinite radius"):
        selection = CASES[case]()
        assert selection.rule["options"]["matrix"] == "an ndarray"
        fc.write_report(selection, tmp_path / "s.html")
        page = (tmp_path / "s.html").read_text()
        assert "Rule: Own." in page
        assert "Consistent set" not in page
        assert "option factor" in page
        fc.plot_selection(selection, zoo.source(), tmp_path / "s.png")
    # Its parts are not known: only the radii are said.
    words = CASES["own rule"]().reason
    assert re.fullmatch(r"the learned radius \S+ (exceeds|is within) the baseline's \S+", words)


# Rules that are not finished


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
    problem, rule = zoo.source(), Unfinished(judge=judge)
    found = selection_of(problem, rule=rule)
    assert found.status == "undecided"
    assert words in found.reason
    with pytest.raises(fc.UncertifiedError, match=words):
        fc.certify(problem, fc.Data(np.ones(6), 1.0), fc.Candidate.from_coefficients(problem, np.ones(3)), rule)

"""Case files with samples, with model errors, with repeated readings, and with noise of which nobody knows the size."""

import csv
import json

import meshio
import numpy as np
import pytest
from test_case_keys import as_toml, changed, read

import femcert as fc
from femcert.cli import main
from femcert.learn import NeuralOperator
from femcert.study.example import write_example

COUNT, READINGS, REPEATS = 80, 28, 40


def smooth(x, count, seed):
    """Truths about that of the example, in no span of cosines, a row each."""
    rng = np.random.default_rng(seed)
    amplitudes, waves = rng.uniform(-1.5, 1.5, (count, 4)), rng.uniform(0.0, 4.0, (2, count, 4))
    phases = x[0] * waves[0][..., None] + x[1] * waves[1][..., None]
    return 1.0 + np.einsum("ij,ijk->ik", amplitudes, np.cos(phases))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_example(tmp_path_factory.mktemp("example") / "case").parent
    basis = read(changed(), folder).problem.parameters.basis
    fields = smooth(basis.doflocs, COUNT, 1)
    errors = 1e-4 * np.random.default_rng(2).standard_normal((COUNT, READINGS))
    np.savez(folder / "truths.npz", fields=fields)
    np.savez(folder / "others.npz", fields=smooth(basis.doflocs, 2 * COUNT, 3))
    np.savez(folder / "with_errors.npz", fields=fields, errors=errors)
    np.savez(folder / "errors.npz", errors=errors)
    np.savez(folder / "scattered.npz", fields=fields, points=basis.doflocs.T)
    mesh = meshio.read(folder / "mesh.msh")
    cells = [block for block in mesh.cells if block.type == "triangle"]
    data = {f"truth_{i:03d}": row for i, row in enumerate(smooth(mesh.points[:, :2].T, COUNT, 1))}
    meshio.Mesh(mesh.points, cells, point_data=data).write(folder / "truths.vtu")
    with open(folder / "truths.csv", "w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["x", "y", *(f"truth {i}" for i in range(COUNT))])
        rows.writerows(np.column_stack([basis.doflocs.T, fields.T]).tolist())
    with open(folder / "errors.csv", "w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow([f"reading {i}" for i in range(READINGS)])
        rows.writerows(errors.tolist())
    with open(folder / "data.csv", newline="") as stream:
        head, *rows = csv.reader(stream)
    noise = np.random.default_rng(4).standard_normal((len(rows), REPEATS))
    with open(folder / "repeats.csv", "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["x", "y", *(f"run {i}" for i in range(REPEATS))])
        for row, e in zip(rows, noise, strict=True):
            value, std = float(row[2]), float(row[3]) * np.sqrt(REPEATS)
            table.writerow([*row[:2], *(value + std * (e - e.mean()))])
    (folder / "plain.csv").write_text("\n".join(",".join(row[:3]) for row in [head, *rows]))
    return folder


FULL = {"kind": "full"}
BALL = {"norm": "h1", "length": 0.5}
RUNS = [f"run {i}" for i in range(REPEATS)]


def made(folder, **sections):
    return read(changed(**sections), folder)


@pytest.mark.parametrize("file", ["truths.npz", "scattered.npz", "truths.csv", "truths.vtu"])
def test_a_ball_from_samples(file, folder):
    keys = FULL | {"ball": BALL | {"samples": file, "confidence": 0.9}}
    case = read(changed() | {"class": keys}, folder)
    space = case.problem.parameters
    fields = smooth(space.basis.doflocs, COUNT, 1)
    same = fc.FullSpace(space.basis).within_ball(samples=fields, confidence=0.9, **BALL)
    assert space.ball.radius == pytest.approx(same.ball.radius, rel=1e-6)
    assert (space.ball.samples, space.ball.alpha) == (COUNT, pytest.approx(0.1))
    assert case.inputs["class.ball.samples"] == folder / file


def test_a_remainder_from_samples(folder):
    space = made(folder, **{"class": {"remainder": {"samples": "truths.npz", "confidence": 0.9}}}).problem.parameters
    fields = smooth(space.basis.doflocs, COUNT, 1)
    outside = sorted(space.norm(space.project(row)[1]) for row in fields)
    # The score of rank ceil(81 * 0.9) = 73.
    assert space.remainder.size == pytest.approx(outside[72], rel=1e-12)


@pytest.mark.parametrize("file", ["errors.npz", "errors.csv"])
def test_a_model_error_from_samples(file, folder):
    plain = made(folder).data
    found = made(folder, data={"model": {"samples": file, "confidence": 0.9}}).data
    same = plain.with_model_error(np.load(folder / "errors.npz")["errors"], confidence=0.9)
    np.testing.assert_allclose(found.values, same.values, rtol=1e-12)
    assert found.model.size == pytest.approx(same.model.size, rel=1e-9)
    assert found.confidence == pytest.approx(0.85)


def test_a_model_error_of_a_given_size(folder):
    found = made(folder, data={"model": {"matrix": [[1.0]] * READINGS, "size": 0.01}}).data
    assert (found.model.matrix.shape, found.model.size, found.confidence) == ((READINGS, 1), 0.01, 0.95)


def test_an_unknown_deviation(folder):
    case = read(changed(data={"file": "plain.csv", "std": "unknown"}, baseline=None), folder)
    assert case.baseline.choose == "gcv"
    assert case.data.law.zeta == pytest.approx(0.05)
    assert case.data.law.fixed is False
    assert fc.evidence(case.problem, case.data).law.degrees == READINGS - case.problem.parameters.dimension


def test_repeats_in_columns(folder):
    found = made(folder, data={"file": "repeats.csv", "repeats": RUNS}).data
    whole = made(folder).data
    np.testing.assert_allclose(found.values, whole.values, rtol=1e-9)
    assert found.law.about.shape == (REPEATS, READINGS)
    assert not found.law.proven
    assert made(folder, data={"file": "repeats.csv", "repeats": RUNS, "std": 0.005}).data.law.proven
    equal = made(folder, data={"file": "repeats.csv", "repeats": RUNS, "equal": True}).data
    assert equal.law.degrees == READINGS * (REPEATS - 1)


def test_repeats_in_the_case(folder):
    points = made(folder).problem.sensors.points.tolist()
    rows = np.random.default_rng(5).standard_normal((3, READINGS))
    values = {"file": None, "values": rows.tolist(), "equal": True}
    found = made(folder, data=values, sensors={"points": points}).data
    np.testing.assert_allclose(found.values, rows.mean(axis=0))


MAPS = {
    "tikhonov": {"kind": "tikhonov", "choose": "gcv"},
    "linear-map": {"kind": "linear-map", "file": "map.npz"},
    "operator": {"kind": "operator", "file": "operator.npz"},
}


@pytest.fixture(scope="module")
def maps(folder):
    """The files of solvers for the example."""
    problem = made(folder).problem
    F = problem.forward_matrix()
    B = problem.parameters.matrix
    inverse = np.linalg.solve(F.T @ F + 1e-4 * np.eye(F.shape[1]), F.T)
    offset = -B @ (inverse @ problem.forward.offset)
    np.savez(folder / "map.npz", matrix=B @ inverse, offset=offset)
    network = NeuralOperator(width=4)
    draw = lambda count, rng: rng.standard_normal((count, 8))  # noqa: E731
    network.fit(problem, sampler=draw, count=40, noise=0.01, steps=2, quiet=True)
    network.save(folder / "operator.npz")
    return folder


@pytest.mark.parametrize("kind", MAPS)
def test_a_calibrated_rule_judges_solvers(kind, maps):
    if kind == "operator":
        pytest.importorskip("torch")
    record = changed() | {"candidate": MAPS[kind], "rule": {"kind": "calibrated", "samples": "others.npz"}}
    case = read(record, maps)
    assert (case.rule.harm, len(case.rule.samples)) == (0.05, 2 * COUNT)
    rule = case.rule.calibrated(case.problem, case.data, baseline=case.baseline, learned=case.candidate)
    assert rule.calibration.samples == 2 * COUNT
    assert case.inputs["rule.samples"] == maps / "others.npz"


GCV = {"kind": "tikhonov", "choose": "gcv"}
WHOLE = {
    "ball": {"class": FULL | {"ball": BALL | {"samples": "truths.npz", "confidence": 0.9}}},
    "remainder": {"class": {"remainder": {"samples": "truths.npz", "confidence": 0.9}}},
    "model error": {"data": {"model": {"samples": "errors.csv", "confidence": 0.9}}},
    "model error of a size": {"data": {"model": {"matrix": [[1.0]] * READINGS, "size": 0.01}}},
    "unknown": {"data": {"file": "plain.csv", "std": "unknown"}, "baseline": GCV},
    "repeats": {"data": {"file": "repeats.csv", "repeats": RUNS, "std": 0.005}},
    "equal repeats": {"data": {"file": "repeats.csv", "repeats": RUNS, "equal": True}},
    "calibrated": {"candidate": MAPS["linear-map"], "rule": {"kind": "calibrated", "samples": "others.npz"}},
    "conformal": {
        "candidate": MAPS["linear-map"], "rule": {"kind": "conformal", "samples": "truths.npz"}, "baseline": GCV,
    },
    "calibrated with model error": {
        "candidate": MAPS["tikhonov"], "data": {"model": {"samples": "errors.npz"}},
        "rule": {"kind": "calibrated", "samples": "with_errors.npz", "harm": 0.2},
    },
    "thinning": {
        "candidate": MAPS["tikhonov"], "rule": {"kind": "dominance", "thinning": 1.0, "zeta": 0.05},
        "class": FULL | {"ball": BALL | {"radius": 4.0}},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_the_command(name, maps, tmp_path, capsys):
    """Each ends in a decision, and the record has what it rests on."""
    sections = dict(WHOLE[name])
    record = changed(**({"data": sections.pop("data")} if "data" in sections else {}))
    if (space := sections.pop("class", None)) is not None:
        record["class"] = space if "kind" in space else record["class"] | space
    record |= sections
    path = maps / "whole.toml"
    path.write_text("\n".join(f"{json.dumps(key)} = {as_toml(value)}" for key, value in record.items()))
    assert main(["certify", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 0, capsys.readouterr().err
    found = fc.Selection.load(tmp_path / "out" / "selection.json")
    assert found.status in ("accepted", "rejected")
    assert (tmp_path / "out" / "report.html").stat().st_size > 0


REFUSED = {
    "radius and samples": ({"class": {"ball": {"radius": 1.0, "samples": "truths.npz"}}},
        "class.ball.radius and class.ball.samples are both given"),
    "none": ({"class": {"ball": {}}}, "class.ball.radius is missing; expected it, or class.ball.samples"),
    "confidence alone": ({"class": {"ball": {"radius": 1.0, "confidence": 0.9}}},
        "class.ball.confidence is given without"),
    "no file": ({"class": {"ball": {"samples": "none.npz"}}}, "class.ball.samples: there is no such file"),
    "a number": ({"class": {"ball": {"samples": 3}}}, "class.ball.samples is 3; expected the name of a file"),
    "ending": ({"class": {"ball": {"samples": "truths.txt"}}}, "class.ball.samples: its ending is '.txt'"),
    "other array": ({"class": {"remainder": {"samples": "errors.npz"}}},
        "class.remainder.samples: it has no array 'fields'"),
    "too few": ({"class": {"remainder": {"samples": "truths.npz", "confidence": 0.999}}},
        "80 samples give no quantile"),
    "norm beside": ({"class": {"remainder": {"samples": "truths.npz", "norm": "h1"}}},
        "class.remainder.norm and class.rem"),
    "no matrix": ({"data": {"model": {}}}, "data.model: with_model_error needs a number, or samples"),
    "key of model": ({"data": {"model": {"sample": "x"}}}, "unknown key 'data.model.sample'.*did you mean 'samples'"),
    "columns": ({"data": {"model": {"samples": "truths.csv"}}}, "data.model.samples has shape"),
    "unknown and a level": ({"data": {"std": "unknown", "confidence": None, "noise_level": 1.0}},
        "data.noise_level is given, and"),
    "unknown and relative": ({"data": {"file": "plain.csv", "std": "unknown", "relative": 0.1}},
        "data.std is 'unknown'"),
    "unknown and a column": ({"data": {"std": "unknown"}}, "data.std is given, and a column"),
    "one repeat": ({"data": {"repeats": ["value"]}}, "data.repeats is .*expected the names of at least 2 columns"),
    "no column": ({"data": {"repeats": ["value", "again"]}}, "expected one called 'again'"),
    "equal": ({"data": {"equal": True}}, "data.equal is given without data.repeats"),
    "repeats and relative": ({"data": {"file": "repeats.csv", "repeats": RUNS, "relative": 0.1}},
        "data.relative is given, but rep"),
    "repeats and unknown": ({"data": {"file": "repeats.csv", "repeats": RUNS, "std": "unknown"}},
        "data.std is given, but rep"),
    "no samples": ({"rule": {"kind": "calibrated"}}, "rule.samples is missing"),
    "samples used twice": ({"class": {"ball": {"samples": "truths.npz"}},
        "rule": {"kind": "calibrated", "samples": "truths.npz"}}, "rule.samples and class.ball.samples are one file"),
    "harm": ({"rule": {"kind": "calibrated", "samples": "truths.npz", "harm": 2.0}}, "rule.harm is 2"),
    "solver": ({"candidate": {"kind": "gauss-newton", "weight": 1.0}},
        "candidate.kind is 'gauss-newton'; a linear problem"),
    "unknown solver": ({"candidate": {"kind": "magic"}}, "candidate.kind is 'magic'; expected one of"),
    "discrepancy": ({"data": {"file": "plain.csv", "std": "unknown"}},
        "baseline.choose is 'discrepancy', and data.std"),
    "shape": ({"candidate": {"kind": "linear-map", "file": "small.npz"}}, "candidate.file: matrix has shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name, folder):
    np.savez(folder / "small.npz", matrix=np.eye(2))
    sections, words = REFUSED[name]
    record = changed(**{key: value for key, value in sections.items() if key in ("data", "class")})
    record |= {key: value for key, value in sections.items() if key not in ("data", "class")}
    with pytest.raises(fc.InputError, match=words):
        read(record, folder)


def test_finished_candidates_are_not_tried(folder):
    """A rule of trials needs solvers, and says so."""
    record = changed() | {"rule": {"kind": "calibrated", "samples": "truths.npz"}}
    selection = read(record, folder).select()
    assert selection.status == "undecided"
    assert "solver" in selection.reason


def test_experiments_refuse_what_does_not_stack(folder):
    for own, words in (
        ({"model": {"samples": "errors.npz"}}, "data.model"),
        ({"std": "unknown"}, "data.std is 'unknown'"),
    ):
        data = {"file": "plain.csv" if "std" in own else "data.csv", **own}
        record = changed() | {"experiment": [{"data": data}, {"data": data}]}
        with pytest.raises(fc.InputError, match=words):
            read(record, folder)

"""Demos with measured data: what they claim where the data are, and one clear line where they are not."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_demos import run  # noqa: F401  (a fixture)

DEMOS = Path(__file__).parents[2] / "demos"
# Invented discs of the tanks: refuted, and all.
INVENTED = [(8, 8), (12, 12)]
MEASURED = ["ex14_crosshole_radar", "ex15_limited_angle_xray", "ex17_eit_tank", "ex20_eit_tank_regions"]


@pytest.fixture
def measured(request):
    """Runs a demo where the folder of its data is said; elsewhere the test is skipped, and says why."""
    if not os.environ.get("FEMCERT_DATA"):
        pytest.skip("FEMCERT_DATA is not set: no measured data")
    return request.getfixturevalue("run")


@pytest.mark.parametrize("name", MEASURED)
def test_without_data_or_network(name, tmp_path):
    # A proxy at a port on which nobody listens.
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9")
    others = {key: value for key, value in os.environ.items() if key not in ("FEMCERT_DATA", "NO_PROXY", "no_proxy")}
    environment = {**others, **nowhere, "XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    command = [sys.executable, str(DEMOS / f"{name}.py"), str(tmp_path / "out")]
    found = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0
    lines = found.stdout.splitlines()
    assert len(lines) == 1
    assert "FEMCERT_DATA" in lines[0]
    assert not (tmp_path / "out").exists()


def test_radar_without_torch(measured, tmp_path):
    """One clear line."""
    (tmp_path / "torch.py").write_text("raise ImportError('none here')", encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(DEMOS / "ex14_crosshole_radar.py"), str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": paths}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 1
    assert "pip install 'femcert[learn]'" in found.stdout


def test_crosshole_radar(measured):
    pytest.importorskip("torch")
    results = measured("ex14_crosshole_radar").results
    # The script has checked what it claims; here is what its first lines say.
    (rays, blocks), signs = results.checks.values(), results.signs
    assert (len(rays), len(blocks)) == (131, 171)
    assert np.median(rays[:, 1]) == pytest.approx(2.0, abs=0.05)
    assert np.median(blocks[:, 1]) == pytest.approx(2.9, abs=0.1)
    counted = {key: (int(np.sum(found > 0)), int(np.sum(found < 0)), len(found)) for key, found in signs.items()}
    assert counted == {
        ("noise", "squares"): (2, 7, 55),
        ("noise", "layers"): (9, 9, 22),
        ("noise and shifts", "squares"): (0, 0, 55),
        ("noise and shifts", "layers"): (6, 8, 22),
    }
    assert results.needed == pytest.approx(13.9, abs=0.1)
    # The layer is no member of the ball, but the claim is that of a mean that one might have.
    assert results.evidence.p_value > 0.05
    assert results.evidence.least_norm.value < 2.0
    # The network's answer: nothing of it is refuted, and it is not taken. Its last digits are those of the training.
    assert results.evidence.explains(results.candidates["network"].parameter)
    assert not results.refutations["network"].refuted
    radii = [certificate.radius.value for certificate in (results.selection.baseline, results.selection.learned)]
    assert radii[0] == pytest.approx(4.92, abs=0.05)
    assert 1.05 < radii[1] / radii[0] < 1.25


def test_limited_angle_xray(measured):
    demo = measured("ex15_limited_angle_xray")
    first, second = demo.verdicts
    for verdict in demo.verdicts:
        assert verdict.scan.attenuation.size == 910
        assert len(verdict.rows) == 105
        assert all(verdict.evidence.explains(picture) for picture in verdict.pictures.values())
        # What the true object leaves is what the other one was calibrated to leave.
        left = verdict.evidence.data.values - verdict.scan.matrix @ verdict.scan.truth
        assert np.sqrt(np.mean(left**2)) < demo.SAFETY * demo.calibrated(
            (second if verdict is first else first).scan).deviation  # fmt: skip
    # Not decided by rounding: 0.3 mm beyond the end of the interval.
    (bundle,) = demo.refuted(first, "learned")
    refutation = first.refutations["learned"]
    assert refutation.table[bundle].lower.value - refutation.values[bundle] > 0.2


def test_eit_tank(measured):
    demo = measured("ex17_eit_tank")
    results = demo.results
    assert results.calibration.misfit == pytest.approx(0.021, abs=0.001)
    assert results.calibration.width == 1.25
    first, second = results.verdicts
    assert demo.counted(first, "half discs") == (8, 8, 5, 4, 0)
    assert demo.counted(second, "half discs") == (8, 7, 4, 4, 0)
    assert [demo.counted(verdict, "quarter discs")[-1] for verdict in results.verdicts] == [0, 0]
    # Of 17 statements one is within twice the error: the object is in that half disc by one row of pixels.
    near = [
        (i, j, side)
        for i, verdict in enumerate(results.verdicts)
        for j, proof in enumerate(verdict.proofs["half discs"])
        for side, by in (("better", proof.above_by), ("worse", proof.below_by))
        if 0.0 < by < proof.error
    ]
    assert near == [(0, 2, "better")]


def test_eit_tank_regions(measured):
    demo = measured("ex20_eit_tank_regions")
    results = demo.results
    with (DEMOS / "eit_tank_regions.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["refuted"]]
    found = [each for verdict in results.verdicts for some in verdict.explained.values() for each in some]
    # The table was written by another run; no candidate is decided by rounding.
    assert [str(each.refuted) for each in found] == [row["refuted"] for row in rows]
    for verdict, invented in zip(results.verdicts, INVENTED, strict=True):
        space = verdict.evidence.problem.parameters
        assert space.ball_norm(results.tank.field(verdict.truth)) < space.ball.radius
        refuted = [each.refuted for each in verdict.explained["invented"]]
        assert (sum(refuted), len(refuted)) == invented
        # For every truth, with the error of the model, no sign is certain; for truths like the phantoms some are.
        for count in (9, 17):
            assert demo.counted(verdict, "noise and model", count)[2] == 0
            soft, sharp, certain, wrong = demo.counted(verdict, "phantoms", count)
            assert soft == sharp == count
            assert certain >= 2
            assert wrong == 0
        # Noise alone would say some.
        assert demo.counted(verdict, "noise", 9)[2] >= 2


def test_table_of_held_out_readings_says_what_the_demo_says():
    with (DEMOS / "crosshole_radar.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["readings"] for row in rows] == ["702"] * 8
    # 649 of 702 would be too few for a level of 95 %, at 1 %.
    assert all(int(row["inside"]) >= 652 for row in rows)
    halves = [float(row["half_length"]) for row in rows if row["radius"] == "2.0" and row["static_shifts"] == "no"]
    assert halves == pytest.approx([2.0, 2.9], abs=0.1)

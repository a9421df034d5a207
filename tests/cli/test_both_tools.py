"""A run of Nsight Systems and a profile of Nsight Compute, given together: one report, one ranking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.cli.conftest import Command
from tests.launches.profiles import TIME, dram, vector
from tests.rules.scenes import Scene

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
SIZES = {"gridX": 1024, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path]:
    """Ten times: 600 ns of 'stencil', at 30 % of its nearest roof, 300 of 'scale', at 85 %, and 100 of nothing."""
    scene = Scene()
    for start in range(0, 10_000, 1000):
        scene.main.launch(scene.gpu, called=start - 50, start=start, end=start + 600, name="stencil", **SIZES)
        scene.main.launch(scene.gpu, called=start + 560, start=start + 600, end=start + 900, name="scale", **SIZES)
    profile = NcuReport([_launch("stencil", memory=0.3), _launch("scale", memory=0.85)])
    return scene.export.write(tmp_path / "run.sqlite"), profile.write(tmp_path / "kernels.ncu-rep")


def _launch(name: str, memory: float) -> KernelLaunch:
    """With SMs that have little to do beside: no pipeline that is not counted is at its limit."""
    return KernelLaunch({**TIME, **dram(1000 * memory), **vector("f", fma=1000), SM: 5.0}, name)


def report_of(diag: Command, *inputs: Path) -> dict[str, Any]:
    return dict(json.loads(diag("report", *inputs, "--format", "json").is_quiet_success()))


def test_findings_of_both_stand_in_one_ranking(diag: Command, inputs: tuple[Path, Path]) -> None:
    """The stencil could lose 70 % of its 6,000 ns in a window of 9,900; the device idles for 900."""
    report = report_of(diag, *inputs)
    ranked = [(each["rule"], each["recoverable_ns"]) for each in report["findings"]]
    (roofline,) = (each for each in report["findings"] if each["rule"] == "ncu.roofline")
    assert roofline["recoverable_ns"] == 4200
    assert roofline["share"] == pytest.approx(4200 / 9900)
    assert roofline["subject"]["window"] == [0, 9900]
    assert ranked.index(("ncu.roofline", 4200)) < next(at for at, (rule, _) in enumerate(ranked) if rule == "idle.gpu")
    assert report["verdict"]["finding_id"] == roofline["id"]


def test_launches_know_their_place_and_kernels_their_roofline(diag: Command, inputs: tuple[Path, Path]) -> None:
    report = report_of(diag, *inputs)
    places = {launch["name"]: launch["timeline"] for launch in report["launches"]}
    assert {name: (place["count"], place["total_ns"]) for name, place in places.items()} == {
        "stencil": (10, 6000),
        "scale": (10, 3000),
    }
    assert {place["confidence"] for place in places.values()} == {"high"}
    rooflines = {kernel["name"]: kernel["roofline"] for kernel in report["kernels"]}
    assert (rooflines["stencil"]["bound"], rooflines["scale"]["bound"]) == ("latency", "memory")
    assert rooflines["stencil"]["headroom"] == pytest.approx(0.7)


def test_the_text_names_what_could_be_won_of_the_run(diag: Command, inputs: tuple[Path, Path]) -> None:
    text = diag("report", *inputs).is_quiet_success()
    (row,) = (line for line in text.splitlines() if "stencil <<<" in line and "latency" in line)
    assert row.split()[:7] == ["6.0", "µs", "1.0", "ms", "4.2", "µs", "latency"]


def test_the_order_of_the_inputs_does_not_matter(diag: Command, inputs: tuple[Path, Path]) -> None:
    one, other = report_of(diag, *inputs), report_of(diag, *reversed(inputs))
    assert one["verdict"]["title"] == other["verdict"]["title"]
    ranked = [[(each["rule"], each["share"]) for each in report["findings"]] for report in (one, other)]
    assert ranked[0] == ranked[1]


def test_nothing_is_drawn_of_a_profile_alone(diag: Command, inputs: tuple[Path, Path], tmp_path: Path) -> None:
    said = diag("export", inputs[1], "-o", tmp_path / "trace.json").is_one_sentence(2)
    assert "there is no timeline to draw" in said
    assert not (tmp_path / "trace.json").exists()


def test_two_profiles_of_one_kernel_are_told_apart(diag: Command, inputs: tuple[Path, Path], tmp_path: Path) -> None:
    """As before and after a change: each has its findings, its row and its own answers."""
    other = NcuReport([_launch("stencil", memory=0.5)]).write(tmp_path / "later.ncu-rep")
    report = report_of(diag, *inputs, other)
    found = [each for each in report["findings"] if each["rule"] == "ncu.roofline"]
    assert sorted(each["recoverable_ns"] for each in found) == [3000, 4200]
    assert len({each["id"] for each in report["findings"]}) == len(report["findings"])
    launches = {launch["id"]: launch["name"] for launch in report["launches"]}
    assert {launches[each["subject"]["launch"]] for each in found} == {"stencil"}
    text = " ".join(diag("report", *inputs, other).is_quiet_success().split())
    assert "in kernels" in text
    assert "in later" in text


def test_what_takes_the_time_is_no_verdict_where_nothing_was_measured(diag: Command, tmp_path: Path) -> None:
    long, short = ({"gpu__time_duration.sum": ns} for ns in (9000, 1000))
    profile = NcuReport([KernelLaunch(long, "stencil"), KernelLaunch(short, "scale")]).write(tmp_path / "few.ncu-rep")
    said = diag("report", profile)
    assert said.status == 4
    assert said.out.startswith("Cannot tell\n")
    assert "stencil takes 90.0 % of the kernel time." in " ".join(said.out.split())

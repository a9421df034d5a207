"""Operators of a trace stand under what was measured on their device, else under what is printed about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling
from diag.model.ceilings import Ceiling
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.timeline_report import OperatorRow
from tests.builders.kineto import imported
from tests.timeline.test_operators import launched, operator

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
ADDED = 12 * 1_000_000
"""Bytes of an addition of a million floats, here in 10 µs: 1.2 TB/s."""


def calibration(per_s: float) -> Benchmark:
    ceiling = Ceiling(per_s, "bytes/s", "measured", "", "diag calibrate", level="dram", access="copy")
    machine = Machine("cuda", "NVIDIA H100 80GB HBM3", 132, compute_capability=(9, 0))
    return Benchmark(machine, [MeasuredCeiling(ceiling, 20, "")])


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    events = [operator("aten::add", 0, 10, [[1_000_000], [1_000_000], []]), *launched(1, 5, 100, 110)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [H100], "traceEvents": events}))
    return path


def row(trace: Path, folder: Path, ceilings: Sequence[Benchmark]) -> OperatorRow:
    with imported(trace, folder) as case:
        (found,) = analyse(case, AnalysisOptions(ceilings=ceilings)).operators
    return found


def test_the_measured_bandwidth_is_the_roof(trace: Path, tmp_path: Path) -> None:
    found = row(trace, tmp_path, [calibration(3e12)])
    assert (found.nearest, found.roof_origin, found.bytes) == ("DRAM", "measured", ADDED)
    assert found.roof_share == pytest.approx(0.4)


def test_without_a_calibration_the_printed_one_is(trace: Path, tmp_path: Path) -> None:
    found = row(trace, tmp_path, [])
    assert (found.nearest, found.roof_origin) == ("DRAM", "datasheet")
    assert found.roof_share == pytest.approx(1.2 / 3.35, rel=0.01)


def test_above_a_measured_roof_nothing_is_claimed(trace: Path, tmp_path: Path) -> None:
    found = row(trace, tmp_path, [calibration(1e12)])
    assert (found.nearest, found.roof_share, found.roof_origin, found.bound) == (None, None, None, None)

"""Figures on the screens are those of `diag report --format json` for the same inputs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from diag.model import units
from diag.tui.widgets.row_table import RowTable
from tests.terminal import DIAG
from tests.tui.driving import drive, press, shown
from tests.tui.synthetic_profile import PROFILE

REPORTS = Path(os.environ.get("DIAG_REAL_REPORTS", "/nonexistent"))
REAL = (
    "nsys/h100x2-offload.sqlite",
    "nsys/t4-power-iteration.sqlite",
    "kineto/resnet50-workers0.pt.trace.json.gz",
    "ncu/a100-selfjoin-14launches.ncu-rep",
)
TALL = (200, 400)
"""All of a page is in sight."""


def report_of(inputs: Sequence[Path]) -> Any:
    command = [DIAG, "report", "--format", "json", "--no-cache", *map(str, inputs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def table(pilot: Pilot[None], name: str) -> list[dict[str, str]]:
    """The rows of a table, as they are drawn, by their columns."""
    drawn: RowTable[Any] = pilot.app.screen.query_one(f"#{name}", RowTable)
    return [{column.key: column.text(row) for column in drawn.columns} for row in drawn.rows]


def kernel(row: Any) -> tuple[str, ...]:
    times = (units.time(row[key]) for key in ("total_ns", "median_ns", "max_ns", "min_ns"))
    shares = (units.share(row[key]) for key in ("share_of_kernel_time", "share_of_window"))
    return (*times, *shares, f"{row['count']:,}")


def launch(row: Any) -> tuple[str, ...]:
    shares = ("-" if row["sol"][key] is None else f"{row['sol'][key]:.1f} %" for key in ("sm_pct", "memory_pct"))
    return row["id"], "-" if row["duration_ns"] is None else units.time(row["duration_ns"]), *shares


def check(inputs: Sequence[Path]) -> None:
    report = report_of(inputs)
    has_shares = [device for device in report["devices"] if device["n_kernels"]]

    async def scenario(pilot: Pilot[None]) -> None:
        overview = shown(pilot)
        assert report["verdict"]["title"] in " ".join(overview.split())
        for device in has_shares:
            assert f"window {units.time(device['window_ns'])}" in overview
            for label, key in (("idle", "idle_ns"), ("kernels", "kernel_ns")):
                assert f"{label} {units.share(device[key] / device['window_ns'])}" in overview
        assert len(report["findings"]) == 0 or f"Found ({len(report['findings'])})" in overview

        await press(pilot, "4")
        columns = ("total", "median", "max", "min", "share", "window", "count")
        drawn = [tuple(row[key] for key in columns) for row in table(pilot, "kernels-table")]
        assert sorted(drawn) == sorted(map(kernel, report["kernels"]))

        await press(pilot, "6", "escape", "g")
        drawn = [tuple(row[key] for key in ("id", "time", "sm", "memory")) for row in table(pilot, "launches-table")]
        assert sorted(drawn) == sorted(map(launch, report["launches"]))

    drive(inputs, scenario, size=TALL)


def test_of_a_trace(training: Path) -> None:
    check([training])


def test_of_a_profile(tmp_path: Path) -> None:
    check([PROFILE.write(tmp_path / "kernels.ncu-rep")])


@pytest.mark.parametrize("name", REAL)
@pytest.mark.skipif(not REPORTS.is_dir(), reason="DIAG_REAL_REPORTS names no folder of real reports")
def test_of_reports_that_tools_wrote(name: str) -> None:
    check([REPORTS / name])

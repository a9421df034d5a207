"""What a report says of itself and of how it was made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diag.ingest.launch_records import ReportFacts
from diag.ingest.ncu_rep.read import read
from tests.builders.ncu_report import KernelLaunch, NcuReport

REPORT = NcuReport([KernelLaunch({"gpu__time_duration.sum": 1000})])
SILENT = replace(REPORT, clock_control="", replay="")
NCU = "/opt/nsight-compute-2025.2/target/linux-desktop-glibc_2_11_3-x64/ncu"


def facts_of(report: NcuReport, folder: Path) -> ReportFacts:
    return read(report.write(folder / "kernels.ncu-rep")).facts


def test_versions_host_and_device(tmp_path: Path) -> None:
    facts = facts_of(REPORT, tmp_path)
    assert (facts.tool_version, facts.schema_version, facts.host) == ("2025.2.1.0", "7", "node1")
    (device,) = facts.devices
    assert (device.ordinal, device.name, device.compute_capability) == (0, "NVIDIA A100-PCIE-40GB", (8, 0))
    assert device.attributes["multiprocessor_count"] == 108


def conditions(report: NcuReport, folder: Path) -> tuple[str | None, str | None, str | None]:
    facts = facts_of(report, folder)
    return facts.clock_control, facts.cache_control, facts.replay


def test_stored_settings(tmp_path: Path) -> None:
    report = replace(REPORT, clock_control="None", replay="Application")
    assert conditions(report, tmp_path) == ("none", None, "application")


def test_without_settings_and_command_line_nothing_is_known(tmp_path: Path) -> None:
    assert conditions(SILENT, tmp_path) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--set full -o out", ("base", "all", "kernel")),
        ("--clock-control none --cache-control none --replay-mode application", ("none", "none", "application")),
        ("--clock-control=none --cache-control=none --replay-mode=app-range", ("none", "none", "app-range")),
        ("--cache-control 'none'", ("base", "none", "kernel")),
        ("--cache-control sometimes --replay-mode", ("base", None, None)),
        ("--my-cache-control none", ("base", "all", "kernel")),
    ],
)
def test_the_command_line_tells_what_was_chosen(options: str, expected: tuple[str | None, ...], tmp_path: Path) -> None:
    assert conditions(replace(SILENT, command_line=f"{NCU} {options} ./app"), tmp_path) == expected


def test_nothing_else_of_the_command_line_is_kept(tmp_path: Path) -> None:
    report = replace(SILENT, command_line=f"{NCU} -o out ./app --token hunter2 --replay-mode hunter2")
    facts = facts_of(report, tmp_path)
    assert "hunter2" not in repr(facts)
    assert "10.1.2.3" not in repr(facts), "an address of the machine"
    assert facts.replay is None

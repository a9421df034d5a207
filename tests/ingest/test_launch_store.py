"""What of a report of Nsight Compute stands where in the case."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from diag.ingest.importer import ImportOptions, open_inputs
from diag.store.case import Case
from tests.builders.cubin import cubin
from tests.builders.imported import imported
from tests.builders.ncu_report import KernelLaunch, NcuReport, Said

STALL = "smsp__pcsamp_warps_issue_stalled_long_scoreboard"


def rows(case: Case, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in case.rows(sql)]


def test_a_metric_its_unit_and_its_instances(tmp_path: Path) -> None:
    """A text has no unit, though its name ends like a percentage; an unsigned count beyond 63 bits becomes a float."""
    breakdown = "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"
    launch = KernelLaunch(
        {"inst_executed": 30, breakdown: "sm__inst_executed,sm__pipe_alu", "smsp__inst_executed.sum": 1 << 63},
        device=None,
        instances={"inst_executed": {0x1000: 10, 0x1010: 20}},
    )
    with imported(NcuReport([launch]), tmp_path) as case:
        assert rows(case, "SELECT name, unit, value FROM launch_metric JOIN metric ON id = metric_id ORDER BY id") == [
            ("inst_executed", "inst", 30),
            (breakdown, "", "sm__inst_executed,sm__pipe_alu"),
            ("smsp__inst_executed.sum", "inst", float(1 << 63)),
        ]
        assert rows(case, "SELECT at, key, value FROM launch_instance") == [(0, 0x1000, 10), (1, 0x1010, 20)]
        (source,) = case.sources
        assert source.capabilities["launch_metric"] == 3


def test_samples_of_each_instruction(tmp_path: Path) -> None:
    """Where samples without an issue were taken at all, an instruction that has none has 0 of them."""
    launch = KernelLaunch(
        {STALL: 9, f"{STALL}_not_issued": 3, "smsp__pcsamp_warps_issue_stalled_wait": 4},
        instances={
            STALL: {0x10: 7, 0x20: 2},
            f"{STALL}_not_issued": {0x10: 3},
            "smsp__pcsamp_warps_issue_stalled_wait": {0x20: 4},
        },
    )
    with imported(NcuReport([launch]), tmp_path) as case:
        assert rows(case, "SELECT address, reason, samples, not_issued FROM launch_stall ORDER BY reason, address") == [
            (0x10, "long_scoreboard", 7, 3),
            (0x20, "long_scoreboard", 2, 0),
            (0x20, "wait", 4, None),
        ]


def test_ranges_of_the_default_domain_have_no_domain_as_in_a_timeline(tmp_path: Path) -> None:
    launch = KernelLaunch({}, pushed={"<default domain>": ["step"], "lib": ["gemm"]})
    with imported(NcuReport([launch]), tmp_path) as case:
        found = rows(
            case,
            """SELECT d.text, n.text FROM launch_range r JOIN name n ON n.id = r.name_id
                 LEFT JOIN name d ON d.id = r.domain_id""",
        )
        assert found == [(None, "step"), ("lib", "gemm")]


def test_what_nvidias_rules_said_and_looked_at(tmp_path: Path) -> None:
    said = [
        Said("Look at DRAM.", title="DRAM", speedup=(2, 12.5), focus=[("dram__bytes.sum", 91.5, 2, "much")]),
        Said("Balanced.", type=1),
    ]
    with imported(NcuReport([KernelLaunch({}, rules=said)]), tmp_path) as case:
        (first, second) = rows(
            case, "SELECT rule, section, type, title, message, speedup_pct, speedup_kind, focus FROM launch_rule"
        )
        assert first[:-1] == (
            "SOLBottleneck",
            "SpeedOfLight",
            "optimization",
            "DRAM",
            "Look at DRAM.",
            12.5,
            "global",
        )
        assert json.loads(first[-1]) == [
            {"metric": "dram__bytes.sum", "value": 91.5, "severity": "high", "info": "much"}
        ]
        assert second == ("SOLBottleneck", "SpeedOfLight", "ok", None, "Balanced.", None, None, None)


def test_lines_of_instructions_and_imported_sources(tmp_path: Path) -> None:
    """Lines end as compilers count them: a form feed does not."""
    report = NcuReport(
        [KernelLaunch({"launch__function_pcs": 0x7000}, "scale", cubin=5)],
        cubins={5: cubin({"scale": (2, [(0, 2), (16, 3)])})},
        sources={"/src/kernels.cu": "a\r\nb\fb\nc"},
    )
    with imported(report, tmp_path) as case:
        found = rows(
            case,
            """SELECT i.address, i.sass, s.line, s.text FROM launch_instruction i
                 JOIN source_line s USING (file_id, line) ORDER BY address""",
        )
        assert found == [(0x7000, None, 2, "b\fb"), (0x7010, None, 3, "c")]
        assert rows(case, "SELECT line, text FROM source_line")[0] == (1, "a")


def test_devices_of_several_processes(tmp_path: Path) -> None:
    """Ordinal 0 of each process is what that process sees; equal descriptions are one device."""
    metrics = {"gpu__time_duration.sum": 1000}
    launches = [
        KernelLaunch(metrics, pid=100, device=0),
        KernelLaunch(metrics, pid=200, device=0),
        KernelLaunch(metrics, pid=300, device=0),
        KernelLaunch(metrics, pid=300, device=1),
        KernelLaunch(metrics, pid=100, device=7),
    ]
    report = NcuReport(launches, "A100", more_devices={(200, 0): "H100", (300, 0): "A100", (300, 1): "H100"})
    with imported(report, tmp_path) as case:
        found = rows(
            case,
            """SELECT p.pid, l.device, d.name FROM launch l LEFT JOIN process p ON p.id = l.process_id
                 LEFT JOIN device d ON d.id = l.device_id ORDER BY l.number""",
        )
        assert found == [(100, 0, "A100"), (200, 0, "H100"), (300, 0, "A100"), (300, 1, "H100"), (100, 7, None)]
        assert rows(case, "SELECT gpu_index, name, sm_count FROM device") == [
            (0, "A100", 108),
            (0, "H100", 108),
            (1, "H100", 108),
        ]
        assert len(rows(case, "SELECT * FROM process_device")) == 4


def test_a_process_that_no_device_is_told_of_has_that_of_the_others(tmp_path: Path) -> None:
    launches = [KernelLaunch({}, pid=pid) for pid in (100, 200)]
    with imported(NcuReport(launches, "A100"), tmp_path) as case:
        assert rows(case, "SELECT COUNT(DISTINCT device_id), COUNT(device_id) FROM launch") == [(1, 2)]


def test_conditions_of_the_measurement(tmp_path: Path) -> None:
    report = replace(
        NcuReport.of({"profiler__replayer_passes": 33.0, "launch__shared_mem_config_size": 8192}),
        replay="",
        command_line="/opt/ncu --cache-control none --replay-mode application ./app",
    )
    with imported(report, tmp_path) as case:
        columns = "is_clock_locked, cache_control, replay, passes, shared_executed_bytes, duration_ns"
        assert rows(case, f"SELECT {columns} FROM launch") == [(1, "none", "application", 33, 8192, 1e6)]


def test_no_secret_reaches_the_case(tmp_path: Path) -> None:
    """Neither the arguments of the program nor the addresses of the machine."""
    folder = tmp_path / "in"
    folder.mkdir()
    report = replace(NcuReport.of({}), command_line="/opt/ncu --set full ./app --token hunter2")
    kept = tmp_path / "kept.diag"
    path = report.write(folder / "kernels.ncu-rep")
    with open_inputs([path], ImportOptions(keep=kept, use_cache=False)):
        pass
    content = kept.read_bytes()
    assert b"stencil" in content
    assert b"hunter2" not in content
    assert b"10.1.2.3" not in content

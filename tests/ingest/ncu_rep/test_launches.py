"""What a report says of each launch: identity, values, NVTX ranges, NVIDIA's rules."""

from __future__ import annotations

from pathlib import Path

from diag.ingest.launch_records import FocusMetric, Instance, LaunchRecord, Metric, OpenRange, RuleResult
from diag.ingest.ncu_rep.read import read
from tests.builders.ncu_report import KernelLaunch, NcuReport, Said


def launches_of(report: NcuReport, folder: Path) -> list[LaunchRecord]:
    return list(read(report.write(folder / "kernels.ncu-rep")).launches)


def launch_of(launch: KernelLaunch, folder: Path) -> LaunchRecord:
    (found,) = launches_of(NcuReport([launch]), folder)
    return found


def test_identity(tmp_path: Path) -> None:
    launch = launch_of(KernelLaunch({}, "void gemm<float>(int)", (64, 2, 1), (128, 1, 1)), tmp_path)
    assert (launch.kind, launch.name, launch.short_name) == ("kernel", "void gemm<float>(int)", "void gemm<float>")
    assert (launch.pid, launch.process_name, launch.tid) == (100, "python", 101)
    assert (launch.device, launch.context, launch.stream) == (0, 1, 7)
    assert (launch.grid, launch.block) == ((64, 2, 1), (128, 1, 1))
    assert launch.is_clock_locked is True


def test_values_have_their_type_and_unit(tmp_path: Path) -> None:
    metrics: dict[str, int | float | str] = {
        "gpu__time_duration.sum": 1500,
        "dram__bytes.sum.per_second": 1.5e12,
        "launch__func_cache_config": "CachePreferNone",
        "launch__function_pcs": (1 << 64) - 1,
        "sm__inst_executed.avg.per_cycle_active": float("inf"),
    }
    assert launch_of(KernelLaunch(metrics), tmp_path).metrics == [
        Metric("launch__device_id", "", 0),
        Metric("gpu__time_duration.sum", "ns", 1500),
        Metric("dram__bytes.sum.per_second", "byte/s", 1.5e12),
        Metric("launch__func_cache_config", "", "CachePreferNone"),
        Metric("launch__function_pcs", "", (1 << 64) - 1),
        Metric("sm__inst_executed.avg.per_cycle_active", "inst/cycle", float("inf")),
    ]


def test_instances_have_their_addresses_or_names(tmp_path: Path) -> None:
    mixed: dict[int, int | float | str] = {0x1000: 1, 0x1010: 2.5, 0x1020: "three"}
    launch = launch_of(
        KernelLaunch(
            {"inst_executed": 30, "sass__inst_executed_per_opcode": 30.0, "mixed": 0, "odd": 0},
            instances={
                "inst_executed": {0x1000: 10, 0x1010: 20},
                "sass__inst_executed_per_opcode": {"IMAD": 10.0, "LDG": 20.0},
                "mixed": mixed,
                "odd": {0x1000: (1 << 64) - 0x5EED, 0x1010: 1},
            },
        ),
        tmp_path,
    )
    instances = {metric.name: metric.instances for metric in launch.metrics}
    assert instances["launch__device_id"] == ()
    assert instances["inst_executed"] == [Instance(0x1000, 10), Instance(0x1010, 20)]
    assert instances["sass__inst_executed_per_opcode"] == [Instance("IMAD", 10.0), Instance("LDG", 20.0)]
    assert instances["mixed"] == [Instance(0x1000, 1), Instance(0x1010, 2.5), Instance(0x1020, "three")]
    assert instances["odd"] == [Instance(0x1000, (1 << 64) - 0x5EED), Instance(0x1010, 1)], (
        "a value as absent ones read"
    )


def test_nvtx_ranges_of_its_thread_and_those_that_anyone_started(tmp_path: Path) -> None:
    launch = launch_of(
        KernelLaunch({}, pushed={"<default domain>": ["step", "forward"], "lib": ["gemm"]}, started={"lib": ["epoch"]}),
        tmp_path,
    )
    assert launch.ranges == [
        OpenRange(0, "push", "<default domain>", "step"),
        OpenRange(1, "push", "<default domain>", "forward"),
        OpenRange(0, "push", "lib", "gemm"),
        OpenRange(0, "start", "lib", "epoch"),
    ]


def test_every_message_of_a_rule(tmp_path: Path) -> None:
    """With the file's own numbers: 2 is a warning there, and 4 an optimization."""
    focus = [("dram__throughput.avg.pct_of_peak_sustained_elapsed", 91.5, 2, "91.500 > 80.000")]
    rules = [
        Said("Look at DRAM.", title="DRAM", speedup=(2, 12.5), focus=focus),
        Said("Balanced.", type=1),
        Said("Uncoalesced.", "Uncoalesced", "SourceCounters", type=2, speedup=(1, float("nan"))),
        Said("Failed.", "Uncoalesced", "SourceCounters", type=3),
        Said("Just so.", "Uncoalesced", "SourceCounters", type=0, speedup=(7, 1.0)),
        Said("Not known.", "Uncoalesced", "SourceCounters", type=99),
    ]
    sol, uncoalesced = ("SOLBottleneck", "SpeedOfLight"), ("Uncoalesced", "SourceCounters")
    names = {"SOLBottleneck": "Shown as SOLBottleneck", "Uncoalesced": "Shown as Uncoalesced"}
    dram = (FocusMetric(focus[0][0], 91.5, "high", "91.500 > 80.000"),)
    assert launch_of(KernelLaunch({}, rules=rules), tmp_path).rules == [
        RuleResult(*sol, names[sol[0]], "optimization", "DRAM", "Look at DRAM.", 12.5, "global", dram),
        RuleResult(*sol, names[sol[0]], "ok", None, "Balanced."),
        RuleResult(*uncoalesced, names[uncoalesced[0]], "warning", None, "Uncoalesced.", None, "local"),
        RuleResult(*uncoalesced, names[uncoalesced[0]], "error", None, "Failed."),
        RuleResult(*uncoalesced, names[uncoalesced[0]], "info", None, "Just so."),
        RuleResult(*uncoalesced, names[uncoalesced[0]], "info", None, "Not known."),
    ]


def test_ranges_and_graphs_are_results_too(tmp_path: Path) -> None:
    duration = {"gpu__time_duration.sum": 1000}
    report = NcuReport([KernelLaunch(duration, kind=kind) for kind in ("kernel", "range", "command list", "graph")])
    launches = launches_of(report, tmp_path)
    assert [(launch.kind, launch.name) for launch in launches] == [
        ("kernel", "stencil"),
        ("range", "range"),
        ("range", "cmdlist"),
        ("graph", "graph"),
    ]
    assert {launch.metrics[-1] for launch in launches} == {Metric("gpu__time_duration.sum", "ns", 1000)}
    assert all((launch.grid, launch.block, launch.stream) == (None, None, None) for launch in launches[1:])


def test_a_launch_on_a_device_that_is_not_supported_is_said(tmp_path: Path) -> None:
    report = read(NcuReport([KernelLaunch({}, is_unsupported=True)]).write(tmp_path / "kernels.ncu-rep"))
    assert len(list(report.launches)) == 1
    (problem,) = report.problems
    assert problem.startswith("1 launch ran on a device that this ncu did not fully support")

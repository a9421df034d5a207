"""Random exports that are valid: what every rule says of them is possible, and the same however they are written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.report import Report
from tests.builders.imported import imported
from tests.builders.nsys_export import Gpu, NsysExport, Thread
from tests.fuzz import invariants
from tests.fuzz.seeds import chance_of
from tests.rules.scenes import H100

KERNELS = ("gemm", "relu", "ncclDevKernel_AllReduce", "elementwise_add", "cutlass_80_simt_sgemm")
LATE_NS = 1_000_000_000
few_seeds = pytest.mark.parametrize(
    "seed", [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 200))]
)


def random_run(chance: random.Random, shift_ns: int = 0) -> NsysExport:
    """A loop of random steps: their work runs on one of a few streams, each in order, and never before its launch."""
    export = NsysExport()
    export.hardware(0, **H100, totalMemory=80 << 30)
    process = export.process()
    process.sees(0, 0)
    main, gpu = process.thread(), process.gpu()
    gpu.describe_context()
    for stream in (7, 13):
        gpu.describe_stream(stream)
    unit = chance.choice((1, 1_000, 50_000))
    now, free = shift_ns + 10, {7: shift_ns, 13: shift_ns}
    for step in range(chance.randrange(3, 40)):
        began = now
        for _ in range(chance.randrange(1, 6)):
            now = _act(chance, main, gpu, now, free, unit)
        main.range(f"step {step}", began, now)
    return export


def _act(chance: random.Random, main: Thread, gpu: Gpu, now: int, free: dict[int, int], unit: int) -> int:
    """One thing that the program does at `now`; returns when it goes on."""
    returns = now + chance.randrange(1, 8) * unit
    stream = chance.choice((7, 7, 13))
    start = max(now + chance.randrange(1, 20) * unit, free[stream])
    end = start + chance.randrange(1, 40) * unit
    match chance.choice(("kernel", "kernel", "kernel", "copy", "graph", "sync", "event", "read", "memory")):
        case "kernel":
            shape = {"gridX": chance.choice((1, 132, 1000)), "blockX": chance.choice((32, 256, 1024))}
            shape |= {"gridY": 1, "gridZ": 1, "blockY": 1, "blockZ": 1, "registersPerThread": chance.choice((16, 255))}
            main.launch(gpu, now, start, end, chance.choice(KERNELS), returns=returns, streamId=stream, **shape)
            free[stream] = end
        case "copy":
            kind, memory = chance.choice(COPIES)
            called = main.call("cudaMemcpyAsync_v3020", now, returns)
            gpu.copy(start, end, 1 << chance.randrange(4, 28), kind, memory, called, streamId=stream)
            free[stream] = end
        case "graph":
            launched = main.call("cudaGraphLaunch_v10000", now, returns)
            if chance.random() < 0.7:
                gpu.nodes(start, unit, 5, launched, apart=chance.choice((0, unit)), streamId=stream)
                free[stream] = start + 10 * unit
        case "sync":
            returns = max(returns, free[stream] + unit)
            gpu.sync(
                "Stream sync", now, returns, main.call("cudaStreamSynchronize_v3020", now, returns), streamId=stream
            )
        case "event":
            gpu.record(1, 7, main.call("cudaEventRecord_v3020", now, now + unit))
            waits = main.call("cudaStreamWaitEvent_v3020", now + unit, returns + unit)
            gpu.sync("Stream wait sync", now + unit, returns + unit, waits, streamId=13, eventId=1)
            returns += unit
        case "read":
            returns += chance.randrange(50) * unit
            main.os_call("read", now, returns)
            main.off_cpu(now, returns)
        case "memory":
            called = main.call("cudaMalloc_v3020", now, returns)
            gpu.allocate(now + 1, 1 << 20, 0x1000 + called, correlationId=called)
    return returns + chance.randrange(4) * unit


COPIES = (
    ("Host-to-Device", ("Pageable", "Device")),
    ("Host-to-Device", ("Pinned", "Device")),
    ("Device-to-Host", ("Device", "Pinned")),
    ("Device-to-Device", ("Device", "Device")),
)


def report_on(export: NsysExport, folder: Path) -> Report:
    with imported(export, folder) as case:
        report = analyse(case)
        invariants.check(report, case)
        for finding in report.findings:
            assert finding.extent.measure_ns >= (finding.recoverable_ns or 0), finding
        return report


def said(report: Report) -> list[tuple[object, ...]]:
    """What does not depend on when the clock began or on which id a row got."""
    return [
        (
            *(finding.rule, finding.claim, finding.share, finding.recoverable_ns, finding.extent.measure_ns),
            *((evidence.label, evidence.value) for evidence in finding.evidence),
        )
        for finding in sorted(report.findings, key=lambda finding: (finding.rule, finding.subject.device or 0))
    ]


@few_seeds
def test_rows_may_come_in_any_order_and_clocks_begin_anywhere(seed: int, scratch: Path) -> None:
    first = report_on(random_run(chance_of("valid", seed)), scratch)
    backwards = report_on(random_run(chance_of("valid", seed)).backwards(), scratch)
    later = report_on(random_run(chance_of("valid", seed), LATE_NS), scratch)
    assert said(first) == said(backwards)
    assert said(first) == said(later)


@few_seeds
def test_a_window_is_the_sum_of_its_parts(seed: int, scratch: Path) -> None:
    export, chance = random_run(chance_of("valid", seed)), chance_of("cuts", seed)
    last_ns = max(row["end"] for rows in export.rows.values() for row in rows if "end" in row)
    low, middle, high = sorted(chance.sample(range(last_ns + 4), 3))

    def busy_ns(start: int, end: int) -> int:
        with imported(export, scratch) as case:
            report = analyse(case, AnalysisOptions(window=f"{start}ns:{end}ns"))
            invariants.check(report, case)
        return sum(device.busy_ns for device in report.devices)

    assert busy_ns(low, middle) + busy_ns(middle, high) == busy_ns(low, high)

"""Reports built by hand: nothing here was read from a file, and no rule has run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from diag.rules.finding import CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.report import Report, Verdict
from diag.rules.timeline_report import CopyRow, DeviceRow, KernelRow, OccupancyRow, RangeRow
from diag.store.case import Source

MS = 1_000_000


def device(**changes: Any) -> DeviceRow:
    """Ten steps of 10 ms: a copy of 1 ms and a kernel of 5 ms, then nothing."""
    made = DeviceRow(
        source=1,
        process=9946,
        process_name="/usr/bin/python3",
        device=0,
        uuid="GPU-1",
        name="Tesla T4",
        window=(10 * MS, 106 * MS),
        window_ns=96 * MS,
        is_scoped=False,
        lead_ns=10 * MS,
        tail_ns=2 * MS,
        startup_ns=0,
        busy_ns=60 * MS,
        busy_is_upper_bound=False,
        busy_is_lower_bound=False,
        idle_ns=36 * MS,
        kernel_ns=50 * MS,
        copy_ns=10 * MS,
        memset_ns=0,
        graph_ns=0,
        comm_ns=0,
        exposed_comm_ns=0,
        n_kernels=10,
        n_copies=10,
        n_memsets=0,
        n_graphs=0,
        copies=[CopyRow("h2d", "pageable", "device", 10, 10_000_000, 10 * MS)],
    )
    return replace(made, **changes)


def finding(rule: str = "idle.gpu", **changes: Any) -> Finding:
    made = Finding(
        rule=rule,
        title="GPU starved by the host: loading data in 'step #'",
        claim="The GPU idles 37.5 % of the window (36.0 ms of 96.0 ms). For 35.0 ms of it the host had not yet "
        "launched the next operation.",
        subject=Subject(source=1, process=9946, device=0, window=(10 * MS, 106 * MS)),
        share=0.375,
        recoverable_ns=35 * MS,
        counterfactual="Without the host-late part the window would be 35.0 ms shorter.",
        evidence=[
            Evidence("idle", 36 * MS, "ns", "window - union of all GPU operations", "SELECT start_ns FROM gpu_op"),
            Evidence("gaps", 9, "count", "number of idle intervals"),
            Evidence("of the window", 0.375, "share", "idle / window"),
            Evidence("first range", "step #", "text", "the innermost range"),
        ],
        refute="Take the work out of 'step #' for one run: if the gaps stay as long, it was not the cause.",
        next=["Load the next batch in another process.", "Capture again with CPU sampling."],
    )
    return replace(made, **changes)


def source(**changes: Any) -> Source:
    made = Source(
        id=1,
        kind="nsys-sqlite",
        path="runs/monday.sqlite",
        sha256="86d8",
        tool="NVIDIA Nsight Systems",
        tool_version="2025.3.1.90",
        schema_version="3.20.2",
        host=None,
        rank=None,
        clock_offset_ns=1_754_324_972_242_076_786,
        time_resolution_ns=1,
        capture_start_ns=0,
        capture_end_ns=108 * MS,
        graph_mode=None,
        capabilities={"kernel": 10, "copy": 10, "cpu_sample": None},
    )
    return replace(made, **changes)


def kernel(name: str = "void gemm<float>(float*)", short_name: str = "gemm", **changes: Any) -> KernelRow:
    made = KernelRow(
        source=1,
        process=9946,
        device=0,
        name=name,
        short_name=short_name,
        count=10,
        total_ns=50 * MS,
        median_ns=5 * MS,
        min_ns=5 * MS,
        max_ns=5 * MS,
        share_of_kernel_time=1.0,
        share_of_window=0.52,
    )
    return replace(made, **changes)


def occupancy(**changes: Any) -> OccupancyRow:
    limits = {"blocks": 16, "registers": 6, "shared_memory": None, "warps": 8}
    made = OccupancyRow(theoretical_pct=75.0, limits=limits, limiters=["registers"], configurations=1)
    return replace(made, **changes)


def make_report(**changes: Any) -> Report:
    main = finding()
    copies = finding(
        "transfer.pageable",
        title="Copies from pageable memory",
        claim="10 copies (10.0 MB) from pageable memory take 10.4 % of the window.",
        share=0.104,
        recoverable_ns=6 * MS,
        next=["Pin the buffers: pin_memory=True."],
    )
    here = Subject(source=1, process=9946, device=0)
    made = Report(
        sources=[source()],
        notes={1: ["2 rows without an end were left out."]},
        verdict=Verdict(main.title, main.claim, main.id),
        devices=[device()],
        kernels=[kernel()],
        ranges=[RangeRow(1, 9946, 0, "step #", 10, 90 * MS, 55 * MS, 60 * MS)],
        findings=[main, copies],
        overlaps={copies.id: [main.id]},
        clear=[Clear(here, "launch.bound"), Clear(here, "sync.drain")],
        cannot_tell=[
            CannotTell(
                Subject(source=1), "CPU samples were not captured (nsys profile --sample=process-tree)", "host.hot"
            ),
            CannotTell(
                Subject(source=1), "CPU samples were not captured (nsys profile --sample=process-tree)", "host.os_calls"
            ),
        ],
    )
    return replace(made, **changes)


def make_host_report() -> Report:
    """A trace without GPU rows: the verdict is about the host."""
    loader = finding(
        "host.data_loader",
        title="Data loading takes most of the time",
        claim="The main thread spends 76.0 % of its time in 'next'.",
        subject=Subject(source=1, process=9946, range="next"),
        recoverable_ns=None,
    )
    return make_report(
        verdict=Verdict(loader.title, loader.claim, loader.id),
        devices=[],
        kernels=[],
        ranges=[],
        findings=[loader],
        overlaps={},
        clear=[],
        cannot_tell=[CannotTell(Subject(source=1), "the capture has no GPU work", "idle.gpu")],
    )


def make_hostile_report(name: str) -> Report:
    """A report in which every text that comes from a file is `name`."""
    main = finding(title=name, claim=name, counterfactual=name, refute=name, next=[name, name])
    main = replace(main, evidence=[Evidence(name, name, "text", name, name), Evidence(name, 1, "count", name)])
    second = replace(main, rule="transfer.pageable")
    return make_report(
        sources=[source(path=name, tool=name, tool_version=name, schema_version=name, host=name)],
        notes={1: [name]},
        verdict=Verdict(name, name, main.id),
        devices=[device(name=name, process_name=name, uuid=name)],
        kernels=[kernel(name, name), kernel(name + "2", name)],
        ranges=[RangeRow(1, 9946, 0, name, 1, 1, 1, 1)],
        findings=[main, second],
        cannot_tell=[CannotTell(Subject(source=1, range=name), name, "idle.gpu")],
    )


def make_two_device_report() -> Report:
    """Two processes with a device each; the second runs collectives and graphs, and idles too."""
    second = device(process=77, device=1, uuid="GPU-2", n_graphs=9, busy_is_upper_bound=True, comm_ns=50 * MS)
    second = replace(second, exposed_comm_ns=20 * MS)
    first_finding = finding()
    same = finding(subject=Subject(source=1, process=77, device=1, window=(10 * MS, 106 * MS)))
    return make_report(
        devices=[device(), second],
        kernels=[kernel(), kernel("ncclDevKernel_AllReduce", "ncclDevKernel_AllReduce", process=77, device=1)],
        findings=[first_finding, same],
        overlaps={},
        clear=[Clear(Subject(source=1, process=77, device=1), "transfer.pageable")],
        cannot_tell=[CannotTell(Subject(source=1, process=9946, device=0), "too few operations", "transfer.pageable")],
    )


@pytest.fixture
def report() -> Report:
    return make_report()


@pytest.fixture
def host_report() -> Report:
    return make_host_report()


@pytest.fixture
def two_devices() -> Report:
    return make_two_device_report()


@pytest.fixture
def occupied() -> Report:
    """Two kernels, of which one is known to be launched with an occupancy of 75 %."""
    return make_report(kernels=[kernel(occupancy=occupancy()), kernel("relu", "relu")])


@pytest.fixture
def hostile() -> Callable[[str], Report]:
    return make_hostile_report


@pytest.fixture(params=[make_report, make_host_report, make_two_device_report], ids=["one", "host", "two"])
def any_report(request: pytest.FixtureRequest) -> Report:
    made: Report = request.param()
    return made

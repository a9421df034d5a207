"""Moments of workloads that tests of the live view show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from diag.model.live import (
    Frame,
    GpuProcess,
    GpuReading,
    HostReading,
    ProcessReading,
    Snapshot,
    StackDump,
    ThreadReading,
    ThreadStack,
    Xid,
)
from diag.model.live_run import NS_PER_S, LiveRun
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject

S = NS_PER_S
GB = 10**9
EPOCH_NS = 1_700_000_000 * S
HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07",
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "a\x00b\nc\rd\te",
    "bad\udce9utf",
    'quo"te\\back{slash}',
    "行" * 50,
    "x" * 100_000,
)


def gpu(at_s: int = 0, *, index: int = 0, **changes: object) -> GpuReading:
    """An H200 at work, with everything told."""
    reading = GpuReading(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H200",
        resident_pct=97.0,
        memory_active_pct=40.0,
        sm_active_pct=12.0,
        tensor_active_pct=3.0,
        memory_used_bytes=71 * GB,
        memory_total_bytes=141 * GB,
        processes=[GpuProcess(100, 70 * GB, "compute")],
        sm_clock_hz=1_980_000_000,
        sm_clock_max_hz=1_980_000_000,
        memory_clock_hz=3_201_000_000,
        memory_clock_max_hz=3_201_000_000,
        clock_reasons=("sw_power_cap",),
        power_w=182.4,
        power_limit_w=700.0,
        temperature_c=61.0,
        slowdown_temperature_c=87.0,
        pcie_rx_bytes_per_s=1.2e9,
        pcie_tx_bytes_per_s=0.3e9,
        pcie_generation=5,
        pcie_generation_max=5,
        pcie_width=16,
        pcie_width_max=16,
        nvlink_rx_bytes=at_s * 4 * GB,
        nvlink_tx_bytes=at_s * 2 * GB,
        ecc_corrected=4,
        ecc_uncorrected=1,
        xids=(Xid(79, EPOCH_NS),) if at_s == 1 else (),
        xid_count=int(at_s >= 1),
    )
    return replace(reading, **changes)  # type: ignore[arg-type]


def process(at_s: int, pid: int = 100, parent: int = 1, name: str = "python", **changes: object) -> ProcessReading:
    """One and a half cores: its main thread all of one, another half of one."""
    reading = ProcessReading(
        pid=pid,
        parent_pid=parent,
        started_ns=S,
        name=name,
        state="R",
        cpu_ns=at_s * 3 * S // 2,
        resident_bytes=2 * GB,
        read_bytes=at_s * 50_000_000,
        written_bytes=0,
        minor_faults=at_s * 10,
        major_faults=at_s,
        n_threads=2,
        threads=[
            ThreadReading(pid, name, "R", at_s * S, at_s * 5, at_s * 7),
            ThreadReading(pid + 1, "loader", "S", at_s * S // 2, at_s * 2, 0, "futex_wait_queue"),
        ],
    )
    return replace(reading, **changes)  # type: ignore[arg-type]


def snapshot(
    at_s: int,
    gpus: Sequence[GpuReading] | None = None,
    processes: Sequence[ProcessReading] | None = None,
    stacks: Sequence[StackDump] = (),
    **untold: str,
) -> Snapshot:
    return Snapshot(
        time_ns=EPOCH_NS + at_s * S,
        clock_ns=at_s * S,
        took_ns=4_000_000,
        host=HostReading(2, at_s * 3 * S // 2, 25 * GB, 12 * GB),
        gpus=[gpu(at_s)] if gpus is None else gpus,
        processes=[process(at_s)] if processes is None else processes,
        stacks=stacks,
        untold=untold,
    )


def run(seconds: int = 3) -> LiveRun:
    return LiveRun(100, [snapshot(at_s) for at_s in range(seconds)])


def hostile_run(name: str) -> LiveRun:
    """A workload in which every text is the same."""
    stack = ThreadStack(100, 101, name, [Frame(name, name, 3)], holds_gil=True, is_running=False)
    dump = StackDump(100, EPOCH_NS, [stack], 10, untold=name)

    def at(at_s: int) -> Snapshot:
        threads = [ThreadReading(100, name, "R", at_s * S, waits_in=name)]
        device = gpu(at_s, name=name, clock_reasons=[name], mig_profile=name, untold={"power_w": name})
        return snapshot(at_s, [device], [process(at_s, name=name, threads=threads, untold={"rank": name})], [dump])

    return LiveRun(100, [at(0), at(1)])


def answers(text: str = "clocks held down by heat") -> list[Answer]:
    subject = Subject(0, process=100, device=0)
    finding = Finding(
        title=text,
        claim=f"Claim: {text}.",
        subject=subject,
        counterfactual="At full clocks it would be faster.",
        refute=f"It is as slow when cool: {text}.",
        next=[f"Look at the fans: {text}."],
        evidence=[Evidence(text, 0.5, "share", "held / all"), Evidence("Temperature", 91, "count", "as read")],
        level="critical",
        rule="live.thermal",
    )
    return [finding, Clear(subject, "live.power"), CannotTell(subject, f"because {text}", "live.xid")]

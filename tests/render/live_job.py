"""A training job of eight ranks, as a fake of NVML tells it of its GPUs and a test of its processes.

Rank 3 augments its samples on its main thread; the others wait for it in their collectives, kernels resident.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from diag.collect.nvml import Nvml
from diag.model.live import Frame, HostReading, ProcessReading, Snapshot, StackDump, ThreadReading, ThreadStack
from diag.model.live_run import NS_PER_S, LiveRun
from tests.collect.fake_nvml import FakeNvml

LAUNCHER, RANKS, WORKERS = 3999, 8, 2
SLOW = 3
EPOCH_NS = 1_700_000_000 * NS_PER_S
GB = 10**9


def job(monkeypatch: pytest.MonkeyPatch, seconds: int = 75) -> LiveRun:
    """A snapshot each second, with two dumps of the stacks of all ranks."""
    monkeypatch.setattr("diag.collect.nvml_listing.sees_all_processes", lambda: True)
    monkeypatch.setattr("diag.collect.nvml_processes.state_of", lambda _: "alive")
    fake = FakeNvml(*["h100"] * RANKS)
    for rank, gpu in enumerate(fake.gpus):
        gpu["nvmlDeviceGetUUID"] = f"GPU-{rank}"
    with Nvml(fake) as nvml:
        return LiveRun(LAUNCHER, [_snapshot(fake, nvml, at) for at in range(seconds + 1)])


def _snapshot(fake: FakeNvml, nvml: Nvml, at: int) -> Snapshot:
    for rank in range(RANKS):
        _play(fake, rank, at)
    fake.now_us += 1_000_000
    stacks = list(_stacks(at)) if at % 30 == 10 else []
    host = HostReading(64, cpu_busy_ns=at * 22 * NS_PER_S, memory_total_bytes=540 * GB, memory_available_bytes=310 * GB)
    gpus = nvml.read(EPOCH_NS + at * NS_PER_S)
    processes = sorted(_processes(at), key=lambda each: (each.pid != LAUNCHER, each.pid))
    return Snapshot(EPOCH_NS + at * NS_PER_S, at * NS_PER_S, 6_300_000, host, gpus, processes, stacks)


def _play(fake: FakeNvml, rank: int, at: int) -> None:
    """What NVML answers of a GPU at a second."""
    gpu, is_slow = fake.gpus[rank], rank == SLOW
    wave = math.sin(at / 4 + rank)
    gpu["nvmlDeviceGetComputeRunningProcesses_v3"] = [[LAUNCHER + 1 + rank, 70 * GB]]
    gpu["nvmlDeviceGetMPSComputeRunningProcesses_v3"] = []
    gpu["nvmlDeviceGetUtilizationRates"] = {"gpu": round(52 + 40 * wave) if is_slow else 99, "memory": 38 * is_slow}
    gpu["nvmlDeviceGetPowerUsage"] = round(1000 * ((410 if is_slow else 230) + 12 * wave))
    gpu["nvmlDeviceGetTemperature"] = round(58 + rank % 4 + 2 * wave)
    gpu["nvmlDeviceGetCurrentClocksEventReasons"] = 0x20 if rank == 6 else 0  # SW thermal slowdown
    gpu["nvmlDeviceGetClockInfo"] = {"NVML_CLOCK_SM": 1500 if rank == 6 else 1980, "NVML_CLOCK_MEM": 2619}
    gpu["gpm"] = {"NVML_GPM_METRIC_SM_UTIL": 9.0, "NVML_GPM_METRIC_ANY_TENSOR_UTIL": 3.0}  # the fake has one for all
    for counter in ("NVML_FI_DEV_PCIE_COUNT_RX_BYTES", "NVML_FI_DEV_PCIE_COUNT_TX_BYTES"):
        gpu["fields"][counter][1] += 900_000_000 if is_slow else 30_000_000


def _processes(at: int) -> Iterator[ProcessReading]:
    yield _process(at, LAUNCHER, 1, "torchrun", 0.01, "do_wait", GB // 4)
    for rank in range(RANKS):
        pid, is_slow = LAUNCHER + 1 + rank, rank == SLOW
        cores = 0.98 if is_slow else 0.31
        yield _process(at, pid, LAUNCHER, "python", cores, None if is_slow else "futex_do_wait", 9 * GB, rank)
        for worker in range(WORKERS):
            yield _process(at, 5000 + 10 * rank + worker, pid, "pt_data_worker", 0.12, "pipe_read", GB)


def _process(
    at: int, pid: int, parent: int, name: str, cores: float, waits_in: str | None, memory: int, rank: int | None = None
) -> ProcessReading:
    spent = at + math.sin(at / 3 + pid) / 3  # it has its ups and downs
    cpu_ns = max(0, round(spent * cores * NS_PER_S))
    state = "S" if waits_in else "R"
    return ProcessReading(
        pid=pid,
        parent_pid=parent,
        started_ns=100,
        name=name,
        state=state,
        cpu_ns=cpu_ns,
        resident_bytes=memory,
        read_bytes=at * (30_000_000 if name == "pt_data_worker" else 0),
        written_bytes=0,
        minor_faults=at * 40,
        major_faults=0,
        threads=[ThreadReading(pid, name, state, cpu_ns, at * 90, at * 2, waits_in, ready_ns=0)],
        n_threads=1,
        rank=rank,
        local_rank=rank,
        world_size=None if rank is None else RANKS,
    )


def _stacks(at: int) -> Iterator[StackDump]:
    packages = "/env/lib/python3.12/site-packages"
    train = Frame("main", "/app/train.py", 88)
    waiting = (Frame("all_reduce", f"{packages}/torch/distributed/distributed_c10d.py", 3005), train)
    augmenting = (Frame("augment", "/app/data/augment.py", 41), Frame("__getitem__", "/app/data/dataset.py", 17), train)
    for rank in range(RANKS):
        pid, is_slow = LAUNCHER + 1 + rank, rank == SLOW
        frames = augmenting if is_slow else waiting
        thread = ThreadStack(pid, pid, "MainThread", frames, holds_gil=is_slow, is_running=is_slow)
        yield StackDump(pid, EPOCH_NS + at * NS_PER_S, [thread], 14_000_000)

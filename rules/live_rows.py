"""What a watched workload was like, as a report has it: plain data, for every renderer and the stored case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.live import GpuReading
from diag.model.live_run import LiveProcess, LiveRun
from diag.model.live_series import Series


@dataclass(frozen=True)
class LiveDeviceRow:
    """A device over the window; means are weighted by time. None: not readable."""

    source: int
    device: int  # index
    uuid: str
    name: str
    mig_profile: str | None
    window_ns: int
    snapshots: int
    resident_pct: float | None  # mean
    resident_max_pct: float | None
    sm_active_pct: float | None
    tensor_active_pct: float | None
    memory_active_pct: float | None
    memory_used_max_bytes: int | None
    memory_total_bytes: int | None
    power_w: float | None
    power_max_w: float | None
    power_limit_w: float | None
    temperature_max_c: float | None
    sm_clock_hz: float | None
    sm_clock_max_hz: int | None  # that the device can have
    pcie_rx_bytes_per_s: float | None
    pcie_tx_bytes_per_s: float | None
    xids: int


@dataclass(frozen=True)
class LiveProcessRow:
    """A process over the time in which it was seen."""

    source: int
    process: int  # pid
    name: str
    state: str  # at last
    rank: int | None
    is_watched: bool  # the one that was named, not a descendant
    seen_ns: int
    threads: int  # at last
    cores: float | None  # that it kept busy
    busiest_thread: str | None
    busiest_cores: float | None
    resident_max_bytes: int | None
    read_bytes_per_s: float | None
    written_bytes_per_s: float | None


def live_device_rows(runs: Sequence[LiveRun]) -> list[LiveDeviceRow]:
    return [_device(run, device) for run in runs for device in run.devices]


def live_process_rows(runs: Sequence[LiveRun]) -> list[LiveProcessRow]:
    """Of each run the watched process first, then those that took most CPU time."""
    return [
        _process(run, one)
        for run in runs
        for one in sorted(run.processes, key=lambda one: (one.pid != run.pid, -(one.cores or 0.0), one.pid))
    ]


def _device(run: LiveRun, device: Series[GpuReading]) -> LiveDeviceRow:
    last = device.last
    return LiveDeviceRow(
        source=run.source,
        device=last.index,
        uuid=last.uuid,
        name=last.name,
        mig_profile=last.mig_profile,
        window_ns=run.window_ns,
        snapshots=len(device.readings),
        resident_pct=device.mean("resident_pct"),
        resident_max_pct=max(device.known("resident_pct"), default=None),
        sm_active_pct=device.mean("sm_active_pct"),
        tensor_active_pct=device.mean("tensor_active_pct"),
        memory_active_pct=device.mean("memory_active_pct"),
        memory_used_max_bytes=max(device.known("memory_used_bytes"), default=None),
        memory_total_bytes=last.memory_total_bytes,
        power_w=device.mean("power_w"),
        power_max_w=max(device.known("power_w"), default=None),
        power_limit_w=last.power_limit_w,
        temperature_max_c=max(device.known("temperature_c"), default=None),
        sm_clock_hz=device.mean("sm_clock_hz"),
        sm_clock_max_hz=last.sm_clock_max_hz,
        pcie_rx_bytes_per_s=device.mean("pcie_rx_bytes_per_s"),
        pcie_tx_bytes_per_s=device.mean("pcie_tx_bytes_per_s"),
        xids=sum(len(reading.xids) for reading in device.readings),
    )


def _process(run: LiveRun, one: LiveProcess) -> LiveProcessRow:
    busiest = next(iter(one.threads), None)
    resident = [reading.resident_bytes for reading in one.readings if reading.resident_bytes is not None]
    return LiveProcessRow(
        source=run.source,
        process=one.pid,
        name=one.last.name,
        state=one.last.state,
        rank=one.last.rank,
        is_watched=one.pid == run.pid,
        seen_ns=one.elapsed_ns,
        threads=one.last.n_threads or len(one.last.threads),
        cores=one.cores,
        busiest_thread=busiest.name if busiest else None,
        busiest_cores=busiest.cores if busiest else None,
        resident_max_bytes=max(resident, default=None),
        read_bytes_per_s=one.rate("read_bytes"),
        written_bytes_per_s=one.rate("written_bytes"),
    )

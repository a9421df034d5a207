"""A moment of a running workload as Prometheus scrapes it (text exposition format 0.0.4).

Names follow "Metric and label naming" of Prometheus: base units, `_total` for counters, ratios from 0 to 1. What is not
known is absent, for 0 would be a value. Counters stand as the machine keeps them; Prometheus makes the rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from diag.model.live import GpuReading
from diag.model.live_run import NS_PER_S
from diag.render.escape import one_line
from diag.render.live_untold import RecordRow
from diag.render.live_view import GpuRow, LiveView, ProcessRow

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_PROCESSES = 200
"""More are left out: each process that comes and goes leaves its series behind in a database."""

LONGEST_LABEL = 200

Row = TypeVar("Row")
Kind = Literal["gauge", "counter"]
Labels = Mapping[str, str]
Samples = Iterator[tuple[Labels, float]]


@dataclass(frozen=True)
class Metric(Generic[Row]):
    """A family of samples: what a row gives for it, None where that is not known."""

    name: str
    kind: Kind
    help: str
    value: Callable[[Row], float | None]


VIEW: Sequence[Metric[LiveView]] = (
    Metric("diag_watch_time_seconds", "gauge", "When the readings were taken, since 1970.", lambda v: _s(v.time_ns)),
    Metric("diag_watch_read_seconds", "gauge", "How long taking the readings took.", lambda v: _s(v.took_ns)),
    Metric("diag_host_cores", "gauge", "Cores that the workload may use.", lambda v: v.host.reading.cores),
    Metric(
        "diag_host_cpu_seconds_total",
        "counter",
        "CPU time of all processes of the machine.",
        lambda v: _s(v.host.reading.cpu_busy_ns),
    ),
    Metric("diag_host_memory_bytes", "gauge", "Memory of the machine.", lambda v: v.host.reading.memory_total_bytes),
    Metric(
        "diag_host_memory_available_bytes",
        "gauge",
        "Memory that could still be used without swapping.",
        lambda v: v.host.reading.memory_available_bytes,
    ),
)

RECORD: Sequence[Metric[RecordRow]] = (
    Metric("diag_watch_record_bytes", "gauge", "Readings kept with --record.", lambda row: row.n_bytes),
    Metric(
        "diag_watch_record_full",
        "gauge",
        "1 once the record is as long as it may be and keeps nothing more.",
        lambda row: row.is_full,
    ),
)

GPU: Sequence[Metric[GpuRow]] = (
    Metric(
        "diag_gpu_kernel_resident_ratio",
        "gauge",
        "Share of time with a kernel resident, however little it did (utilization.gpu of NVML).",
        lambda row: _ratio(row.reading.resident_pct),
    ),
    Metric(
        "diag_gpu_memory_active_ratio",
        "gauge",
        "Share of time with device memory read or written (utilization.memory of NVML).",
        lambda row: _ratio(row.reading.memory_active_pct),
    ),
    Metric(
        "diag_gpu_sm_active_ratio",
        "gauge",
        "Mean share of SMs with a warp (GPM).",
        lambda row: _ratio(row.reading.sm_active_pct),
    ),
    Metric(
        "diag_gpu_tensor_active_ratio",
        "gauge",
        "Mean share of time with the tensor pipe active (GPM).",
        lambda row: _ratio(row.reading.tensor_active_pct),
    ),
    Metric("diag_gpu_memory_used_bytes", "gauge", "Memory in use.", lambda row: row.reading.memory_used_bytes),
    Metric("diag_gpu_memory_bytes", "gauge", "Memory of the device.", lambda row: row.reading.memory_total_bytes),
    Metric("diag_gpu_sm_clock_hertz", "gauge", "Clock of the SMs.", lambda row: row.reading.sm_clock_hz),
    Metric("diag_gpu_sm_clock_max_hertz", "gauge", "Its maximum.", lambda row: row.reading.sm_clock_max_hz),
    Metric("diag_gpu_memory_clock_hertz", "gauge", "Clock of the memory.", lambda row: row.reading.memory_clock_hz),
    Metric("diag_gpu_memory_clock_max_hertz", "gauge", "Its maximum.", lambda row: row.reading.memory_clock_max_hz),
    Metric("diag_gpu_power_watts", "gauge", "Power drawn.", lambda row: row.reading.power_w),
    Metric("diag_gpu_power_limit_watts", "gauge", "Power limit in force.", lambda row: row.reading.power_limit_w),
    Metric("diag_gpu_temperature_celsius", "gauge", "Temperature.", lambda row: row.reading.temperature_c),
    Metric(
        "diag_gpu_slowdown_temperature_celsius",
        "gauge",
        "Temperature at which the hardware slows down.",
        lambda row: row.reading.slowdown_temperature_c,
    ),
    Metric(
        "diag_gpu_pcie_receive_bytes_per_second",
        "gauge",
        "PCIe traffic into the GPU.",
        lambda row: row.reading.pcie_rx_bytes_per_s,
    ),
    Metric(
        "diag_gpu_pcie_transmit_bytes_per_second",
        "gauge",
        "PCIe traffic out of the GPU.",
        lambda row: row.reading.pcie_tx_bytes_per_s,
    ),
    Metric("diag_gpu_pcie_generation", "gauge", "PCIe generation in use.", lambda row: row.reading.pcie_generation),
    Metric(
        "diag_gpu_pcie_generation_max",
        "gauge",
        "PCIe generation that GPU and slot allow.",
        lambda row: row.reading.pcie_generation_max,
    ),
    Metric("diag_gpu_pcie_lanes", "gauge", "PCIe lanes in use.", lambda row: row.reading.pcie_width),
    Metric("diag_gpu_pcie_lanes_max", "gauge", "PCIe lanes of the GPU.", lambda row: row.reading.pcie_width_max),
    Metric(
        "diag_gpu_nvlink_receive_bytes_total",
        "counter",
        "NVLink traffic into the GPU, over all links.",
        lambda row: row.reading.nvlink_rx_bytes,
    ),
    Metric(
        "diag_gpu_nvlink_transmit_bytes_total",
        "counter",
        "NVLink traffic out of the GPU, over all links.",
        lambda row: row.reading.nvlink_tx_bytes,
    ),
    Metric(
        "diag_gpu_ecc_corrected_errors_total",
        "counter",
        "Corrected memory errors since the driver was loaded.",
        lambda row: row.reading.ecc_corrected,
    ),
    Metric(
        "diag_gpu_ecc_uncorrected_errors_total",
        "counter",
        "Uncorrected memory errors since the driver was loaded.",
        lambda row: row.reading.ecc_uncorrected,
    ),
    Metric(
        "diag_gpu_xid_errors_total",
        "counter",
        "XID errors that the driver reported since the watch began.",
        lambda row: row.reading.xid_count,
    ),
    Metric("diag_gpu_last_xid", "gauge", "Number of the last XID error of the last minutes.", lambda row: row.last_xid),
)

PROCESS: Sequence[Metric[ProcessRow]] = (
    Metric(
        "diag_process_cpu_seconds_total",
        "counter",
        "User and system time of all its threads.",
        lambda row: _s(row.reading.cpu_ns),
    ),
    Metric("diag_process_cores", "gauge", "Cores kept busy since the last reading.", lambda row: row.cores),
    Metric("diag_process_threads", "gauge", "Threads.", lambda row: row.reading.n_threads),
    Metric("diag_process_resident_memory_bytes", "gauge", "Resident memory.", lambda row: row.reading.resident_bytes),
    Metric("diag_process_gpu_memory_bytes", "gauge", "Memory held on all GPUs.", lambda row: row.gpu_memory_bytes),
    Metric(
        "diag_process_storage_read_bytes_total", "counter", "Read from storage.", lambda row: row.reading.read_bytes
    ),
    Metric(
        "diag_process_storage_written_bytes_total",
        "counter",
        "Written to storage.",
        lambda row: row.reading.written_bytes,
    ),
    Metric(
        "diag_process_minor_faults_total",
        "counter",
        "Page faults served from memory.",
        lambda row: row.reading.minor_faults,
    ),
    Metric(
        "diag_process_major_faults_total",
        "counter",
        "Page faults served from storage.",
        lambda row: row.reading.major_faults,
    ),
    Metric(
        "diag_process_voluntary_switches_per_second",
        "gauge",
        "How often its threads gave up their core.",
        lambda row: row.voluntary_switches_per_s,
    ),
    Metric(
        "diag_process_involuntary_switches_per_second",
        "gauge",
        "How often its threads lost their core to others.",
        lambda row: row.involuntary_switches_per_s,
    ),
)


def render_live_prometheus(view: LiveView) -> str:
    processes = view.processes[:MOST_PROCESSES]
    lines = [
        *_families(VIEW, [({}, view)]),
        *_families(RECORD, [({}, row) for row in (view.record,) if row is not None]),
        *_families(GPU, [(_gpu_labels(row.reading), row) for row in view.gpus]),
        *_family("diag_gpu_clock_reason", "gauge", "1 for each reason that holds clocks down.", _clock_reasons(view)),
        *_families(PROCESS, [(_process_labels(row), row) for row in processes]),
        *_family("diag_finding", "gauge", "1 for each finding in force.", _findings(view)),
    ]
    return "".join(f"{line}\n" for line in lines)


def _families(metrics: Iterable[Metric[Row]], rows: Sequence[tuple[Labels, Row]]) -> Iterator[str]:
    for metric in metrics:
        values = ((labels, metric.value(row)) for labels, row in rows)
        known = ((labels, value) for labels, value in values if value is not None)
        yield from _family(metric.name, metric.kind, metric.help, known)


def _family(name: str, kind: Kind, help_: str, samples: Samples) -> Iterator[str]:
    """Nothing at all where there is no sample."""
    lines = [f"{name}{_labels(labels)} {float(value):.17g}" for labels, value in samples]
    if lines:
        yield f"# HELP {name} {help_}"
        yield f"# TYPE {name} {kind}"
        yield from lines


def _clock_reasons(view: LiveView) -> Samples:
    for row in view.gpus:
        for reason in row.reading.clock_reasons or ():
            yield {**_gpu_labels(row.reading), "reason": reason}, 1


def _findings(view: LiveView) -> Samples:
    """Of findings alike in what they are labelled with only one is a sample."""
    seen = set()
    for finding in view.findings:
        about = finding.subject
        labels = {
            "rule": finding.rule,
            "severity": finding.severity,
            "pid": "" if about.process is None else str(about.process),
            "gpu": "" if about.device is None else str(about.device),
        }
        if (key := tuple(labels.values())) not in seen:
            seen.add(key)
            yield labels, 1


def _gpu_labels(gpu: GpuReading) -> Labels:
    labels = {"gpu": str(gpu.index), "uuid": gpu.uuid, "name": gpu.name}
    return labels if gpu.mig_profile is None else {**labels, "mig_profile": gpu.mig_profile}


def _process_labels(row: ProcessRow) -> Labels:
    labels = {"pid": str(row.reading.pid), "name": row.reading.name}
    return labels if row.reading.rank is None else {**labels, "rank": str(row.reading.rank)}


def _labels(labels: Labels) -> str:
    """
    >>> print(_labels({"name": 'a"b\\\\c'}))
    {name="a\\"b\\\\c"}
    """
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{shown}}}" if shown else ""


def _escaped(value: str) -> str:
    """Printable, so that a terminal can show it, too; then the format asks to escape backslashes and quotes."""
    return one_line(value[:LONGEST_LABEL]).replace("\\", "\\\\").replace('"', '\\"')


def _s(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_S


def _ratio(pct: float | None) -> float | None:
    return None if pct is None else pct / 100

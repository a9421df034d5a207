"""One record for each result of a report, be it of a kernel or of a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from diag.ingest.launch_attributes import ATTRIBUTE, attributes_of, described
from diag.ingest.launch_records import LaunchRecord, Metric, ProfiledDevice, Size
from diag.ingest.launch_values import MOST_INTEGER, integer
from diag.ingest.ncu_rep.container import Block, Kind
from diag.ingest.ncu_rep.facts import pid_of
from diag.ingest.ncu_rep.nvtx import open_ranges
from diag.ingest.ncu_rep.rule_results import messages_of
from diag.ingest.ncu_rep.sources import Sources
from diag.ingest.ncu_rep.values import text

_KINDS: Mapping[Kind, tuple[Literal["range", "graph"], str]] = {
    "range": ("range", "range"),
    "command list": ("range", "cmdlist"),
    "graph": ("graph", "graph"),
}
"""What results of several launches are, and what ncu calls them, for they have no name of their own."""


def kernel_record(result: Any, metrics: Sequence[Metric], block: Block, sources: Sources) -> LaunchRecord:
    by_name = {metric.name: metric for metric in metrics}
    start = _start(by_name.get("launch__function_pcs"))
    function = text(result.function)
    return LaunchRecord(
        kind="kernel",
        name=text(result.demangled) or function,
        short_name=function,
        stream=result.stream if result.HasField("stream") else None,
        grid=_size(result.grid) if result.HasField("grid") else None,
        block=_size(result.block) if result.HasField("block") else None,
        rules=list(messages_of(result.rules)),
        instructions=()
        if start is None
        else sources.instructions(result.source.reference, text(result.mangled), start),
        **_shared(result, by_name, block),
    )


def range_record(result: Any, metrics: Sequence[Metric], block: Block, kind: Kind) -> LaunchRecord:
    by_name = {metric.name: metric for metric in metrics}
    what, name = _KINDS[kind]
    return LaunchRecord(kind=what, name=name, **_shared(result, by_name, block))


def device_of(launch: LaunchRecord) -> ProfiledDevice | None:
    """The device as the metrics of a launch describe it."""
    attributes = attributes_of({metric.name: metric.value for metric in launch.metrics})
    if launch.device is None or not attributes:
        return None
    return described(launch.device, attributes, pid=launch.pid)


def _shared(result: Any, metrics: Mapping[str, Metric], block: Block) -> dict[str, Any]:
    return {
        "pid": pid_of(block),
        "process_name": text(block.header.process.name) or None,
        "tid": result.thread,
        "device": _ordinal(metrics),
        "context": result.context if result.HasField("context") else None,
        "is_clock_locked": bool(result.clock.executed) if result.HasField("clock") else None,
        "metrics": list(metrics.values()),
        "ranges": list(open_ranges(result.nvtx, result.thread)),
    }


def _ordinal(metrics: Mapping[str, Metric]) -> int | None:
    known = (metrics.get(name) for name in ("launch__device_id", f"{ATTRIBUTE}device_index"))
    return next((integer(metric.value) for metric in known if metric), None)


def _start(addresses: Metric | None) -> int | None:
    """Where the kernel's first instruction lies. Newer files list it, older ones say it as a number."""
    if addresses is None:
        return None
    return integer(addresses.instances[0].value if addresses.instances else addresses.value)


def _size(size: Any) -> Size:
    return min(size.x, MOST_INTEGER), min(size.y, MOST_INTEGER), min(size.z, MOST_INTEGER)

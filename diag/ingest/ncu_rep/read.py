"""From a report's messages to records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from google.protobuf.message import DecodeError

from diag.ingest.launch_records import (
    Instance,
    LaunchRecord,
    LaunchReport,
    Metric,
    OpenRange,
    ProfiledDevice,
    ReportFacts,
    RuleResult,
    Size,
    Value,
)
from diag.ingest.ncu_rep.container import Block, Container, opened
from diag.ingest.ncu_rep.messages import ProfileResult, RangeResult
from diag.ingest.ncu_rep.units import unit_of


def read(path: Path) -> LaunchReport:
    """Raises InputError when the file is no report, or none of it can be read."""
    container = opened(path)
    headers = [block.header for block in container.blocks]
    strings = [_text(each) for header in headers for each in header.strings.strings]
    problems: list[str] = []
    return LaunchReport(_facts(container), _launches(container, strings, problems), problems)


# ---- what the file says of itself ----------------------------------------------------------------------------------


def _facts(container: Container) -> ReportFacts:
    details = [block.header.details for block in container.blocks]
    versions = {_text(each.provider): _text(each.version) for each in chain.from_iterable(d.versions for d in details)}
    settings = [each.settings for each in details if each.HasField("settings")]
    host = next((_text(each.target.host) for each in details if each.target.host), None)
    return ReportFacts(
        tool_version=versions.get("Nsight Compute Target", "").split(" ")[0] or None,
        schema_version=str(container.version),
        host=host,
        clock_control=_first(settings, "clock_control"),
        replay=_first(settings, "replay"),
        devices=[_device(each) for each in chain.from_iterable(d.devices for d in details)],
        is_cut=container.is_cut,
    )


def _first(settings: Sequence[Any], name: str) -> str | None:
    return next((_text(getattr(each, name)).lower() for each in settings if getattr(each, name)), None)


def _device(described: Any) -> ProfiledDevice:
    attributes = {_text(each.name): _value(each.value) for each in described.attributes}
    known = {name: value for name, value in attributes.items() if value is not None}
    major, minor = known.get("compute_capability_major"), known.get("compute_capability_minor")
    return ProfiledDevice(
        ordinal=described.id,
        name=_text(described.name) or None,
        compute_capability=(int(major), int(minor)) if major is not None and minor is not None else None,
        attributes=known,
    )


# ---- launches ------------------------------------------------------------------------------------------------------


def _launches(container: Container, strings: Sequence[str], problems: list[str]) -> Iterator[LaunchRecord]:
    damaged = 0
    for block, messages in container.payloads():
        first = block.header.n_sources
        last = first + block.header.n_results
        for at, message in enumerate(messages[first:], first):
            try:
                if at < last:
                    yield _kernel(ProfileResult.FromString(message), block, strings)
                else:
                    yield _range(RangeResult.FromString(message), block, strings)
            except DecodeError:
                damaged += 1
    if damaged:
        problems.append(f"{damaged} launches are damaged and were left out.")


def _kernel(result: Any, block: Block, strings: Sequence[str]) -> LaunchRecord:
    metrics = list(_metrics(result.metrics, strings))
    return LaunchRecord(
        name=_text(result.demangled) or _text(result.function),
        short_name=_text(result.function),
        stream=result.stream if result.HasField("stream") else None,
        grid=_size(result.grid),
        block=_size(result.block),
        rules=[_rule(each) for each in result.rules],
        **_shared(result, "kernel", block, metrics),
    )


def _range(result: Any, block: Block, strings: Sequence[str]) -> LaunchRecord:
    metrics = list(_metrics(result.metrics, strings))
    return LaunchRecord(name="range", **_shared(result, "range", block, metrics))


def _shared(result: Any, kind: Literal["kernel", "range"], block: Block, metrics: Sequence[Metric]) -> dict[str, Any]:
    process = block.header.process
    return {
        "kind": kind,
        "pid": process.pid if block.header.HasField("process") else None,
        "process_name": _text(process.name) or None,
        "tid": result.thread,
        "device": next((int(m.value) for m in metrics if m.name == "launch__device_id" and m.value is not None), None),
        "context": result.context if result.HasField("context") else None,
        "is_clock_locked": bool(result.clock.executed) if result.HasField("clock") else None,
        "metrics": metrics,
        "ranges": list(_ranges(result.nvtx, result.thread)),
    }


def _metrics(results: Sequence[Any], strings: Sequence[str]) -> Iterator[Metric]:
    for result in results:
        if result.name < len(strings):
            name = strings[result.name]
            elements = [Instance(_value(each.correlation), _value(each.value)) for each in result.elements]
            yield Metric(name, unit_of(name), _value(result.value), elements)


def _value(value: Any) -> Value | None:
    """The one kind of value that is there; None where none is."""
    for declared, held in value.ListFields():
        return _text(held) if declared.name == "string" else held
    return None


def _size(size: Any) -> Size:
    return size.x, size.y, size.z


def _ranges(state: Any, thread: int) -> Iterator[OpenRange]:
    domains = {each.id: _text(each.name) for each in state.domains}
    for own in (each for each in state.threads if each.tid == thread):
        for domain in own.domains:
            for depth, each in enumerate(domain.stack):
                yield OpenRange(depth, "push", domains.get(domain.id, ""), _text(each.name))
    for domain in state.started:
        for depth, each in enumerate(domain.ranges):
            yield OpenRange(depth, "start", domains.get(domain.id, ""), _text(each.name))


_TYPES: tuple[Literal["info", "ok", "optimization", "error"], ...] = ("info", "ok", "optimization", "error")


def _rule(result: Any) -> RuleResult:
    messages = [each.message for each in result.body.items if each.HasField("message")]
    first = messages[0] if messages else None
    return RuleResult(
        rule=_text(result.id),
        section=_text(result.section) or None,
        name=_text(result.name) or None,
        type=_TYPES[first.type] if first is not None and first.type < len(_TYPES) else "info",
        title=_text(first.name) if first is not None else None,
        message="\n".join(_text(each.text) for each in messages),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")

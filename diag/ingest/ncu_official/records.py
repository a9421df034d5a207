"""From the objects of NVIDIA's `ncu_report` to records (Python Report Interface, Nsight Compute 2026.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from diag.ingest.launch_records import (
    Instance,
    Instruction,
    LaunchRecord,
    Metric,
    OpenRange,
    ProfiledDevice,
    RuleResult,
    Size,
    Value,
)

ATTRIBUTE = "device__attribute_"
"""Facts about the device are metrics of each launch."""

SOURCE_METRICS = (
    "branch_inst_executed",
    "derived__avg_thread_executed",
    "derived__memory_",
    "inst_executed",
    "memory_",
    "smsp__branch_targets_",
    "smsp__pcsamp_",
    "thread_inst_executed",
)
"""How those begin that have a value for each instruction, by address (Profiling Guide, Source Metrics). Keys of others
are sizes or numbers, which the library may well take for addresses."""


class ActionReader:
    """Reads actions, as NVIDIA calls launches and profiled ranges. `api` is the module `ncu_report`."""

    def __init__(self, api: Any) -> None:
        metric, action = api.IMetric, api.IAction
        self._getters: Mapping[int, Callable[..., Value | None]] = {
            metric.ValueKind_STRING: lambda *of: _text(metric.as_string(*of)),
            metric.ValueKind_FLOAT: metric.as_double,
            metric.ValueKind_DOUBLE: metric.as_double,
            metric.ValueKind_UINT32: metric.as_uint64,
            metric.ValueKind_UINT64: metric.as_uint64,
        }
        self._demangled = action.NameBase_DEMANGLED
        self._kinds: Mapping[int, Literal["kernel", "range", "graph"]] = {
            action.WorkloadType_KERNEL: "kernel",
            action.WorkloadType_GRAPH: "graph",
        }
        self._types: Mapping[int, Literal["ok", "info", "optimization", "warning", "error"]] = {
            api.MsgType_NONE: "info",
            api.MsgType_OK: "ok",
            api.MsgType_OPTIMIZATION: "optimization",
            api.MsgType_WARNING: "warning",
            api.MsgType_ERR: "error",
        }
        self._speedups: Mapping[int, Literal["local", "global"]] = {
            api.SpeedupType_LOCAL: "local",
            api.SpeedupType_GLOBAL: "global",
        }
        self.n_nameless_metrics = 0
        """Metrics so far whose name is no text, so that the library cannot be asked for them."""

    def launch(self, action: Any) -> LaunchRecord | None:
        """None where the library found nothing that it could read: it skips over damage without a word."""
        metrics = list(self._metrics(action))
        name = _text(action.name(self._demangled))
        short_name = _text(action.name())
        if not metrics and not name and not short_name:
            return None
        values = {metric.name: metric.value for metric in metrics}
        return LaunchRecord(
            kind=self._kinds.get(action.workload_type(), "range"),
            name=name or short_name or "",
            short_name=short_name if short_name != name else None,
            device=_whole(values.get("launch__device_id", values.get(f"{ATTRIBUTE}device_index"))),
            context=_whole(values.get("launch__context_id")),
            stream=_whole(values.get("launch__stream_id")),
            grid=_size(values, "launch__grid_dim"),
            block=_size(values, "launch__block_dim"),
            metrics=metrics,
            ranges=list(_ranges(action.nvtx_state())),
            rules=list(self._rules(action)),
            instructions=list(_instructions(action, metrics)),
        )

    def _metrics(self, action: Any) -> Iterator[Metric]:
        for name in action.metric_names():
            if _text(name) != name:
                self.n_nameless_metrics += 1
            elif (metric := action.metric_by_name(name)) is not None:
                value = self._value(metric) if metric.has_value() else None
                yield Metric(name, _text(metric.unit()) or "", value, self._instances(metric))

    def _instances(self, metric: Any) -> Sequence[Instance]:
        n = metric.num_instances()
        if not n:
            return ()
        keys = metric.correlation_ids() if metric.has_correlation_ids() else None
        return [Instance(None if keys is None else self._value(keys, at), self._value(metric, at)) for at in range(n)]

    def _value(self, metric: Any, *at: int) -> Value | None:
        """Of the metric itself, or of its instance `at`, of which `has_value` says no where there is one."""
        getter = self._getters.get(metric.kind(*at))
        return getter(metric, *at) if getter else None

    def _rules(self, action: Any) -> Iterator[RuleResult]:
        for result in action.rule_results():
            if not result.has_rule_message():
                continue  # a table alone
            said = result.rule_message()
            gain = result.speedup_estimation() if result.has_speedup_estimation() else None
            yield RuleResult(
                rule=_text(result.rule_identifier()) or "",
                section=_text(result.section_identifier()) or None,
                name=_text(result.name()) or None,
                type=self._types.get(said["type"], "info"),
                title=_text(said["title"]) or None,
                message=_text(said["message"]) or "",
                speedup_pct=gain["speedup"] if gain else None,
                speedup_kind=self._speedups.get(gain["type"]) if gain else None,
            )


def device(launch: LaunchRecord) -> ProfiledDevice | None:
    """The device of a launch, as far as its metrics describe it; None where they do not even number it."""
    if launch.device is None:
        return None
    attributes = {
        metric.name.removeprefix(ATTRIBUTE): metric.value
        for metric in launch.metrics
        if metric.name.startswith(ATTRIBUTE) and metric.value is not None
    }
    name = attributes.get("display_name")
    major, minor = (_whole(attributes.get(f"compute_capability_{part}")) for part in ("major", "minor"))
    return ProfiledDevice(
        ordinal=launch.device,
        name=name if isinstance(name, str) else None,
        compute_capability=None if major is None or minor is None else (major, minor),
        attributes=attributes,
    )


def sources(action: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of the source files that were imported with a launch; the others have no text."""
    for name, text in action.source_files().items():
        if text:
            yield _text(name) or "", _text(text) or ""


def _ranges(state: Any) -> Iterator[OpenRange]:
    """Those of the launching thread, which alone the library tells of, and those of the process."""
    for identifier in state.domains() if state is not None else ():
        domain = state.domain_by_id(identifier)
        domain_name = _text(domain.name()) or ""
        kinds: tuple[tuple[Literal["push", "start"], Any], ...] = (
            ("push", domain.push_pop_ranges()),
            ("start", domain.start_end_ranges()),
        )
        for kind, names in kinds:
            for depth, each in enumerate(names):
                yield OpenRange(depth, kind, domain_name, _text(each) or "")


def _instructions(action: Any, metrics: Sequence[Metric]) -> Iterator[Instruction]:
    """Those that a metric has a value for."""
    by_address = (metric for metric in metrics if metric.name.startswith(SOURCE_METRICS))
    keys = {instance.key for metric in by_address for instance in metric.instances}
    for address in sorted(key for key in keys if isinstance(key, int)):
        if sass := _text(action.sass_by_pc(address)):
            place = action.source_info(address)
            file, line = (None, None) if place is None else (_text(place.file_name()), place.line())
            yield Instruction(address, sass.strip(), file, line)


def _size(values: Mapping[str, Value | None], name: str) -> Size | None:
    x, y, z = (_whole(values.get(f"{name}_{axis}")) for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def _whole(value: Value | None) -> int | None:
    """Numbers that are whole by nature and stored as floats."""
    return int(value) if isinstance(value, int) or (isinstance(value, float) and value.is_integer()) else None


def _text(text: str | None) -> str | None:
    """Bytes that are no UTF-8 come as lone surrogates, which are no text."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

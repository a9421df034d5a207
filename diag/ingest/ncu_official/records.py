"""From the objects of NVIDIA's `ncu_report` to records (Python Report Interface, Nsight Compute 2026.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from diag.ingest.launch_attributes import ATTRIBUTE, attributes_of, described
from diag.ingest.launch_records import Instance, LaunchRecord, Metric, OpenRange, ProfiledDevice, Size, Value
from diag.ingest.launch_values import integer
from diag.ingest.ncu_official.machine_code import CodeReader
from diag.ingest.ncu_official.rule_results import RuleReader
from diag.ingest.ncu_official.texts import text


class ActionReader:
    """Reads actions, as NVIDIA calls launches and profiled ranges. `api` is the module `ncu_report`."""

    def __init__(self, api: Any) -> None:
        metric, action = api.IMetric, api.IAction
        self._getters: Mapping[int, Callable[..., Value | None]] = {
            metric.ValueKind_STRING: lambda *of: text(metric.as_string(*of)),
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
        self._rules = RuleReader(api)
        self._code = CodeReader(api)
        self.n_nameless_metrics = 0
        """Metrics so far whose name is no text, so that the library cannot be asked for them."""

    def launch(self, action: Any) -> LaunchRecord | None:
        """None where the library found nothing that it could read: it skips over damage without a word."""
        metrics = {metric.name: metric for metric in self._metrics(action)}
        name = text(action.name(self._demangled))
        short_name = text(action.name())
        if not metrics and not name and not short_name:
            return None
        values = {metric.name: metric.value for metric in metrics.values()}
        kind = self._kinds.get(action.workload_type(), "range")
        return LaunchRecord(
            kind=kind,
            name=name or short_name or "",
            short_name=short_name if kind == "kernel" else None,  # others have no name of their own
            device=_first(values, "launch__device_id", f"{ATTRIBUTE}device_index"),
            context=_first(values, "launch__context_id"),
            stream=_first(values, "launch__stream_id"),
            grid=_size(values, "launch__grid_dim"),
            block=_size(values, "launch__block_dim"),
            metrics=list(metrics.values()),
            ranges=list(_ranges(action.nvtx_state())),
            rules=list(self._rules.results(action)),
            instructions=self._code.instructions(action, metrics),
        )

    def _metrics(self, action: Any) -> Iterator[Metric]:
        for name in action.metric_names():
            if text(name) != name:
                self.n_nameless_metrics += 1
            elif (metric := action.metric_by_name(name)) is not None:
                value = self._value(metric) if metric.has_value() else None
                yield Metric(name, text(metric.unit()), value, self._instances(metric))

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


def device(launch: LaunchRecord) -> ProfiledDevice | None:
    """The device of a launch, as far as its metrics describe it; None where they do not even number it."""
    if launch.device is None:
        return None
    return described(launch.device, attributes_of({metric.name: metric.value for metric in launch.metrics}))


def sources(action: Any) -> Iterator[tuple[str, str]]:
    """Names and texts of the source files that were imported with a launch; the others have no text."""
    for name, content in action.source_files().items():
        if content:
            yield text(name), text(content)


def _ranges(state: Any) -> Iterator[OpenRange]:
    """Those of the launching thread, which alone the library tells of, and those of the process."""
    for identifier in state.domains() if state is not None else ():
        domain = state.domain_by_id(identifier)
        domain_name = text(domain.name())
        kinds: tuple[tuple[Literal["push", "start"], Any], ...] = (
            ("push", domain.push_pop_ranges()),
            ("start", domain.start_end_ranges()),
        )
        for kind, names in kinds:
            for depth, name in enumerate(names):
                yield OpenRange(depth, kind, domain_name, text(name))


def _size(values: Mapping[str, Value | None], name: str) -> Size | None:
    x, y, z = (_first(values, f"{name}_{axis}") for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def _first(values: Mapping[str, Value | None], *names: str) -> int | None:
    """Of the metrics of these names, the first that there is."""
    return next((integer(values[name]) for name in names if name in values), None)

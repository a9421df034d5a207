"""The facts that a report alone tells of its run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diag.compare.facts import Facts, Variants
from diag.compare.precision import precision_of
from diag.compare.recording import Kernel, Key
from diag.model import units
from diag.rules.document import Document, ServingRunOf, SourceOf

COSTLY = ("api", "nvtx", "operator", "python", "shapes", "allocation", "os_call", "cpu_sample", "sched", "gpu_metrics")
"""What a program runs slower for when it is captured."""


def facts_of(report: Document, kernels: Mapping[Key, Kernel]) -> Facts:
    timelines = [source for source in report.sources if source.has_timeline]
    gpus = _gpus(report)
    short_ns: defaultdict[str, float] = defaultdict(float)
    full_ns: defaultdict[str, float] = defaultdict(float)
    for (_, name), kernel in kernels.items():
        total_ns = sum(series.total_ns for series in kernel.by_configuration.values())
        short_ns[kernel.short_name] += total_ns
        full_ns[name] += total_ns
    return Facts(
        gpus=_counted(gpus),
        n_gpus=len(gpus) or None,
        pieces=listed(row.uuid for row in report.devices),
        hosts=listed(source.host for source in report.sources),
        kernels=short_ns or None,
        precision=precision_of(full_ns),
        grids=_grids(report),
        tools=listed(source.tool for source in report.sources),
        tool_versions=listed(source.tool_version for source in report.sources),
        captured=_captured(timelines),
        graph_mode=listed(source.graph_mode for source in timelines),
        part=_part(report),
        startup_share=_startup_share(report),
        clocks=listed(_LOCKED.get(launch.clocks.is_locked) for launch in report.launches),
        cache_control=listed(launch.cache_control for launch in report.launches),
        replay=listed(launch.replay for launch in report.launches),
        bases=listed(
            [
                "timeline" if timelines else None,
                "profile" if report.launches else None,
                "watch" if any(source.kind == "live" for source in report.sources) else None,
                "load on a server" if report.serving else None,
            ]
        ),
        tick_ns=max((source.time_resolution_ns for source in timelines), default=None),
        **_of_loads(report.serving),
    )


def _of_loads(loads: Sequence[ServingRunOf]) -> dict[str, Any]:
    """Of several, what they have in common: they are matched by their rate, or by what was in flight, one by one."""
    one = loads[0] if len(loads) == 1 else None
    return {
        "n_loads": len(loads),
        "served_model": listed(load.model for load in loads),
        "arrivals": listed(load.arrival for load in loads),
        "request_rate_per_s": one.rate_per_s if one else None,
        "concurrency": one.concurrency if one else None,
        "burstiness": one.burstiness if one else None,
        "prompt_tokens": _mean([load.mean_prompt_tokens for load in loads]),
        "output_lengths": listed(load.output_lengths for load in loads),
        "shared_prefix_share": _mean([load.shared_prefix_share for load in loads]),
        "output_tokens": _mean([load.mean_output_tokens for load in loads]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """None where one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


_LOCKED: Mapping[bool | None, str] = {True: "locked to base", False: "not locked"}


def listed(texts: Iterable[str | None]) -> str | None:
    """The distinct ones; None where there are none.

    >>> listed(["b", None, "a", "b"]), listed([None])
    ('a, b', None)
    """
    return ", ".join(sorted({text for text in texts if text})) or None


def _gpus(report: Document) -> Sequence[str | None]:
    """The name of each physical GPU; devices without a UUID count one by one."""
    if report.devices:
        by_identity = {row.uuid or (row.source, row.process, row.device): row.name for row in report.devices}
        return list(by_identity.values())
    if report.launches:
        return list({launch.device: launch.device_name for launch in report.launches}.values())
    return list({row.uuid: row.name for row in report.live_devices}.values())


def _counted(names: Sequence[str | None]) -> str | None:
    """None where one is not known.

    >>> _counted(["Tesla T4", "Tesla T4"]), _counted([None])
    ('2 × Tesla T4', None)
    """
    numbers = Counter(names)
    if not names or None in numbers:
        return None
    return ", ".join(f"{number} × {name}" if number > 1 else str(name) for name, number in sorted(numbers.items()))


def _grids(report: Document) -> Variants | None:
    """Of launches that Nsight Compute measured, by kernel and block."""
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for launch in report.launches:
        if launch.grid is not None and launch.block is not None:
            found[f"{launch.name} {launch.block}"][str(launch.grid)] += 1
    return found or None


def _captured(timelines: Sequence[SourceOf]) -> str | None:
    """Of COSTLY, what any timeline captured."""
    return listed(fact for fact in COSTLY if any(source.capabilities.get(fact) is not None for source in timelines))


def _part(report: Document) -> str:
    if report.part is None:
        return "all"
    window = " to ".join(map(units.time, report.part.window)) if report.part.window else None
    within = f"inside '{report.part.range_name}'" if report.part.range_name else None
    return ", ".join(filter(None, (window, within)))


def _startup_share(report: Document) -> float | None:
    """Of the device with the longest window; None where it is not told apart."""
    longest = max(report.devices, key=lambda row: row.window_ns, default=None)
    if longest is None or longest.startup_ns is None or not longest.window_ns:
        return None
    return longest.startup_ns / longest.window_ns

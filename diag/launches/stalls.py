"""What the warps of a launch waited for: shares of their time, and the instructions at which they waited."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from diag.launches.code import place_of
from diag.launches.kernel import ProfiledKernel
from diag.model.stall_reasons import LatencyShare, StallClass, latency_shares, ready_states, reason_of, reasons

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
ShareOf = Literal["latency", "samples"]


@dataclass(frozen=True)
class Stall:
    """One reason to wait. `share` is of the time between two instructions of a warp, or of all its samples."""

    stall_class: StallClass
    reason: str
    share: float
    share_of: ShareOf
    formula: str
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class WaitingInstruction:
    """An instruction that warps could not issue. They wait for what an earlier one was to give."""

    place: str
    samples: int


def stalls_of(kernel: ProfiledKernel) -> list[Stall]:
    """All stalls that were measured, by latency first and then by samples; in each, the largest share first."""
    found = [*_of_latency(kernel.metrics), *_of_samples(kernel.metrics)]
    return sorted(found, key=lambda stall: (stall.share_of, -stall.share, stall.reason))


def _of_latency(metrics: Mapping[str, Any]) -> Iterator[Stall]:
    for source in latency_shares():
        whole = source.whole if isinstance(source.whole, int) else metrics.get(source.whole)
        if not isinstance(whole, int | float) or whole <= 0:
            continue
        stalls = [stall for reason in reasons() if (stall := _latency_stall(metrics, reason, source, whole))]
        if stalls:
            yield from stalls
            return


def _latency_stall(metrics: Mapping[str, Any], reason: str, source: LatencyShare, whole: float) -> Stall | None:
    metric = source.reason.format(reason=reason)
    value = metrics.get(metric)
    if not isinstance(value, int | float):
        return None
    used = (metric, source.whole) if isinstance(source.whole, str) else (metric,)
    return Stall(
        reasons()[reason].stall_class, reason, _share(value, whole), "latency", f"{metric} / {source.whole}", used
    )


def _of_samples(metrics: Mapping[str, Any]) -> Iterator[Stall]:
    """Of all samples, also of warps that could issue."""
    spellings = [spelling for reason in reasons().values() for spelling in reason.spellings]
    counted = {
        state: value
        for state in (*spellings, *ready_states())
        if isinstance(value := metrics.get(SAMPLES + state), int | float)
    }
    total = sum(counted.values())
    if total <= 0:
        return
    for state, value in counted.items():
        if (reason := reason_of(state)) is not None:
            metric = SAMPLES + state
            formula = f"{metric} / samples in all states"
            yield Stall(reason.stall_class, reason.key, _share(value, total), "samples", formula, (metric,))


def _share(value: float, whole: float) -> float:
    """Counters of two passes may disagree a little."""
    return min(max(value / whole, 0.0), 1.0)


def by_class(stalls: Sequence[Stall]) -> list[tuple[StallClass, list[Stall]]]:
    """The stalls of each class, from the class that takes the largest share to that with the smallest."""
    keys = dict.fromkeys(stall.stall_class.key for stall in stalls)
    groups = [[stall for stall in stalls if stall.stall_class.key == key] for key in keys]
    ordered = sorted(groups, key=lambda group: -sum(stall.share for stall in group))
    return [(group[0].stall_class, group) for group in ordered]


def waiting_instructions(kernel: ProfiledKernel, waited: Collection[str], most: int) -> list[WaitingInstruction]:
    """At most so many of the instructions at which warps waited for these reasons, those with most samples first."""
    rows = kernel.case.db.execute(waiting_sql(kernel.launch.id, waited, most))
    return [
        WaitingInstruction(place_of(address, sass, file, line), samples) for address, samples, sass, file, line in rows
    ]


def waiting_sql(launch_id: int, waited: Collection[str], most: int) -> str:
    """The statement behind them. Where the sampler tells, only samples count in which the scheduler issued nothing."""
    spellings = ", ".join(f"'{spelling}'" for reason in waited for spelling in reasons()[reason].spellings)
    return " ".join(_WAITING.format(launch_id=launch_id, reasons=spellings, most=most).split())


_WAITING = """
    SELECT s.address, CAST(total(coalesce(s.not_issued, s.samples)) AS INTEGER) AS samples,
           i.sass, f.text AS file, i.line
      FROM launch_stall s
      LEFT JOIN launch_instruction i ON i.launch_id = s.launch_id AND i.address = s.address
      LEFT JOIN name f ON f.id = i.file_id
     WHERE s.launch_id = {launch_id:d} AND s.reason IN ({reasons})
     GROUP BY s.address
    HAVING total(coalesce(s.not_issued, s.samples)) > 0
     ORDER BY 2 DESC, 1
     LIMIT {most:d}
"""

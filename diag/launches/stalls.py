"""What the warps of a launch waited for: shares of their time, and the instructions at which they waited."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from diag.launches.instructions import Instruction, instructions
from diag.launches.kernel import ProfiledKernel
from diag.model.quantities import is_number
from diag.model.stall_reasons import LatencyShare, StallClass, latency_shares, ready_states, reason_of, reasons

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"
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
class Wait:
    """An instruction that warps could not issue. What they wait for is asked for by an earlier one."""

    instruction: Instruction
    samples: float


def stalls_of(kernel: ProfiledKernel) -> list[Stall]:
    """All stalls that were measured, by latency first and then by samples; in each, the largest share first."""
    found = [*_of_latency(kernel.metrics), *_of_samples(kernel.metrics)]
    return sorted(found, key=lambda stall: (stall.share_of, -stall.share, stall.reason))


def _of_latency(metrics: Mapping[str, Any]) -> Iterator[Stall]:
    for source in latency_shares():
        whole = source.whole if isinstance(source.whole, int) else metrics.get(source.whole)
        if not is_number(whole) or whole <= 0:
            continue
        stalls = [stall for reason in reasons() if (stall := _latency_stall(metrics, reason, source, whole))]
        if stalls:
            yield from stalls
            return


def _latency_stall(metrics: Mapping[str, Any], reason: str, source: LatencyShare, whole: float) -> Stall | None:
    metric = source.reason.format(reason=reason)
    value = metrics.get(metric)
    if not is_number(value):
        return None
    used = (metric, source.whole) if isinstance(source.whole, str) else (metric,)
    return Stall(
        reasons()[reason].stall_class, reason, _share(value, whole), "latency", f"{metric} / {source.whole}", used
    )


def _of_samples(metrics: Mapping[str, Any]) -> Iterator[Stall]:
    """Of all samples, also of warps that could issue."""
    spellings = [spelling for reason in reasons().values() for spelling in reason.spellings]
    counted = {
        state: value for state in (*spellings, *ready_states()) if is_number(value := metrics.get(SAMPLES + state))
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


def waits_at(kernel: ProfiledKernel, waited: Collection[str]) -> list[Wait]:
    """The instructions at which warps were found to wait for these reasons, those with most samples first.

    Where the sampler tells, only samples count in which the scheduler issued nothing.
    """
    counters = [SAMPLES + spelling for reason in waited for spelling in reasons()[reason].spellings]
    suffix = NOT_ISSUED if any(counter + NOT_ISSUED in kernel.metrics for counter in counters) else ""
    found = instructions(kernel.case, kernel.launch.id, [counter + suffix for counter in counters])
    waits = [Wait(each, sum(each.counts.values())) for each in found]
    return sorted(
        (wait for wait in waits if wait.samples > 0), key=lambda wait: (-wait.samples, wait.instruction.address)
    )

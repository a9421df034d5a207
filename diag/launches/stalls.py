"""What the warps of a launch waited for: shares of their time, and the instructions at which they waited."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from diag.launches.instructions import Instruction, instructions
from diag.launches.kernel import ProfiledKernel
from diag.model.quantities import Metrics, is_number
from diag.model.stall_reasons import StallClass, latency_shares, ready_states, reason_of, reasons

SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
ALL_SAMPLES = "smsp__pcsamp_sample_count"
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
    found = [*_by_latency(kernel.metrics), *_by_samples(kernel.metrics)]
    stalls = [stall for state in found if (stall := _stall(state)) is not None]
    return sorted(stalls, key=lambda stall: (stall.share_of, -stall.share, stall.reason))


def known_share(kernel: ProfiledKernel, share_of: ShareOf) -> float:
    """Share of a warp's time whose state was measured, be it a stall or not; the rest may be for any reason."""
    found = _by_latency(kernel.metrics) if share_of == "latency" else _by_samples(kernel.metrics)
    return sum(state.share for state in found)


class _State(NamedTuple):
    """What warps were found to do, by the name that its metric has for it; the rest as in `Stall`."""

    spelling: str
    share: float
    share_of: ShareOf
    formula: str
    metrics: tuple[str, ...]


def _stall(state: _State) -> Stall | None:
    reason = reason_of(state.spelling)
    return None if reason is None else Stall(reason.stall_class, reason.key, *state[1:])


def _by_latency(metrics: Metrics) -> list[_State]:
    """Of the first of the sources that has any."""
    for source in latency_shares():
        whole = source.whole if isinstance(source.whole, int) else metrics.get(source.whole)
        if found := _states(metrics, source.reason, whole, source.whole, "latency"):
            return found
    return []


def _by_samples(metrics: Metrics) -> list[_State]:
    """Of all samples, also of warps that could issue."""
    return _states(metrics, SAMPLES + "{reason}", metrics.get(ALL_SAMPLES), ALL_SAMPLES, "samples")


def _states(metrics: Metrics, template: str, whole: object, of: str | int, share_of: ShareOf) -> list[_State]:
    """All states that were measured, as shares of the whole, which the metric or number `of` gives."""
    if not is_number(whole) or whole <= 0:
        return []
    beside = (of,) if isinstance(of, str) else ()
    spellings = (spelling for reason in reasons().values() for spelling in reason.spellings)
    named = ((spelling, template.format(reason=spelling)) for spelling in (*spellings, *ready_states()))
    return [
        _State(spelling, _share(value, whole), share_of, f"{metric} / {of}", (metric, *beside))
        for spelling, metric in named
        if is_number(value := metrics.get(metric))
    ]


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

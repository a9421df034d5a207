"""Where a kernel stands under the ceilings of its device, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.launches.counters import UNITS, WORK
from diag.launches.kernel import ProfiledKernel, Untold
from diag.launches.roofline import roofline_of
from diag.model import units
from diag.model.ceilings import Origin
from diag.model.roofline import Bound, Position, Rate, Roofline
from diag.rules import profiled
from diag.rules.engine import kernel_rule, kernel_subject
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.rooflines import ladder
from diag.rules.thresholds import Limits


@kernel_rule("ncu.roofline")
def roofline(kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """Kernels far below every roof of their device.

    Asks      How fast could the same bytes and operations go at the ceilings of memory and of the pipelines?
    Decides   Each level of memory, each pipeline with work and the issue of instructions alone would take a share of
              the launch's time: its rate over its ceiling. The largest is how near the kernel is to its roof, the rest
              is headroom. Fires when the largest stays below `high` and the headroom times the kernel's share of the
              time reaches `share`. Bound: latency when memory and compute both stay below `low`, balanced when they
              differ by less than `even`, else the larger. More than `slack` above a ceiling is an error and no verdict.
              Where neither all pipelines nor the SMs' speed of light were counted, one may be at its limit unseen:
              cannot tell, unless another roof is reached.
              A kernel with next to no floating-point work stands under the instruction roofline.
    Matters   A kernel at its roof gets faster only by doing less; one below it wastes what the device could do.
    Do        Memory: move fewer bytes at the level that is named. Compute: fewer or narrower operations. Latency: more
              warps in flight, and fewer waits of each. Balanced: both sides at once. See docs/roofline.md.
    Refute    The same kernel on a larger input stands at the same share of its roof, though more warps are in flight.
    """
    found, subject = roofline_of(kernel), kernel_subject(kernel)
    if isinstance(found, Untold):
        yield CannotTell(subject, found.because)
        return
    bound, share = found.bound(ladder(limits)), profiled.share_of_time(kernel)
    is_at_roof = found.tightest.share >= limits["high"] and not found.above(limits["slack"])
    if is_at_roof or (bound is not None and share is not None and found.headroom * share < limits["share"]):
        yield Clear(subject)
        return
    if bound is None:
        yield CannotTell(subject, _because(found, limits["slack"]))
        return
    yield profiled.finding(
        kernel,
        title=f"{kernel.launch.short_name} {_TITLES[bound]}: {units.share(found.tightest.share)} of its nearest roof",
        claim=_claim(found),
        counterfactual=f"At the nearest of its roofs, {found.tightest.name}, with the same bytes and instructions.",
        fraction=found.headroom,
        evidence=list(_evidence(kernel, found)),
        refute=_REFUTE[bound],
        steps=_steps(bound, found),
    )


_TITLES: Mapping[Bound, str] = {
    "memory": "is bound by memory",
    "compute": "is bound by compute",
    "latency": "waits",
    "balanced": "is balanced between memory and compute",
}
_REFUTE: Mapping[Bound, str] = {
    "memory": "With half the bytes per result, as with a narrower type, the kernel takes as long as before.",
    "compute": "With the arithmetic taken out and the loads kept, the kernel takes as long as before.",
    "latency": "With twice the warps in flight, from a larger grid or fewer registers, each result takes as long.",
    "balanced": "With half the bytes per result and the same arithmetic, the kernel gets much faster.",
}


def _because(found: Roofline, slack: float) -> str:
    """Why a roofline gives no verdict: a point above its roof, or a side of which nothing is known."""
    if above := found.above(slack):
        how = ", ".join(f"{limit.name} at {units.share(limit.share)} of its ceiling" for limit in above)
        return (
            f"a point lies above its roof ({how}): the ceiling does not hold for this launch, or the counter is wrong"
        )
    if found.is_open and any(limit.side == "compute" for limit in found.limits):
        return (
            f"{', '.join(_together(found.uncounted))} may be its limit: neither was that counted (ncu --section "
            "SpeedOfLight_HierarchicalTensorRooflineChart), nor how busy the SMs were (ncu --section SpeedOfLight)"
        )
    return "it did no work of the kinds that were counted, nor were its instructions (ncu --section InstructionStats)"


def _claim(found: Roofline) -> str:
    sentences = [_standing(found.main)] if found.main else []
    if found.counts_instructions:
        none = "no work of any precision" if not found.work else "next to no floating-point work"
        sentences.insert(0, f"It does {none}, so that its instructions are what counts.")
    nearest = f"Of all its roofs, {found.tightest.name} is nearest, at {units.share(found.tightest.share)}."
    unseen = f"Not counted: {', '.join(_together(found.uncounted))}." if found.uncounted else ""
    return " ".join(filter(None, [*sentences, nearest, unseen]))


def _together(kinds: Sequence[str]) -> Sequence[str]:
    """The tensor cores in one word where none of their work is counted."""
    tensor = [kind for kind in WORK if kind.endswith("tensor")]
    if not set(tensor) <= set(kinds):
        return kinds
    return [*(kind for kind in kinds if kind not in tensor), "work of the tensor cores"]


def _standing(at: Position) -> str:
    """The point, its ridge, and the roof above it."""
    unit, roof = at.work_unit, at.traffic if at.side == "memory" else at.work
    where = "left" if at.side == "memory" else "right"
    name = at.work.name[:1].upper() + at.work.name[1:]
    return (
        f"{name} at {units.quantity(at.work.per_s, f'{unit}/s')} and "
        f"{units.quantity(at.intensity, f'{unit}/byte')} of {at.traffic.name}, {where} of the ridge point at "
        f"{units.quantity(at.ridge_point, f'{unit}/byte')}: the roof above is {roof.name} with "
        f"{units.quantity(at.attainable_per_s, f'{unit}/s')} ({_known_from(roof)})."
    )


def _known_from(rate: Rate) -> str:
    """The origin of a ceiling and the clocks for which it holds."""
    ceiling = rate.ceiling
    clocks = [
        f"{name} at {units.quantity(hz, 'Hz')}"
        for name, hz in (("SMs", ceiling.sm_clock_hz), ("memory", ceiling.memory_clock_hz))
        if hz is not None
    ]
    return ", ".join([_ORIGINS[ceiling.origin], *clocks])


_ORIGINS: Mapping[Origin, str] = {
    "measured": "measured here",
    "report": "by the report itself",
    "derived": "worked out from the units of an SM",
    "datasheet": "by the datasheet",
}


def _evidence(kernel: ProfiledKernel, found: Roofline) -> Iterator[Evidence]:
    if found.main:
        yield from _position(found.main)
    yield from _shares(kernel, found)
    for rate in found.rates:
        yield from _rate(kernel, rate)
    for other in found.others:
        if other.origin == "report" and any(rate.name == other.name for rate in found.rates):
            yield Evidence(f"{other.name} by the report", other.per_s, other.unit, other.formula)
        if other.origin == "datasheet":
            clock = f" at {units.quantity(other.sm_clock_hz, 'Hz')}" if other.sm_clock_hz else ""
            yield Evidence(f"{other.name} by the datasheet{clock}", other.per_s, other.unit, other.source)
    clocks = profiled.clocks(kernel)
    for name, hz in (("sm_clock", clocks.sm_hz), ("memory_clock", clocks.memory_hz)):
        if hz is not None:
            yield profiled.evidence(kernel, name)


def _position(at: Position) -> Iterator[Evidence]:
    unit, work, traffic = at.work_unit, at.work.name, at.traffic.name
    yield Evidence(f"intensity over {traffic}", at.intensity, f"{unit}/byte", f"{work} / {traffic}")
    yield Evidence("ridge point", at.ridge_point, f"{unit}/byte", f"ceiling of {work} / ceiling of {traffic}")
    roof = f"min(ceiling of {work}, intensity x ceiling of {traffic})"
    yield Evidence("attainable at this intensity", at.attainable_per_s, f"{unit}/s", roof)


def _shares(kernel: ProfiledKernel, found: Roofline) -> Iterator[Evidence]:
    """What each limit alone would take of the time, by its rate and ceiling, or as ncu gives it."""
    for rate in found.rates:
        formula = f"{rate.name} / ceiling of {rate.name}"
        yield Evidence(f"{rate.name}, of its ceiling", rate.share, "share", formula)
    names = {rate.name for rate in found.rates}
    for limit in found.limits:
        if limit not in found.units and limit.name not in names:
            yield Evidence(limit.name, limit.share, "share", "their shares added, as they take turns in one pipeline")
    for quantity, (name, _) in UNITS.items():
        if any(limit.name == name for limit in found.units):
            yield profiled.evidence(kernel, quantity, name)


def _rate(kernel: ProfiledKernel, rate: Rate) -> Iterator[Evidence]:
    measured, ceiling = rate.measured, rate.ceiling
    value = int(measured.value) if measured.unit == "bytes/s" else measured.value
    yield Evidence(rate.name, value, measured.unit, measured.formula, profiled.metrics_sql(kernel, measured))
    formula = ceiling.formula if ceiling.origin == "report" else f"{ceiling.formula} ({_known_from(rate)})"
    yield Evidence(f"ceiling of {rate.name}", ceiling.per_s, ceiling.unit, formula)


def _steps(bound: Bound, found: Roofline) -> Sequence[str]:
    level = max(found.traffic, key=lambda rate: rate.share).name
    match bound:
        case "memory":
            return [_FEWER_BYTES[level], "ncu --section MemoryWorkloadAnalysis --section MemoryWorkloadAnalysis_Tables"]
        case "compute":
            return [_LESS_WORK, "ncu --section ComputeWorkloadAnalysis --section InstructionStats"]
        case "balanced":
            return [_FEWER_BYTES[level], _LESS_WORK]
    return [
        "See what warps wait for: ncu --section WarpStateStats --section SchedulerStats --section SourceCounters",
        "See whether enough of them are in flight: ncu --section Occupancy --section LaunchStats",
    ]


_FEWER_BYTES: Mapping[str, str] = {
    "DRAM": "Move fewer bytes of device memory: fuse kernels, tile for the caches, store narrower types",
    "L2": "Ask less of L2: let each block reuse what it has loaded, from shared memory or L1",
    "L1": "Ask less of L1: wider and coalesced loads, and values kept in registers",
}
_LESS_WORK = (
    "Do less: fused multiply-adds, tensor cores or narrower types where the result allows them, less index arithmetic"
)

"""The roofline of a profiled kernel, from what its report counts; or which metrics it would need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.launches.ceilings import ceiling_of, measured, printed, reported
from diag.launches.counters import INSTRUCTIONS, LEVELS, UNITS, WORK, Counted
from diag.launches.kernel import ProfiledKernel, Untold
from diag.model.ceilings import Ceiling
from diag.model.quantities import Measured, Missing, together
from diag.model.roofline import LEAST_PER_S, Limit, Rate, Roofline

_BEST = ("measured", "report")
"""Origins of ceilings that hold at the clocks of the launch, whatever is printed."""

MOST_PER_S = 1e30
"""A damaged file may claim any number."""


def roofline_of(kernel: ProfiledKernel) -> Roofline | Untold:
    """What the launch that speaks for the kernel did, with the ceilings at its own conditions."""
    traffic = [rate for counters in LEVELS.values() if (rate := _level(kernel, counters)) is not None]
    counted = {name: _counters(kernel, sets) for name, sets in WORK.items()}
    every = [each for counters in counted.values() for each in counters]
    done = [each for each in every if (kernel.known(each.rate) or 0) >= LEAST_PER_S]
    work = [rate for each in done if (rate := _rate(kernel, each)) is not None]
    instructions = _rate(kernel, INSTRUCTIONS)
    is_counted = any(counted.values()) or instructions is not None
    if not traffic or len(work) < len(done) or not is_counted:
        needed = [*([] if traffic else LEVELS["dram"]), *(done if is_counted else _SIMPLEST)]
        return Untold(_because(kernel, needed))
    return Roofline(
        traffic=traffic,
        work=work,
        instructions=instructions,
        units=list(_units(kernel)),
        uncounted=[name for name, counters in counted.items() if not counters],
        others=[
            *_unused(kernel, [each for each in every if each not in done]),
            *_replaced(kernel, [*LEVELS["dram"], *done]),
            *_printed(kernel, traffic, work),
        ],
    )


def _level(kernel: ProfiledKernel, counters: Sequence[Counted]) -> Rate | None:
    """The first counter whose peak was measured or stands in the report; else the first with any ceiling."""
    rates = [rate for each in counters if (rate := _rate(kernel, each)) is not None]
    return next((rate for rate in rates if rate.ceiling.origin in _BEST), rates[0] if rates else None)


def _counters(kernel: ProfiledKernel, sets: Sequence[Sequence[Counted]]) -> Sequence[Counted]:
    """The first set whose counters were all collected; empty where there is none."""
    return next((s for s in sets if all(isinstance(kernel.quantity(each.rate), Measured) for each in s)), ())


def _rate(kernel: ProfiledKernel, counted: Counted) -> Rate | None:
    """None where either is not known, or damaged: what no hardware does."""
    found, ceiling = kernel.quantity(counted.rate), ceiling_of(kernel, counted)
    if isinstance(found, Missing) or ceiling is None:
        return None
    is_plausible = 0 <= found.value <= MOST_PER_S and LEAST_PER_S <= ceiling.per_s <= MOST_PER_S
    return Rate(found, ceiling) if is_plausible else None


def _unused(kernel: ProfiledKernel, counters: Sequence[Counted]) -> Iterator[Ceiling]:
    """What the report says of peaks of which no use is made: of work that was not done, or that were measured."""
    for counted in counters:
        if (ceiling := reported(kernel, counted)) is not None and LEAST_PER_S <= ceiling.per_s <= MOST_PER_S:
            yield ceiling


def _replaced(kernel: ProfiledKernel, counters: Sequence[Counted]) -> Iterator[Ceiling]:
    """What the report says of the same as a measured ceiling."""
    for counted in counters:
        if measured(kernel, counted) is not None:
            yield from _unused(kernel, [counted])


def _printed(kernel: ProfiledKernel, traffic: Sequence[Rate], work: Sequence[Rate]) -> Iterator[Ceiling]:
    """What datasheets say of the same, at their own clocks."""
    for rate in (*traffic, *work):
        known = printed(kernel, rate.ceiling.arithmetic, rate.ceiling.level)
        if known is not None and rate.ceiling.origin in _BEST:
            yield known


def _units(kernel: ProfiledKernel) -> Iterator[Limit]:
    for quantity, (name, side) in UNITS.items():
        if (percent := kernel.known(quantity)) is not None and 0 <= percent <= MOST_PER_S:
            yield Limit(name, side, percent / 100)


_SIMPLEST = (*WORK["FP32"][0], *WORK["FP64"][0])
"""What a report is asked for that counts no work at all."""


def _because(kernel: ProfiledKernel, needed: Sequence[Counted]) -> str:
    names = [name for each in needed for name in (each.rate, each.peak)]
    missing = [found for name in names if isinstance(found := kernel.quantity(name), Missing)]
    return together(missing, most=3) if missing else "the report gives 0 for its peaks"

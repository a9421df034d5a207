"""Devices of ranks that their power limit holds back while those of other ranks run free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.job import Job
from diag.ranks.rank_power import PowerOfRank, usual_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.hang_words import who
from diag.rules.thresholds import Limits

MOST_SHOWN = 8


@job_rule("ranks.power", needs=("live_snapshot",))
def power(job: Job, limits: Limits) -> Iterator[Answer]:
    """The power limit holds the device of a rank back, and those of the others not.

    Asks      Does a device of the job run at its power limit while the devices of the other ranks do not?
    Decides   By the records of diag watch, for devices that one rank held alone. Of the readings with resident kernels,
              those are *capped* in which a clock event reason of the driver is about power and the SM clock is below
              its maximum. Fires for a rank that is capped in `capped` of them or more, where the median of the other
              ranks is below that and the mean SM clock of this one is below `clock` of theirs. Three readings at
              least.
    Matters   All ranks wait for the one whose clocks are lowest; a limit that holds all devices alike is no straggler.
    Do        Compare the limits (nvidia-smi -q -d POWER): somebody may have lowered one. With equal limits, a device
              that needs more power for the same clock is hotter or worse than its neighbours: look at cooling, swap it.
    Refute    With the limit raised (sudo nvidia-smi -pl WATTS) the rank is as late as before.
    """
    if len(job.devices) < 2:
        return
    powers = job.powers
    about = Subject(min(device.source for device in job.devices.values()), ranks=tuple(job.devices))
    if len(powers) < 2:
        yield CannotTell(about, "fewer than two ranks have readings of power, clocks and clock reasons under load")
        return
    found = [rank for rank in powers if _stands_out(powers, rank, limits)]
    yield from (_finding(powers, rank) for rank in found)
    if not found:
        yield Clear(about)


def _stands_out(powers: Mapping[int, PowerOfRank], rank: int, limits: Limits) -> bool:
    capped, clock_hz = usual_of(powers, rank)
    own = powers[rank]
    return own.capped >= limits["capped"] > capped and own.sm_clock_hz < limits["clock"] * clock_hz


def _finding(powers: Mapping[int, PowerOfRank], rank: int) -> Finding:
    own = powers[rank]
    capped, clock_hz = usual_of(powers, rank)
    others = [other for other in powers if other != rank]
    slow = units.share(own.sm_clock_hz / clock_hz)
    return Finding(
        title=f"{who([rank])} runs at its power limit, at {slow} of the others' clock",
        claim=f"Power held the clocks of GPU {own.device.index} of rank {rank} down in {units.share(own.capped)} of "
        f"{units.count(own.n_readings, 'reading')} under load, those of {rank_list(others)} in {units.share(capped)} "
        f"in the median. Its limit is {units.quantity(own.limit_w, 'W')}.",
        subject=Subject(own.device.source, device=own.device.index, ranks=(rank,)),
        level="warning",
        confidence="medium",
        counterfactual="At the clock of the others, work that is bound by the SMs would take as long as theirs.",
        evidence=[
            Evidence(f"rank {each}", _in_words(powers[each]), "text", "means of readings with resident kernels",
                     _READINGS.format(source=int(powers[each].device.source), index=int(powers[each].device.index)))
            for each in [rank, *others][:MOST_SHOWN]
        ],
        refute="With the limit raised (sudo nvidia-smi -pl WATTS) the rank is as late as before.",
        next=["Compare the limits and their defaults on the hosts of these ranks: nvidia-smi -q -d POWER"],
    )  # fmt: skip


_READINGS = (
    "SELECT time_ns, power_w, power_limit_w, sm_clock_hz, sm_clock_max_hz, clock_reasons FROM live_gpu "
    "WHERE source_id = {source} AND gpu_index = {index} ORDER BY time_ns"
)


def _in_words(power: PowerOfRank) -> str:
    watts = f"{units.quantity(power.power_w, 'W')} of {units.quantity(power.limit_w, 'W')}"
    return f"capped in {units.share(power.capped)}, {watts}, {units.quantity(power.sm_clock_hz, 'Hz')}"

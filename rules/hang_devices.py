"""What the GPUs of ranks do while calls are outstanding: whether a job is stuck or slow. It adds to what is found, and
accuses nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model import units
from diag.model.live import GpuReading
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.hang import Fault
from diag.ranks.job import Job
from diag.ranks.rank_devices import FEWEST_READINGS, RankDevice
from diag.rules.finding import Evidence
from diag.rules.thresholds import Limits

MOST_SHOWN = 8
SETTLE_NS = 2_000_000_000
"""NVML's utilization is of a period of up to a second before a reading; as much again for the hosts' clocks."""
FOREVER_NS = 1 << 62

Doing = Literal["waits", "computes", "idle"]


@dataclass(frozen=True)
class DeviceOfRank:
    """`doing` None: the readings do not agree on any of them, or there are none of that time."""

    rank: int
    doing: Doing | None
    outstanding: int
    device: RankDevice
    readings: Sequence[GpuReading]


def sentences(known: Sequence[DeviceOfRank]) -> Iterator[str]:
    """What the devices of the ranks that a fault is about do, or why that is not known."""
    by_doing: defaultdict[tuple[Doing, bool], list[int]] = defaultdict(list)
    for each in known:
        if each.doing is not None:
            by_doing[each.doing, each.outstanding > 0].append(each.rank)
    yield from (_said(ranks, *what) for what, ranks in by_doing.items())
    if not by_doing:
        yield f"What their GPUs do cannot be told: {_why_not(known)}."


def _said(ranks: Sequence[int], doing: Doing, is_outstanding: bool) -> str:
    s, verb = ("", "is") if len(ranks) == 1 else ("s", "are")
    return f"The GPU{s} of {rank_list(ranks)} {verb} {_SAYS[doing, is_outstanding]}."


_SAYS: Mapping[tuple[Doing, bool], str] = {
    ("waits", True): "busy at little power: a kernel spins there, which is waiting in a collective",
    ("waits", False): "busy at little power with nothing outstanding: a kernel waits that no recorder tells of",
    ("computes", True): "busy at high power before the call: slow rather than stuck, a kernel computes there",
    ("computes", False): "busy at high power with nothing outstanding: late rather than stuck, a kernel computes there",
    ("idle", True): "idle, though calls are outstanding: none of them runs there",
    ("idle", False): "idle, with nothing outstanding: what blocks is on the host",
}
"""By what the device does, and whether the recorder holds calls of the rank that are not completed."""


def _why_not(known: Sequence[DeviceOfRank]) -> str:
    if not known:
        return "no reading shows which device is theirs alone"
    if all(len(each.readings) < FEWEST_READINGS for each in known):
        return "none was read while the call was outstanding"
    return "readings differ, or lie between waiting and computing"


def evidence(known: Sequence[DeviceOfRank]) -> Iterator[Evidence]:
    for each in [one for one in known if one.doing is not None][:MOST_SHOWN]:
        sql = _READINGS.format(source=int(each.device.source), index=int(each.device.index))
        said = f"kernel resident {_mean(each, 'resident_pct'):.0f} %"
        power_w, limit_w = _mean(each, "power_w"), _mean(each, "power_limit_w")
        if limit_w:
            said += f", {units.quantity(power_w, 'W')} of {units.quantity(limit_w, 'W')}"
        label = f"GPU {each.device.index} of rank {each.rank}"
        yield Evidence(label, said, "text", f"mean of {len(each.readings)} readings since the call", sql)


def _mean(each: DeviceOfRank, name: str) -> float:
    known = [value for reading in each.readings if (value := getattr(reading, name)) is not None]
    return sum(known) / len(known) if known else 0.0


_READINGS = (
    "SELECT time_ns, resident_pct, power_w, power_limit_w, memory_active_pct, sm_clock_hz FROM live_gpu "
    "WHERE source_id = {source} AND gpu_index = {index} ORDER BY time_ns"
)

# ---- what a device does --------------------------------------------------------------------------------------------


def devices_of(job: Job, fault: Fault, limits: Limits) -> Sequence[DeviceOfRank]:
    """Of the ranks at fault, or among which it cannot be told, those whose device is known."""
    return [
        _device(job, fault, rank, job.devices[rank], limits)
        for rank in fault.ranks or fault.candidates
        if rank in job.devices and rank in job.dumps.by_rank
    ]


def _device(job: Job, fault: Fault, rank: int, device: RankDevice, limits: Limits) -> DeviceOfRank:
    """In the time of the hang: since its oldest call, or else since the one that the others wait in; until that runs
    into its time-out, which ends kernels.
    """
    standing = job.dumps.by_rank[rank].standing
    call = fault.call if standing.head is None else job.dumps.by_rank[rank].call(standing.head)
    if call is None or call.created_ns is None:
        return DeviceOfRank(rank, None, standing.outstanding, device, ())
    until_ns = FOREVER_NS if call.timeout_ns is None else call.created_ns + call.timeout_ns
    readings = device.within(call.created_ns + SETTLE_NS, until_ns)
    return DeviceOfRank(rank, _agreed(readings, limits), standing.outstanding, device, readings)


def _agreed(readings: Sequence[GpuReading], limits: Limits) -> Doing | None:
    """What at least `agree` of the readings show."""
    if len(readings) < FEWEST_READINGS:
        return None
    shown = [_doing(reading, limits) for reading in readings]
    kinds: Sequence[Doing] = ("waits", "computes", "idle")
    return next((doing for doing in kinds if shown.count(doing) >= limits["agree"] * len(shown)), None)


def _doing(reading: GpuReading, limits: Limits) -> Doing | None:
    if reading.resident_pct is None:
        return None
    if reading.resident_pct == 0:
        return "idle"
    if reading.resident_pct < 100 * limits["busy"] or reading.power_w is None or not reading.power_limit_w:
        return None
    share = reading.power_w / reading.power_limit_w
    return "waits" if share < limits["waits"] else "computes" if share >= limits["computes"] else None

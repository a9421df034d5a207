"""Which device is whose, where a workload was watched: readings of NVML by rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.model.live import GpuReading, Snapshot
from diag.model.live_run import LiveRun
from diag.ranks.heartbeats import RankBeat, rank_of

FEWEST_READINGS = 3
"""Of a device, to say anything of it."""


@dataclass(frozen=True)
class RankDevice:
    """A device that one rank alone held, which held no other. Readings are those of the snapshots that show it."""

    rank: int
    source: int
    index: int
    readings: Sequence[tuple[int, GpuReading]]  # ns since 1970, in order

    def within(self, since_ns: int, until_ns: int) -> Sequence[GpuReading]:
        return [reading for time_ns, reading in self.readings if since_ns <= time_ns <= until_ns]


def rank_devices(
    runs: Sequence[LiveRun], hosts: Mapping[int, str | None], beats: Sequence[RankBeat]
) -> Mapping[int, RankDevice]:
    """By rank. `hosts`: of the runs, by their source, for a pid counts on one host.

    A process tells its rank by its environment, or its heartbeat does. A device that another process holds as well
    tells nothing of either; nor does a rank whose readings are of several devices, or of several watches.
    """
    found: defaultdict[int, defaultdict[tuple[int, int, str], list[tuple[int, GpuReading]]]]
    found = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for time_ns, snapshot in zip(run.times_ns, run.snapshots, strict=True):
            ranks = {process.pid: process.rank for process in snapshot.processes if process.rank is not None}
            for gpu, holders in _holders(snapshot):
                of = {ranks.get(pid, rank_of(pid, hosts.get(run.source), beats)) for pid in holders}
                if len(of) == 1 and (rank := of.pop()) is not None:
                    found[rank][run.source, gpu.index, gpu.uuid].append((time_ns, gpu))
    return {
        rank: RankDevice(rank, source, index, readings)
        for rank, devices in sorted(found.items())
        if len(devices) == 1
        for (source, index, _), readings in devices.items()
    }


def _holders(snapshot: Snapshot) -> Sequence[tuple[GpuReading, Sequence[int]]]:
    """Devices with the processes that hold their memory; those that are gone hold nothing."""
    return [
        (gpu, [process.pid for process in gpu.processes if process.state != "gone"])
        for gpu in snapshot.gpus
        if gpu.processes
    ]

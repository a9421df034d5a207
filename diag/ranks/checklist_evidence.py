"""What a job left behind, as the seven questions ask it (`diag/ranks/checklist.py`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from diag.ranks.hang import Cause, Fault, HangAnalysis
from diag.ranks.job import Job
from diag.ranks.log_events import LogEvent

Places = Mapping[tuple[str, object], set[int | None]]
"""By host and device, who uses it: ranks, or processes."""


@dataclass(frozen=True)
class Evidence:
    job: Job
    hang: HangAnalysis | None

    def of_kind(self, *kinds: str) -> list[LogEvent]:
        return [event for event in self.job.events if event.kind in kinds]

    def faults(self, *causes: Cause) -> list[Fault]:
        return [fault for fault in self.hang.faults if fault.cause in causes] if self.hang else []

    @property
    def called(self) -> set[int]:
        """Ranks that have called a collective, which they can once all have met."""
        groups = self.hang.groups if self.hang else ()
        return {member.rank for row in groups for member in row.members if member.enqueued}

    @property
    def world_sizes(self) -> set[int]:
        """Those that ranks were told of. A log tells communicators, which may be of parts of the job; and a measurement
        is another job on the same hosts.
        """
        of_job = [each for each in self.job.sources if not (each.has("log_event") or each.has("comm_measurement"))]
        told = (*(each.world_size for each in of_job), *(each.world_size for each in self.job.heartbeats))
        return {size for size in told if size is not None}

    @property
    def world_size(self) -> int | None:
        told = {size for size in self.world_sizes if size}
        return told.pop() if len(told) == 1 else self.hang.world_size if self.hang else None

    @property
    def devices_of_ranks(self) -> Places:
        """As heartbeats number them, which may be for each rank anew."""
        places: defaultdict[tuple[str, object], set[int | None]] = defaultdict(set)
        for beat in self.job.heartbeats:
            if beat.device is not None and beat.host is not None:
                places[beat.host, beat.device].add(beat.rank)
        return places

    @property
    def devices_of_processes(self) -> Places:
        """As NCCL names them: by their bus."""
        places: defaultdict[tuple[str, object], set[int | None]] = defaultdict(set)
        for event in self.of_kind("nccl.init"):
            if event.host is not None and "bus_id" in event.fields:
                places[event.host, f"bus {event.fields['bus_id']}"].add(event.pid)
        return places

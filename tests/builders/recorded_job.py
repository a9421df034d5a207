"""A folder of flight-recorder dumps, made up by hand call by call; they say that they are synthetic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.builders.recorded_calls import Group, Recorded

SYNTHETIC = "made by tests/builders/recorded_job.py; it was never run"
TIMEOUT_MS = 600_000


@dataclass(frozen=True)
class RecordedJob:
    """By rank its groups and calls. `took_ns`: how long completed calls took, where the recorder notes it."""

    ranks: Mapping[int, tuple[Sequence[Group], Sequence[Recorded]]]
    took_ns: int | None = None
    name: str = "_dump_{rank}"
    has_entries: bool = True

    def write(self, path: Path) -> Path:
        path.mkdir()
        for rank, (groups, calls) in self.ranks.items():
            dump = self._dump(groups, calls) | {"synthetic": f"{SYNTHETIC}, rank {rank}"}
            (path / f"{self.name.format(rank=rank)}.json").write_text(json.dumps(dump), encoding="utf-8")
        return path

    def backwards(self) -> Self:
        return self

    def _dump(self, groups: Sequence[Group], calls: Sequence[Recorded]) -> dict[str, Any]:
        numbers = {group.name: number for number, group in enumerate(groups)}
        described = {group.name: group.name if group.description is None else group.description for group in groups}
        return {
            "version": "2.9",
            "pg_config": {
                group.name: {"name": group.name, "desc": described[group.name], "ranks": str(list(group.ranks or ()))}
                for group in groups
            },
            "pg_status": {
                str(numbers[group.name]): {
                    "last_enqueued_collective": group.last_enqueued,
                    "last_started_collective": -1,
                    "last_completed_collective": group.last_completed,
                }
                for group in groups
                if group.last_enqueued is not None
            },
            **({"entries": [self._entry(call, numbers, described) for call in calls]} if self.has_entries else {}),
        }

    def _entry(self, call: Recorded, numbers: Mapping[str, int], described: Mapping[str, str]) -> dict[str, Any]:
        created_ns = 1_700_000_000_000_000_000 + call.record
        return {
            "record_id": call.record,
            "pg_id": numbers[call.group],
            "process_group": (call.group, described[call.group]),
            "collective_seq_id": call.sequence,
            "p2p_seq_id": call.p2p_sequence,
            "op_id": call.sequence,
            "profiling_name": f"nccl:{call.op}",
            "time_created_ns": created_ns,
            "input_sizes": [list(call.sizes)],
            "input_dtypes": [call.dtype],
            "output_sizes": [list(call.sizes)],
            "output_dtypes": [call.dtype],
            "state": "scheduled",
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": created_ns + self.took_ns if self.took_ns and call.is_done else None,
            "retired": call.is_done,
            "timeout_ms": TIMEOUT_MS,
            "is_p2p": call.is_p2p,
        }

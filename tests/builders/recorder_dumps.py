"""Flight-recorder dumps of a job that was never run: every figure in them follows from a seed, and they say so.

The job trains with tensor, data and pipeline parallelism: each rank is in ten groups, and calls their collectives in
turn. All ranks have completed all of it but the last one, an all-reduce over the whole job; the ranks that are `absent`
have not called that one.
"""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SYNTHETIC = "made by tests/builders/recorder_dumps.py; it was never run"

START_NS = 1_758_610_000_000_000_000

# Distance between the members of a group, and how many it has; 0: as many as there are.
_PARALLELISM: Mapping[str, tuple[int, int]] = {
    "default_pg": (1, 0),
    "TENSOR_MODEL_PARALLEL_GROUP": (1, 4),
    "CONTEXT_PARALLEL_GROUP": (4, 2),
    "TENSOR_AND_CONTEXT_PARALLEL_GROUP": (1, 8),
    "DATA_PARALLEL_GROUP": (8, 0),
    "PIPELINE_MODEL_PARALLEL_GROUP": (8, 4),
    "EMBEDDING_GROUP": (8, 2),
    "EXPERT_MODEL_PARALLEL_GROUP": (2, 4),
    "EXPERT_DATA_PARALLEL_GROUP": (8, 8),
    "MODEL_PARALLEL_GROUP": (1, 16),
}

_OPS = ("nccl:all_reduce", "nccl:_all_gather_base", "nccl:_reduce_scatter_base", "nccl:all_to_all", "nccl:broadcast")
_DTYPES = ("BFloat16", "Float")
_SIZES = ([4096, 1, 5120], [8192, 1, 5120], [1], [131072], [4096, 5120])
_FILES = ("/opt/train/model.py", "/opt/train/step.py", "/opt/torch/distributed/distributed_c10d.py")


@dataclass(frozen=True)
class Group:
    number: int
    name: str
    description: str
    ranks: Sequence[int]


@dataclass(frozen=True)
class Job:
    n_ranks: int = 16
    n_entries: int = 50
    with_frames: bool = False
    absent: Collection[int] = ()
    version: str = "2.9"
    seed: int = 0

    def write(self, folder: Path, *, ranks: Collection[int] | None = None, as_json: bool = False) -> list[Path]:
        """One file for each rank, or for each of `ranks`."""
        folder.mkdir(parents=True, exist_ok=True)
        return [self._write(folder, rank, as_json) for rank in (range(self.n_ranks) if ranks is None else ranks)]

    def _write(self, folder: Path, rank: int, as_json: bool) -> Path:
        dump = self.dump(rank)
        path = folder / (f"rank_{rank}.json" if as_json else f"_dump_{rank}")
        path.write_bytes(json.dumps(dump).encode() if as_json else pickle.dumps(dump, protocol=2))
        return path

    def dump(self, rank: int) -> dict[str, Any]:
        groups = list(self.groups(rank))
        entries = list(self._entries(rank, groups))
        last = {group.number: 0 for group in groups}
        for entry in entries:
            last[entry["pg_id"]] = entry["collective_seq_id"]
        waits = int(rank not in self.absent)
        return {
            "version": self.version,
            "pg_config": {
                group.name: {"name": group.name, "desc": group.description, "ranks": str(list(group.ranks))}
                for group in groups
            },
            "nccl_version": "2.27.3",
            "pg_status": {
                str(number): {
                    "last_enqueued_collective": sequence,
                    "last_started_collective": -1,
                    "last_completed_collective": sequence - (waits if number == 0 else 0),
                }
                for number, sequence in last.items()
            },
            "entries": entries,
            "synthetic": SYNTHETIC,
        }

    def groups(self, rank: int) -> Iterator[Group]:
        """Those of a rank, as PyTorch numbers and names them: the name counts the groups of the whole job."""
        n_named = 0
        for number, (description, (distance, size)) in enumerate(_PARALLELISM.items()):
            n_members = min(size or self.n_ranks, self.n_ranks // distance)
            first = rank - rank // distance % n_members * distance
            place = first // (distance * n_members) * distance + first % distance
            members = [first + distance * member for member in range(n_members)]
            yield Group(number, str(n_named + place), description, members)
            n_named += self.n_ranks // n_members

    def _entries(self, rank: int, groups: Sequence[Group]) -> Iterator[dict[str, Any]]:
        """The calls are the same on all ranks, as they are to be; only their times differ."""
        calls = random.Random(self.seed)
        late = random.Random(f"{self.seed} {rank}")
        stacks = [_stack(calls) for _ in range(20)]
        sequences = [0] * len(groups)
        now_ns = START_NS
        for record in range(self.n_entries):
            is_last = record == self.n_entries - 1
            group = groups[0] if is_last else groups[calls.randrange(len(groups))]
            sizes, dtype = calls.choice(_SIZES), calls.choice(_DTYPES)
            op, frames = calls.choice(_OPS), calls.choice(stacks)
            sequences[group.number] += 1
            now_ns += 1_000_000 + late.randrange(100_000)
            if is_last and rank in self.absent:
                return
            yield {
                **({"frames": list(frames)} if self.with_frames else {}),
                "record_id": record,
                "pg_id": group.number,
                "process_group": (group.name, group.description),
                "thread_name": "pt_main_thread",
                "thread_id": "23437652547264",
                "collective_seq_id": sequences[group.number],
                "p2p_seq_id": 0,
                "op_id": sequences[group.number],
                "profiling_name": op,
                "time_created_ns": now_ns,
                "input_sizes": [list(sizes)],
                "input_dtypes": [dtype],
                "output_sizes": [list(sizes)],
                "output_dtypes": [dtype],
                "state": "scheduled" if is_last else "completed",
                "time_discovered_started_ns": None,
                "time_discovered_completed_ns": None if is_last else now_ns + 500_000,
                "retired": not is_last,
                "timeout_ms": 600_000,
                "is_p2p": False,
            }


def _stack(calls: random.Random) -> list[dict[str, Any]]:
    """Frames that entries share, as PyTorch's do."""
    frame = {"name": "all_reduce", "filename": _FILES[-1], "line": 2810}
    callers = [
        {"name": f"layer_{calls.randrange(40)}", "filename": calls.choice(_FILES), "line": calls.randrange(1, 900)}
        for _ in range(15)
    ]
    return [frame, *callers]

"""Steps under torch.profiler, one trace for each rank; on wish with a rank that comes late by a known time.

Each trace says what was done to it, under the key `diag_probe`.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from diag.errors import StorageError
from diag.probes.collective.collective_probe import Exercise
from diag.probes.collective.world import World

N_STEPS = 20

LATE = "injected delay"
"""The range around it, in the trace of the late rank."""


@dataclass(frozen=True)
class Late:
    """A rank that sleeps at the beginning of each step."""

    rank: int
    ms: float


@dataclass(frozen=True)
class Declared:
    """What is known of traces, as they say it themselves. Without a late rank both of its fields are None."""

    probe: str
    variant: str
    n_ranks: int
    n_steps: int
    late_rank: int | None
    late_ms: float | None


def file_of(folder: Path, probe: str, variant: str, rank: int) -> Path:
    """A folder for each job, so that a report on it holds each rank once."""
    return folder / f"{probe}-{variant}" / f"rank{rank}.pt.trace.json.gz"


def record(world: World, exercise: Exercise, probe: str, variant: str, folder: Path, late: Late | None) -> Declared:
    """Writes this rank's trace of N_STEPS steps, after some that warm up. Raises StorageError."""
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    declared = Declared(probe, variant, world.n_ranks, N_STEPS, late.rank if late else None, late.ms if late else None)
    is_late = late is not None and late.rank == world.rank

    def step() -> None:
        if is_late and late is not None:
            with record_function(LATE):
                time.sleep(late.ms / 1e3)
        exercise.step()
        world.synchronize()

    for _ in range(3):
        exercise.step()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if world.device == "cuda" else [])]
    world.barrier()
    with profile(
        activities=activities,
        schedule=schedule(wait=0, warmup=1, active=N_STEPS, repeat=1),
        on_trace_ready=lambda recorded: _export(recorded, file_of(folder, probe, variant, world.rank)),
        record_shapes=True,
    ) as profiler:
        for number in range(1 + N_STEPS):
            step()
            if number == 1:
                profiler.add_metadata_json("diag_probe", json.dumps(asdict(declared)))
            profiler.step()
    return declared


def _export(recorded: object, file: Path) -> None:
    try:
        file.parent.mkdir(exist_ok=True)
        recorded.export_chrome_trace(str(file))  # type: ignore[attr-defined]
    except (OSError, RuntimeError) as error:
        raise StorageError(f"{file} cannot be written ({error}). Choose another --trace FOLDER.") from error

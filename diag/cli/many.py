"""Opening the inputs of a report: one by one, or, where they are many traces, by workers side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli.opening import opened
from diag.cli.terminal import StatusLine

if TYPE_CHECKING:
    from diag.cluster.shards import Shard
    from diag.cluster.workers import Workers
    from diag.ingest.importer import ImportOptions
    from diag.ingest.inputs import Input
    from diag.rules.analysis import AnalysisOptions
    from diag.store.case import Case


@dataclass(frozen=True)
class Sharing:
    """By whom many traces are read; neither is given: by as many processes as there are cores, if they are many."""

    jobs: int | None
    scheduler: str | None


@contextmanager
def opened_by(
    inputs: Sequence[Path], imports: ImportOptions, options: AnalysisOptions, sharing: Sharing, status: StatusLine
) -> Iterator[Case]:
    """The case of `inputs`: as `opened` gives it, or gathered from shards."""
    from diag.cluster.gathering import gathered
    from diag.cluster.reading import Reading

    with _shared(inputs, imports, sharing) as shared:
        if shared is not None:
            shards, others, workers = shared
            reading = Reading.of(imports, options)
            with gathered(shards, others, imports, reading, workers, status) as case:
                yield case
        else:
            with opened(inputs, imports, status) as case:
                yield case


Shared = tuple["Sequence[Shard]", "Sequence[Input]", "Workers"]
"""What is read apart, what is not, and by whom."""


@contextmanager
def _shared(inputs: Sequence[Path], imports: ImportOptions, sharing: Sharing) -> Iterator[Shared | None]:
    """None where there is nothing to share."""
    from diag.cluster.shards import MANY, shards_of, traces_among
    from diag.cluster.visible import shards_seen
    from diag.cluster.workers import DaskCluster, Processes, ThisProcess, connected, cores
    from diag.ingest.inputs import find_inputs

    if sharing.scheduler is not None:
        with connected(sharing.scheduler) as client:
            shards, others = shards_seen(client, inputs, imports.note)
            yield (shards, others, DaskCluster(client)) if shards else None
        return
    n_traces = traces_among(find_inputs(inputs))
    if n_traces > MANY or (n_traces and sharing.jobs is not None):
        jobs = cores() if sharing.jobs is None else sharing.jobs
        shards, others = shards_of(find_inputs(inputs, imports.note))
        yield shards, others, ThisProcess() if jobs == 1 else Processes(jobs)
    else:
        yield None

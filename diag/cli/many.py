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
    from diag.cluster.workers import Workers
    from diag.ingest.importer import ImportOptions
    from diag.rules.analysis import AnalysisOptions
    from diag.store.case import Case


@dataclass(frozen=True)
class Sharing:
    """By whom many traces are read; neither is given: by as many processes as there are cores, if they are many."""

    jobs: int | None
    scheduler: str | None

    @property
    def is_wanted(self) -> bool:
        return self.jobs is not None or self.scheduler is not None


@contextmanager
def opened_by(
    inputs: Sequence[Path], imports: ImportOptions, options: AnalysisOptions, sharing: Sharing, status: StatusLine
) -> Iterator[Case]:
    """The case of `inputs`: as `opened` gives it, or gathered from shards."""
    from diag.cluster.gathering import gathered
    from diag.cluster.reading import Reading
    from diag.cluster.shards import MANY, traces_among
    from diag.ingest.inputs import find_inputs

    n_traces = traces_among(find_inputs(inputs))
    if n_traces > MANY or (n_traces and sharing.is_wanted):
        reading = Reading.of(imports, options)
        with (
            _workers(sharing) as workers,
            gathered(find_inputs(inputs, imports.note), imports, reading, workers, status) as case,
        ):
            yield case
    else:
        with opened(inputs, imports, status) as case:
            yield case


@contextmanager
def _workers(sharing: Sharing) -> Iterator[Workers]:
    from diag.cluster.workers import DaskCluster, Processes, ThisProcess, connected, cores

    if sharing.scheduler is not None:
        with connected(sharing.scheduler) as client:
            yield DaskCluster(client)
    else:
        jobs = cores() if sharing.jobs is None else sharing.jobs
        yield ThisProcess() if jobs == 1 else Processes(jobs)

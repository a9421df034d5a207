"""What tests of serving readers speak of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diag.ingest.importer import ImportOptions, open_inputs
from diag.serving.run import ServingRun, serving_runs
from diag.store.case import Case
from tests.builders.serving_results import Written

MS, SECOND = 1_000_000, 1_000_000_000


@contextmanager
def imported(written: Written, folder: Path, name: str = "result.json") -> Iterator[Case]:
    with open_inputs([written.write(folder / name)], ImportOptions(use_cache=False)) as case:
        yield case


@contextmanager
def runs_of(written: Written, folder: Path, name: str = "result.json") -> Iterator[list[ServingRun]]:
    with imported(written, folder, name) as case:
        yield list(serving_runs(case))


def stated(run: ServingRun) -> dict[tuple[str, str], float]:
    return {(figure.name, figure.statistic): figure.value for figure in run.figures}


def notes(case: Case) -> list[str]:
    return list(case.notes(case.sources[0].id))

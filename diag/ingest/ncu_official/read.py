"""Has workers read a report, and hands their records on when all have been heard."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from diag.errors import InputError, StorageError, ToolMissing
from diag.ingest.input_file import Progress, silent
from diag.ingest.launch_records import LaunchRecord, LaunchReport, ReportFacts
from diag.ingest.ncu_official import package
from diag.ingest.ncu_official.frames import Garbled
from diag.ingest.ncu_official.limits import Limits
from diag.ingest.ncu_official.workers import NO_ROOM, OTHERWISE, Heard, Workers
from diag.model import units

NOT_TOLD = (
    "Read by NVIDIA's ncu-report {version}, which does not tell process, thread and host, the version of the tool, or "
    "how clocks, caches and replay were set."
)


def read(path: Path, *, limits: Limits = Limits(), progress: Progress = silent) -> LaunchReport:
    """What NVIDIA's package reads of a report.

    Raises ToolMissing without the package, InputError when it finds no launch or does not come to an end within the
    limits, and StorageError when there is no room for what it answers among the temporary files.
    """
    version = package.version()
    if version is None:
        raise ToolMissing(_missing(path))
    try:
        # The workers write to this very file: nothing of it may be buffered here.
        answers = tempfile.TemporaryFile(prefix="diag-", buffering=0)  # noqa: SIM115 - closed when launches are taken
    except OSError as error:
        raise StorageError(NO_ROOM.format(path=path.name)) from error
    workers = Workers(path, version, limits, answers)
    try:
        heard = workers.hear(progress)
    except BaseException:
        answers.close()
        raise
    facts = ReportFacts(
        devices=[heard.devices[ordinal] for ordinal in sorted(heard.devices)],
        sources=heard.sources,
        notes=[NOT_TOLD.format(version=version)],
    )
    return LaunchReport(facts, _launches(workers, heard), list(_problems(heard)))


def _launches(workers: Workers, heard: Heard) -> Iterator[LaunchRecord]:
    with workers.answers:
        for frame in heard.launches:
            try:
                yield workers.launch(frame)
            except Garbled as error:
                raise InputError(workers.wrong(f"gave an answer that makes no sense: {error}")) from error


def _problems(heard: Heard) -> Iterator[str]:
    if heard.n_damaged_launches:
        yield f"{units.count(heard.n_damaged_launches, 'damaged launch')} left out."
    if heard.n_nameless_metrics:
        yield f"{units.count(heard.n_nameless_metrics, 'metric value')} left out, of metrics whose names are no text."


def _missing(path: Path) -> str:
    if package.is_offered_here():
        return f"{path.name}: NVIDIA's ncu-report is not installed. Install it with {package.GET_IT}, or {OTHERWISE}."
    return f"{path.name}: NVIDIA publishes ncu-report for Linux on x86-64 only; {OTHERWISE}."

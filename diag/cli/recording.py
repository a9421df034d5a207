"""What `diag run` does once it knows what it is asked for: record, report, and say what the recording has cost."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from diag.cli.ceilings import chosen
from diag.cli.opening import opened
from diag.cli.telling import Telling, tell
from diag.cli.terminal import StatusLine, note, remark
from diag.collect import nsys_capture, overhead
from diag.collect.capture import Capture
from diag.collect.kernel_choice import KernelTime, Selection, select
from diag.collect.recording import Plan, Profiler, record, selected, why_no_overhead
from diag.errors import DiagError, NothingToTell, StorageError, UsageError
from diag.ingest.importer import ImportOptions
from diag.rules.analysis import AnalysisOptions
from diag.rules.finding import Finding
from diag.rules.stored import keep_only, report_of
from diag.rules.timeline_report import KernelRow
from diag.store.kept_file import check_target
from diag.store.work_folder import work_folder


@dataclass(frozen=True)
class Wishes:
    """What the user wants beside the report."""

    is_deep: bool = False
    measures_overhead: bool = True
    keep: Path | None = None
    """A folder for the profilers' files."""
    output: Path | None = None
    """A file for the case."""


def run_and_tell(plan: Plan, profiler: Profiler, wishes: Wishes, telling: Telling) -> int:
    """The exit status: the workload's where that failed, else the report's. Raises DiagError."""
    if wishes.output:
        check_target(wishes.output, ())
    if wishes.keep:
        _make_folder(wishes.keep)
    with work_folder(None) as folder:
        capture = _recorded(plan, profiler, folder, wishes)
        try:
            status = _told(plan, capture, profiler, folder, wishes, telling)
        except DiagError as error:
            if capture.ended.status == 0:
                raise
            note(str(error))
            return capture.ended.status
        if capture.ended.status:
            remark(f"{_how_it_ended(capture.ended.status)}; the report is of what was recorded until then.")
        elif wishes.measures_overhead:
            _tell_overhead(plan, profiler, capture)
    return capture.ended.status or status


def _recorded(plan: Plan, profiler: Profiler, folder: Path, wishes: Wishes) -> Capture:
    place = folder / profiler.value
    place.mkdir()
    capture = record(plan, profiler, place)
    for said in capture.notes:
        note(said)
    if capture.file and wishes.keep:
        return replace(capture, file=_moved(capture.file, wishes.keep))
    return capture


def _told(plan: Plan, capture: Capture, profiler: Profiler, folder: Path, wishes: Wishes, telling: Telling) -> int:
    if capture.file is None:
        raise NothingToTell(capture.lacks)
    files = [capture.file]
    if profiler is Profiler.NSYS:
        kernels = _kernels_worth_it(capture.file, expects_cuda=plan.nsys.with_gpu)
        if wishes.is_deep:
            files += _profiled(plan, kernels, folder, wishes)
    options = AnalysisOptions(ceilings=chosen(None))
    imports = ImportOptions(keep=wishes.output, finish=lambda kept: keep_only(kept, options), note=note)
    return tell(partial(opened, files, imports), options, telling)


def _kernels_worth_it(file: Path, *, expects_cuda: bool) -> Selection | None:
    """Raises NothingToTell when the recording is empty."""
    with StatusLine() as status, opened([file], ImportOptions(), status) as case:
        if nsys_capture.is_empty(case):
            raise NothingToTell(nsys_capture.NOTHING_INSIDE)
        if expects_cuda and not nsys_capture.has_cuda(case):
            note(nsys_capture.NO_CUDA)
        report = report_of(case, AnalysisOptions())
        launches = case.rows(
            "SELECT COALESCE(short.text, long.text) FROM gpu_op LEFT JOIN name AS short ON short.id = short_name_id "
            "LEFT JOIN name AS long ON long.id = name_id WHERE kind = 'kernel' ORDER BY start_ns, gpu_op.id"
        )
    return select(kernel_times(report.kernels, report.findings), [name for (name,) in launches])


def kernel_times(kernels: Sequence[KernelRow], findings: Sequence[Finding]) -> list[KernelTime]:
    """By function: the time of all its launches, and the most that one finding says of it can be won."""
    total_ns: defaultdict[str, int] = defaultdict(int)
    recoverable_ns: dict[str, int] = {}
    for row in kernels:
        total_ns[row.short_name] += row.total_ns
        for finding in findings:
            if finding.subject.kernel == row.name and finding.recoverable_ns is not None:
                recoverable_ns[row.short_name] = max(recoverable_ns.get(row.short_name, 0), finding.recoverable_ns)
    return [KernelTime(function, ns, recoverable_ns.get(function)) for function, ns in total_ns.items()]


def _profiled(plan: Plan, chosen: Selection | None, folder: Path, wishes: Wishes) -> list[Path]:
    """The report of ncu on the chosen kernels; none, with a remark, where it profiled none."""
    if chosen is None:
        note("nsys recorded no kernel, so there is none for ncu to profile.")
        return []
    note(f"running the workload under ncu, for {chosen.count} launches of {', '.join(chosen.functions)}")
    capture = _recorded(selected(plan, chosen), Profiler.NCU, folder, wishes)
    if capture.file is None:
        note(capture.lacks)
        return []
    return [capture.file]


def _tell_overhead(plan: Plan, profiler: Profiler, capture: Capture) -> None:
    if why_not := why_no_overhead(plan, profiler, capture):
        note(why_not)
        return
    note(f"running the workload once more without {profiler}, for its overhead (--no-overhead leaves this out)")
    note(overhead.measured(profiler.value, plan.command, capture.ended))


def _how_it_ended(status: int) -> str:
    """
    >>> _how_it_ended(3), _how_it_ended(143)
    ('The program ended with status 3', 'The program was ended by signal 15')
    """
    return (
        f"The program ended with status {status}"
        if status <= _SIGNALLED
        else f"The program was ended by signal {status - _SIGNALLED}"
    )


_SIGNALLED = 128
"""As shells count: 128 + n for signal n."""


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"--keep {folder} is a file. Name a folder.") from error
    except OSError as error:
        raise StorageError(f"--keep {folder} cannot be made: {error.strerror}. Name another folder.") from error


def _moved(file: Path, folder: Path) -> Path:
    """Into a folder, under a name that is free there."""
    stem, dot, suffixes = file.name.partition(".")
    number, target = 1, folder / file.name
    while target.exists():
        number += 1
        target = folder / f"{stem}-{number}{dot}{suffixes}"
    try:
        return Path(shutil.move(file, target))
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}. Free some space.") from error

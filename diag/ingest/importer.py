"""From the files that a user names to an open case: find, convert, read, keep."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from diag.errors import InputError, ToolMissing, UsageError
from diag.ingest import (
    benchmark,
    heartbeat,
    kineto,
    launches,
    live_record,
    nsys_conversion,
    nsys_sqlite,
    plugin_readers,
    stack_dump,
    topology,
)
from diag.ingest.digests import Digests, distinct, with_digests
from diag.ingest.given_case import check_rows
from diag.ingest.input_file import Bounds, InputFile, Progress, silent
from diag.ingest.inputs import Input, find_inputs
from diag.ingest.job_log import ras_json
from diag.ingest.job_log import reader as job_log
from diag.ingest.joining import join_sources
from diag.ingest.memory_snapshot import magic as memory_snapshot
from diag.ingest.memory_snapshot import read as memory_snapshot_read
from diag.ingest.nccl_tests import read as nccl_tests
from diag.ingest.ncu_official import package as ncu_report
from diag.ingest.nsys_tool import find_nsys
from diag.ingest.rank_clocks import align_ranks, calls_in
from diag.ingest.rank_names import name_ranks
from diag.ingest.recorder import read as recorder
from diag.ingest.serving import aiperf, bench_serving, genai_perf, guidellm, metrics_page
from diag.ingest.serving import log as serving_log
from diag.ingest.settled import companions, copy_while_written, settled_copy
from diag.ingest.unread import add_unread, check_any_read
from diag.ingest.waits import store_waits
from diag.launches.live_runs import KIND as LIVE
from diag.store.cache import Cache, unchanged
from diag.store.case import IMPORT_AGAIN, Case, Mode
from diag.store.kept_file import check_target, copy_whole
from diag.store.lock import held
from diag.store.migrations import up_to_date
from diag.store.sqlite_errors import is_about_input, reported
from diag.store.work_folder import work_folder
from diag.timeline.track_store import store_tracks


def nothing(_: Path) -> None:
    """What is done to a case that is kept as it is."""


@dataclass(frozen=True)
class ImportOptions:
    keep: Path | None = None
    """Where the user wants the case (-o)."""
    use_cache: bool = True
    bounds: Bounds = field(default_factory=Bounds)
    with_nsys_export: bool = False
    """Whether an installed nsys exports its reports, instead of diag reading them itself."""
    tolerant: bool = False
    """Whether an input that cannot be read is a source that says why, as long as another one can be."""
    with_ncu_report: bool = False
    """Whether NVIDIA's package ncu-report reads those of Nsight Compute, instead of diag."""
    note: Progress = silent
    """Hears, one sentence at a time, what of a folder is read and what is not."""
    finish: Callable[[Path], None] = nothing
    """What is still done to the case that will be kept, before it gets its name."""


@contextmanager
def open_inputs(paths: Sequence[Path], options: ImportOptions, progress: Progress = silent) -> Iterator[Case]:
    """A case that holds all inputs: the one given, the cached one, or a new one.

    Raises InputError when an input cannot be read; then no case is left behind.
    """
    inputs = find_inputs(paths, options.note, tolerant=options.tolerant)
    if options.keep:
        check_target(options.keep, [given.path for given in inputs])
    cache = Cache.of_user() if options.use_cache else None
    if inputs[0].kind == "case":
        opened = _given(inputs[0].path, cache)
    elif cache:
        opened = _cached(inputs, cache, options, progress)
    else:
        opened = _passing(inputs, options, progress)
    with opened as case:
        yield case
        if options.keep:
            with case.unchanged():
                copy_whole(case.path, options.keep, options.finish)


@contextmanager
def _given(path: Path, cache: Cache | None) -> Iterator[Case]:
    """A case that belongs to the user: never written, not even what SQLite would put beside it."""
    with (
        work_folder(cache.folder if cache else None) as folder,
        Case.open(_at_rest(path, folder), "immutable") as case,
        _whole(case, f"{path} is damaged. {IMPORT_AGAIN}"),
    ):
        check_rows(case, path)
        yield case


def _at_rest(path: Path, folder: Path) -> Path:
    """A case of this schema that nobody writes: this one, or a copy in `folder`."""
    with held(path, wait=False) as is_at_rest:
        at_rest = path if is_at_rest else copy_while_written(path, folder)
    beside = companions(at_rest)
    return up_to_date(settled_copy(at_rest, beside, folder) if beside else at_rest, folder)


@contextmanager
def _cached(inputs: Sequence[Input], cache: Cache, options: ImportOptions, progress: Progress) -> Iterator[Case]:
    inputs, digests = with_digests(inputs, cache, tolerant=options.tolerant)
    inputs = distinct(inputs, digests, options.note, tolerant=options.tolerant)
    how = tuple(_how_read(options))
    place = cache.path_of(
        (given.path, (*digests[given.path], given.unread or "", *how, *plugin_readers.identity(given.kind)))
        for given in inputs
    )
    with work_folder(cache.folder) as folder:

        def make() -> Path:
            return _import(inputs, digests, folder, options, progress)

        with cache.kept(place, make) as path:
            mode: Mode = "rw" if os.access(path, os.W_OK) else "ro"
            try:
                with Case.open(path, mode) as case, _whole(case, f"The cached case {path} was damaged and is removed."):
                    yield case
            except _Damaged:
                cache.discard(path)
                raise


@contextmanager
def _passing(inputs: Sequence[Input], options: ImportOptions, progress: Progress) -> Iterator[Case]:
    """A case that is gone afterwards."""
    inputs, digests = with_digests(inputs, tolerant=options.tolerant)
    inputs = distinct(inputs, digests, options.note, tolerant=options.tolerant)
    with (
        work_folder(None) as folder,
        Case.open(_import(inputs, digests, folder, options, progress), "rw") as case,
    ):
        yield case


@contextmanager
def new_case(
    inputs: Sequence[Input], options: ImportOptions, progress: Progress, add: Callable[[Case], None]
) -> Iterator[Case]:
    """A case of these inputs and of what `add` adds to it, gone afterwards but for a copy that is kept."""
    if options.keep:
        check_target(options.keep, [given.path for given in inputs])
    with work_folder(None) as folder:
        path = _import(*with_digests(inputs), folder, options, progress)
        with Case.open(path, "rw") as case:
            with case.transaction():
                add(case)
            yield case
            if options.keep:
                with case.unchanged():
                    copy_whole(case.path, options.keep, options.finish)


# ---- a case that does not hold -------------------------------------------------------------------------------------


class _Damaged(InputError):
    pass


@contextmanager
def _whole(case: Case, otherwise: str) -> Iterator[None]:
    """Whatever goes wrong while a damaged case is read is about the damage, which is looked for only then."""
    with reported(case.path):
        try:
            yield
        except UsageError:
            raise
        except Exception as error:  # also want of memory: a damaged row may claim to be larger than any
            if _is_damaged(case):
                raise _Damaged(otherwise) from error
            raise


def _is_damaged(case: Case) -> bool:
    try:
        with Case.open(case.path, case.mode) as again:  # whoever used the other connection may have restricted it
            return bool(again.value("PRAGMA quick_check(1)") != "ok")
    except InputError:
        return True
    except sqlite3.Error as error:
        return is_about_input(error)


# ---- reading -------------------------------------------------------------------------------------------------------


def _how_read(options: ImportOptions) -> Iterator[str]:
    """What else than diag reads some inputs, as another release may read other things; and what else is no error."""
    if options.tolerant:
        yield "tolerant"
    if options.with_nsys_export:
        nsys = find_nsys()
        yield f"exported by {nsys.release if nsys else None}"
    if options.with_ncu_report:
        yield f"read by ncu-report {ncu_report.version()}"


def _import(
    inputs: Sequence[Input], digests: Digests, folder: Path, options: ImportOptions, progress: Progress
) -> Path:
    target = folder / "new.diag"
    with Case.create(target) as case:
        for batch in _batches(inputs):
            first = batch[0]
            if first.unread:
                _keep_unread(first, digests, first.unread, case)
            elif read_all := _BATCH_READERS.get(first.kind):
                with ExitStack() as whole, case.transaction():
                    files = [_input_file(given, given.path, given.kind, digests[given.path][0]) for given in batch]
                    for given in batch:
                        whole.enter_context(_kept_still(given.path, options))
                    read_all(files, case, progress)
            else:
                _read_alone(first, digests, folder, case, options, progress)
        check_any_read(case)
        plugin_readers.check_rows(case, {given.kind for given in inputs})
        progress("summing up the timeline")
        for source in case.sources:
            if source.has_timeline:
                store_tracks(case, source.id)
        name_ranks(case)
        if len(inputs) > 1:
            join_sources(case)
            align_ranks(case, calls_in(case))
    return target


def _batches(inputs: Sequence[Input]) -> Iterable[Sequence[Input]]:
    """The inputs in their order, each alone; those of a kind that is read together come with the first of them."""
    batches: dict[object, list[Input]] = {}
    for given in inputs:
        together = given.kind in _BATCH_READERS and not given.unread
        batches.setdefault(given.kind if together else given, []).append(given)
    return batches.values()


def _read_alone(
    given: Input, digests: Digests, folder: Path, case: Case, options: ImportOptions, progress: Progress
) -> None:
    progress(f"reading {given.path.name}")
    try:
        with _kept_still(given.path, options):
            data, kind = _readable(given, folder, options, progress)
            _read(_input_file(given, data, kind, digests[given.path][0]), case, options, progress)
    except (InputError, ToolMissing) as error:
        if not options.tolerant:
            raise
        _keep_unread(given, digests, str(error), case)


def _kept_still(path: Path, options: ImportOptions) -> AbstractContextManager[None]:
    """Raises InputError when the file changes meanwhile, which those of a job that still runs may."""
    return nullcontext() if options.tolerant else unchanged(path)


def _keep_unread(given: Input, digests: Digests, why: str, case: Case) -> None:
    with case.transaction():
        add_unread(_input_file(given, given.path, given.kind, digests[given.path][0]), case, why)


def _readable(given: Input, folder: Path, options: ImportOptions, progress: Progress) -> tuple[Path, str]:
    """The file that a reader can open in place of the input, and its kind."""
    if given.kind in nsys_conversion.KINDS:
        made = nsys_conversion.converted(
            given,
            folder,
            with_nsys=options.with_nsys_export,
            share_stacks=True,
            bounds=options.bounds,
            progress=progress,
        )
        return made.export, "nsys-sqlite"
    if given.kind == LIVE:
        return _at_rest(given.path, folder), given.kind
    if given.kind == "nsys-sqlite" and (beside := companions(given.path)):
        return settled_copy(given.path, beside, folder), given.kind
    return given.path, given.kind


def _input_file(given: Input, data: Path, kind: str, digest: str) -> InputFile:
    # A path may hold bytes that are no text; the case keeps it as text.
    shown = Path(os.fsencode(given.path).decode("utf-8", "backslashreplace"))
    return InputFile(shown, data, kind, digest, given.path.stat().st_size)


_BATCH_READERS: Mapping[str, Callable[[Sequence[InputFile], Case, Progress], None]] = {
    "flight-recorder": recorder.read_all,
}
"""Of kinds that come by the hundred: each adds a source for every file, inside the caller's transaction."""

_READERS: Mapping[str, Callable[[InputFile, Case], object]] = {
    "benchmark": benchmark.read,
    "heartbeat": heartbeat.read,
    LIVE: live_record.read,
    "stack-dump": stack_dump.read,
    "job-log": job_log.read,
    "nccl-ras": ras_json.read,
    memory_snapshot.KIND: memory_snapshot_read.read,
    nccl_tests.KIND: nccl_tests.read,
    topology.KIND: topology.read,
    serving_log.KIND: serving_log.read,
    bench_serving.KIND: bench_serving.read,
    aiperf.SUMMARY: aiperf.read_summary,
    aiperf.RECORDS: aiperf.read_records,
    genai_perf.KIND: genai_perf.read,
    guidellm.KIND: guidellm.read,
    metrics_page.KIND: metrics_page.read,
}
"""Of what is no trace: each adds one source, inside the caller's transaction."""


def _read(file: InputFile, case: Case, options: ImportOptions, progress: Progress) -> None:
    if file.kind in launches.KINDS:
        with case.transaction():
            launches.read(file, case, with_ncu_report=options.with_ncu_report, progress=progress)
        return
    if reader := _READERS.get(file.kind):
        with case.transaction():
            reader(file, case)
        return
    if plugin_reader := plugin_readers.reader_of(file.kind):
        with case.transaction():
            plugin_reader.read(file, case)
        return
    if file.kind == "kineto":
        with case.transaction():
            source_id = kineto.read(file, case, bounds=options.bounds, progress=progress)
    else:
        with nsys_sqlite.attached(case, file), case.transaction():
            source_id = nsys_sqlite.read(file, case, progress=progress)
    store_waits(case, source_id)

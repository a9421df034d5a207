"""What a live job tells from outside: stacks at several moments, what /proc says, and its recorders' dumps.

It leaves every process as it was: nothing is killed or changed. Each look holds the threads of a process for a moment
(`diag/collect/py_spy.py`, which sends SIGCONT only where py-spy itself had to be killed meanwhile), and a recorder that
listens on its pipe is asked to dump.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from diag.collect.proc import ProcessTree
from diag.collect.proc_files import NS_PER_TICK
from diag.collect.proc_process import stat_of
from diag.collect.proc_threads import Threads
from diag.collect.recorder_pipe import Recorder, Version, new_dumps, recorder_of, trigger, version
from diag.collect.stacks import dump
from diag.collect.starters import only_starts_others
from diag.errors import InputError
from diag.model.live import ProcessReading, StackDump
from diag.model.rank_lists import ranks
from diag.model.stack_file import SCHEMA, SUFFIX, StackFile

N_DUMPS = 3
APART_S = 1.0
"""From one dump to the next: a thread that moves at all does so within a second."""
DUMP_WAIT_S = 15.0
MOST_BYTES = 1 << 30
"""Of a dump that is copied: the process names the file, and 2,000 calls with their frames take some megabytes."""
_AT_ONCE = 16

Said = Callable[[str], None]


@dataclass(frozen=True)
class Looked:
    """`why_not`: what could not be learnt, in sentences. `is_blank`: not of any process there is a stack or a dump."""

    files: Sequence[Path]
    why_not: Sequence[str]
    is_blank: bool


def ranks_below(pid: int) -> Sequence[ProcessReading]:
    """The process itself, or the ranks that it launched: on each branch the first that has a rank and runs a program.

    What only starts another one (a shell, a profiler, `diag run`, torchrun) may have a rank in its environment, too.
    It is taken for the rank only where nothing below it is one. Raises InputError where there is no such process.
    """
    tree = ProcessTree(pid)
    processes = tree.read()
    if not processes:
        raise InputError(f"{tree.untold['processes']} List the processes of your job with: pgrep -af python")
    if processes[0].state == "Z":
        raise InputError(f"Process {pid} has ended; its parent ({processes[0].parent_pid}) has not asked for it yet.")
    with_rank = [each for each in processes if each.rank is not None]
    ranked = [each for each in with_rank if not only_starts_others(each.pid)] or with_rank
    return _topmost(ranked, {each.pid: each.parent_pid for each in processes}) or [processes[0]]


def _topmost(chosen: Sequence[ProcessReading], parents: Mapping[int, int]) -> Sequence[ProcessReading]:
    """Those that descend from no other: workers of a data loader have the rank of their parent, too."""
    pids = {each.pid for each in chosen}
    return [each for each in chosen if pids.isdisjoint(_ancestors(each.pid, parents))]


def _ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while (parent := parents.get(pid)) is not None:
        yield parent
        pid = parent


def look(
    pids: Sequence[int], folder: Path, said: Said, *, apart_s: float = APART_S, wait_s: float = DUMP_WAIT_S
) -> Looked:
    """Writes what can be learnt of the processes into `folder`, a file for each and one for each recorder's dump.

    Raises InputError where none of them is there. That one is gone, among others, is told.
    """
    processes, gone = _found(pids)
    recorders, without = _recorders(processes)
    before = {path: version(path) for recorder in recorders for path in recorder.dumps}
    asked, refused = _ask(recorders)
    rounds: list[Sequence[StackDump]] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for number in range(N_DUMPS):
            said(f"looking at {len(processes)} processes, {number + 1} of {N_DUMPS} times")
            rounds.append(list(pool.map(dump, [each.pid for each in processes])))
            if number + 1 < N_DUMPS and not all(each.untold for each in rounds[0]):
                time.sleep(apart_s)
    files = [
        _write(process, [each for each in dumps if each is not None], folder)
        for process, dumps in zip(processes, zip(*rounds, strict=True), strict=True)
    ]
    said("waiting for the recorders' dumps")
    awaited = [{path: before[path] for path in recorder.dumps} for recorder in asked]
    kept = [*_existing(recorders, asked, before), *new_dumps(awaited, wait_s=wait_s)]
    too_large = [path for path in kept if (now := version(path)) is not None and now[2] > MOST_BYTES]
    files += [_copy(path, folder) for path in kept if path not in too_large]
    untold = [each.untold for dumps in rounds for each in dumps if each.untold]
    late = [recorder for recorder in asked if not any(path in kept for path in recorder.dumps)]
    why_not = [
        *gone,
        *dict.fromkeys((*untold, *without)),
        *_refusals(refused),
        *_lateness(late),
        *_too_large(too_large),
    ]
    return Looked(files, why_not, is_blank=not kept and len(untold) == len(processes) * len(rounds))


def _found(pids: Sequence[int]) -> tuple[Sequence[ProcessReading], list[str]]:
    """The processes that are there, and of others why they are not."""
    found: dict[int, ProcessReading] = {}
    gone = []
    for pid in pids:
        try:
            found |= {each.pid: each for each in ranks_below(pid)}
        except InputError as error:
            gone.append(str(error))
    if not found:
        raise InputError(" ".join(dict.fromkeys(gone)))
    return list(found.values()), gone


def _recorders(processes: Sequence[ProcessReading]) -> tuple[list[Recorder], list[str]]:
    found, why_not = [], []
    for process in processes:
        try:
            if process.rank is not None:
                found.append(recorder_of(process.pid, process.rank))
        except OSError as error:
            why_not.append(f"The environment of process {process.pid} cannot be read: {error.strerror}.")
    return found, why_not


def _ask(recorders: Sequence[Recorder]) -> tuple[list[Recorder], Mapping[int, str]]:
    """Those that were asked, and by rank why others were not."""
    refusals = {recorder.rank: trigger(recorder) for recorder in recorders}
    asked = [recorder for recorder in recorders if refusals[recorder.rank] is None]
    return asked, {rank: reason for rank, reason in refusals.items() if reason is not None}


def _existing(
    recorders: Sequence[Recorder], asked: Sequence[Recorder], before: Mapping[Path, Version | None]
) -> Iterator[Path]:
    """Dumps that the watchdog wrote in this run, of ranks that cannot be asked for newer ones."""
    for recorder in recorders:
        stat = stat_of(recorder.pid)
        if recorder in asked or stat is None:
            continue
        started_ns = stat.started_ns + time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for path in recorder.dumps:
            known = before[path]
            if known is not None and known[1] >= started_ns - NS_PER_TICK:
                yield path


def _write(process: ProcessReading, dumps: Sequence[StackDump], folder: Path) -> Path:
    threads = Threads(process.pid).read()
    told = StackFile(
        schema=SCHEMA,
        pid=process.pid,
        host=os.uname().nodename,
        dumps=dumps,
        rank=process.rank,
        local_rank=process.local_rank,
        world_size=process.world_size,
        states={each.tid: each.state for each in threads},
        waits_in={each.tid: each.waits_in for each in threads if each.waits_in},
    )
    name = f"pid{process.pid}" if process.rank is None else f"rank{process.rank}-pid{process.pid}"
    path = folder / f"{name}{SUFFIX}"
    path.write_bytes(msgspec.json.encode(told))
    return path


def _copy(path: Path, folder: Path) -> Path:
    return Path(shutil.copyfile(path, folder / path.name))


def _refusals(refused: Mapping[int, str]) -> Iterator[str]:
    for reason in dict.fromkeys(refused.values()):
        who = ranks(rank for rank, each in refused.items() if each == reason)
        yield f"No dump was asked of {who}: {reason}."


def _too_large(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        yield f"{path} has more than {MOST_BYTES >> 30} GiB and was left where it is: no recorder writes so much."


def _lateness(late: Sequence[Recorder]) -> Iterator[str]:
    if late:
        yield (
            f"Asked for a dump, and none came from {ranks(recorder.rank for recorder in late)}: the thread that reads "
            "the pipe may need the GIL, or be off (TORCH_NCCL_ENABLE_MONITORING=0)."
        )

"""Where the threads of each rank were when somebody looked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from diag.model.live import Frame
from diag.ranks.heartbeats import RankBeat, rank_of
from diag.store.case import Case


@dataclass(frozen=True)
class RankThread:
    """A row of the table `thread_stack`, which says what the fields are. `frames` from the leaf to the root."""

    source_id: int
    dump: int
    rank: int | None
    host: str | None
    pid: int | None
    tid: int | None
    name: str | None
    time_ns: int | None
    is_main: bool
    is_current: bool
    is_running: bool | None
    holds_gil: bool | None
    state: str | None
    waits_in: str | None
    frames: tuple[Frame, ...]

    @property
    def is_stopped(self) -> bool:
        """By SIGSTOP or the like; py-spy, which stops threads as a debugger does ('t'), has let go by then."""
        return self.state == "T"

    @property
    def process(self) -> tuple[int, int | None, int | None]:
        """Threads that share it are of one process, be it in several dumps of one file."""
        return self.source_id, self.rank, self.pid


def load_stacks(case: Case, beats: Sequence[RankBeat] = (), n_ranks: int | None = None) -> Sequence[RankThread]:
    """In the order of their files. A stack that does not tell its rank gets that of the heartbeat of its process.

    `n_ranks`: of the job, where it is known: a rank beyond is none, but for a number in the name of a file.
    """
    frames = _frames(case)
    threads = [_thread(dict(row), frames) for row in case.rows(_THREADS)]
    return with_ranks([_within(thread, n_ranks) for thread in threads], beats)


def _within(thread: RankThread, n_ranks: int | None) -> RankThread:
    is_beyond = thread.rank is not None and n_ranks is not None and thread.rank >= n_ranks
    return replace(thread, rank=None) if is_beyond else thread


def with_ranks(threads: Sequence[RankThread], beats: Sequence[RankBeat]) -> Sequence[RankThread]:
    of_pid: defaultdict[int | None, list[RankBeat]] = defaultdict(list)
    for beat in beats:
        of_pid[beat.pid].append(beat)
    return [
        replace(thread, rank=rank_of(thread.pid, thread.host, of_pid.get(thread.pid, ())))
        if thread.rank is None
        else thread
        for thread in threads
    ]


def by_process(threads: Iterable[RankThread]) -> Mapping[tuple[int, int | None, int | None], Sequence[RankThread]]:
    found: defaultdict[tuple[int, int | None, int | None], list[RankThread]] = defaultdict(list)
    for thread in threads:
        found[thread.process].append(thread)
    return found


def main_threads(threads: Iterable[RankThread]) -> Sequence[RankThread]:
    """Of each process the main thread in its last dump; where none is marked, the one that was running Python."""
    found = []
    for of_process in by_process(threads).values():
        last = max(thread.dump for thread in of_process)
        newest = [thread for thread in of_process if thread.dump == last]
        found.append(next((t for t in newest if t.is_main), next((t for t in newest if t.is_current), newest[-1])))
    return found


def last_main_threads(threads: Iterable[RankThread]) -> Sequence[RankThread]:
    """Of each rank, or process without one, the main thread; of two files about one rank the later one counts."""
    last = {thread.process if thread.rank is None else thread.rank: thread for thread in main_threads(threads)}
    return list(last.values())


def stood(thread: RankThread, threads: Iterable[RankThread]) -> bool | None:
    """Whether a thread was in the same lines in all dumps of its process; None where there is one dump only."""
    same = [other for other in threads if other.process == thread.process and other.tid == thread.tid]
    if len({other.dump for other in same}) < 2:
        return None
    return all(other.frames == thread.frames for other in same)


def gil_holders(threads: Iterable[RankThread]) -> Sequence[RankThread]:
    """Of each process the thread that held the GIL in the same lines in every dump, of which there are two or more.

    Python hands the GIL on every 5 ms to whoever asks for it: a thread that is found with it again and again in one
    line is in a call that does not let go of it.
    """
    found = []
    for of_process in by_process(threads).values():
        dumps = {thread.dump for thread in of_process}
        holders = [thread for thread in of_process if thread.holds_gil]
        alike = {(thread.tid, thread.frames) for thread in holders}
        if len(dumps) > 1 and len(holders) == len(dumps) and len(alike) == 1:
            found.append(holders[-1])
    return found


def _thread(row: dict[str, object], frames: Mapping[int, tuple[Frame, ...]]) -> RankThread:
    stack = row.pop("stack_id")
    for name in ("is_main", "is_current"):
        row[name] = bool(row[name])
    for name in ("is_running", "holds_gil"):
        row[name] = None if row[name] is None else bool(row[name])
    return RankThread(**row, frames=frames.get(stack, ()) if isinstance(stack, int) else ())  # type: ignore[arg-type]


def _frames(case: Case) -> Mapping[int, tuple[Frame, ...]]:
    found: defaultdict[int, list[Frame]] = defaultdict(list)
    for stack, function, file, line in case.db.execute(_FRAMES):
        found[stack].append(Frame(function, file, line))
    return {stack: tuple(frames) for stack, frames in found.items()}


_THREADS = """
SELECT source_id, dump, rank, host, pid, tid, name, time_ns, is_main, is_current, is_running, holds_gil, state,
       waits_in, stack_id
  FROM thread_stack
 ORDER BY source_id, id
"""

_FRAMES = """
SELECT s.id, coalesce(f.text, '?'), coalesce(m.text, ''), coalesce(s.line, 0)
  FROM stack s
  LEFT JOIN name f ON f.id = s.symbol_id
  LEFT JOIN name m ON m.id = s.module_id
 WHERE s.id IN (SELECT stack_id FROM thread_stack)
 ORDER BY s.id, s.depth
"""

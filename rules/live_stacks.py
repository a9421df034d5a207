"""What the stacks of threads tell: a line that a core is spent in, and threads that wait for a lock."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model import units
from diag.model.live import Frame, ThreadStack
from diag.model.live_run import LiveProcess, LiveRun, LiveThread
from diag.model.live_stacks import LIBRARY, in_function, waits_in_same_frames, whereabouts
from diag.rules.engine import live_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.live import (
    HOW_TO_DUMP,
    place,
    process,
    stack_rows,
    subject_of_process,
    subject_of_run,
)
from diag.rules.live_threads import busy_figures, busy_words, thread_name
from diag.rules.thresholds import Limits

FEWEST_DUMPS = 2
"""A single dump shows where a thread is, not that it stays there."""

FEWER = (
    "of no thread were stacks dumped twice in this window, and one dump does not show that a thread stays where it is"
)

WAITS_FOR_WORK = re.compile(
    r"(^|/)(queue|selectors|socket|ssl|subprocess|signal|asyncio/\w+|concurrent/futures/\w+|multiprocessing/\w+)\.py$"
)
"""Files of Python's library in which a thread waits for work, a result or another process, and not for a lock."""

LOCKING = frozenset({"acquire", "__enter__"})
"""Functions of libraries in which a thread waits for a lock; in others of threading.py, for an event or an end."""

MOST_SHOWN = 8

Wait = Literal["lock", "unknown", "library"]
"""What a thread that stands still waits for: a lock; a lock or what else its line calls; what a library waits for."""


@dataclass(frozen=True)
class Dumped:
    """A thread of which there are stacks enough."""

    run: LiveRun
    process: LiveProcess
    thread: LiveThread
    stacks: Sequence[ThreadStack]

    @property
    def name(self) -> str:
        return thread_name(self.run, self.process, self.thread)

    @property
    def leaf(self) -> Frame:
        return self.stacks[0].frames[0]

    @property
    def label(self) -> str:
        return f"{self.name} ({self.thread.tid})"

    @property
    def rows(self) -> str | None:
        return stack_rows(self.run, self.process.pid, self.thread.tid)

    def stays(self, share: float) -> bool:
        """Whether so many of its stacks end in the same function."""
        found = whereabouts(self.stacks)
        return found is not None and in_function(self.stacks, found.frame) >= share * len(self.stacks)

    def waits(self, idle: float) -> Wait | None:
        """What it waits for, standing still; None where it moves, or waits for work."""
        sleeps_in, leaf = self.thread.last.waits_in, self.leaf
        if not waits_in_same_frames(self.stacks) or (self.thread.cores or 0.0) >= idle:
            return None
        if (sleeps_in is not None and "futex" not in sleeps_in) or WAITS_FOR_WORK.search(leaf.file):
            return None
        if leaf.function in LOCKING:
            return "lock"
        if leaf.file.endswith("/threading.py"):
            return None
        if sleeps_in is None:
            return "unknown"
        return "library" if LIBRARY.search(leaf.file) else "lock"


@live_rule("live.hot_line")
def hot_line(run: LiveRun, limits: Limits) -> Iterator[Answer]:
    """A thread spends a core in one line.

    Asks      Does a thread keep a core busy, and is it in the same place each time its stack is dumped?
    Decides   Both together: it has work for at least `core` of a core, be it on one or ready without one (on a machine
              that is full, others have it), and at least `found` of two or more dumps of its stack end in the same
              function. The line is the one they end in most often. A single dump names no line: it shows where a thread
              was, and not that it stays there.
    Matters   Python runs one thread at a time: a line that keeps it busy holds up every other thread of its process, be
              it the one that launches kernels.
    Do        Vectorise it, cache what it computes, or move it into another process. If it polls, let it wait instead.
    Refute    `py-spy record --pid PID` over ten seconds shows the thread elsewhere.
    """
    judged = _dumped_twice(run)
    if not judged:
        yield CannotTell(subject_of_run(run), FEWER if run.dumps_of_threads else HOW_TO_DUMP)
        return
    hot = [
        each for each in judged if (each.thread.wanted_cores or 0.0) >= limits["core"] and each.stays(limits["found"])
    ]
    if not hot:
        yield Clear(subject_of_run(run))
    yield from map(_hot, hot)


def _hot(one: Dumped) -> Finding:
    found = whereabouts(one.stacks)
    assert found is not None
    same = in_function(one.stacks, found.frame)
    return Finding(
        title=f"Thread {one.name} spends a core in {place(found.frame)}",
        claim=f"Thread {one.label} of {process(one.process)} {busy_words(one.thread)}, and "
        f"{same} of {units.count(len(one.stacks), 'dump')} of its stack end in {found.frame.function}.",
        subject=subject_of_process(one.run, one.process.pid, thread=f"thread {one.label}"),
        level="warning",
        confidence="high" if len(one.stacks) > 2 else "medium",
        counterfactual="What waits for this thread would wait less; how much, a timeline tells.",
        evidence=[
            *busy_figures(one.run, one.process, one.thread, "cores of the thread"),
            Evidence("dumps in its function", same, "count", "stacks whose leaf is in that function", one.rows),
            Evidence("dumps in its line", found.found, "count", "stacks whose leaf is that line", one.rows),
            Evidence("dumps", len(one.stacks), "count", "of this thread", one.rows),
            Evidence("called from", _callers(one.stacks), "text", "frames above it, in the last dump", one.rows),
        ],
        refute="py-spy record over ten seconds shows the thread elsewhere.",
        next=[
            f"Look at {place(found.frame)}.",
            f"Sample it: py-spy record --pid {one.process.pid} --duration 10 -o profile.svg",
        ],
    )


@live_rule("live.blocked")
def blocked_threads(run: LiveRun, limits: Limits) -> Iterator[Answer]:
    """Threads wait for a lock that nobody gives up.

    Asks      Does a thread stand in the same line, waiting for a lock, each time its stack is dumped?
    Decides   All together, over two or more dumps: every frame of its stack is in the same line, it was never running,
              it used less than `idle` of a core, and it sleeps in a futex of the kernel. Where that is not readable, it
              may wait for something else, and the confidence is low. Frames that wait for work (queues, sockets,
              pools), for an event or for a thread's end are none: there is no lock behind them. A frame of an installed
              package that does not itself acquire a lock may wait for a collective, a device or a result of native
              code: it is named, and not judged. The other threads of the process are listed, for one of them holds the
              lock; where none of them moves either it is a deadlock, as far as can be seen, and critical.
    Matters   What waits for a lock does nothing, and neither does whoever waits for that.
    Do        Look at the line and find who takes the same lock. Take locks in one order everywhere, hold them for less,
              and never while waiting for another thread or for the GPU.
    Refute    Another dump, a minute later, shows the thread elsewhere.
    """
    judged = _dumped_twice(run)
    if not judged:
        yield CannotTell(subject_of_run(run), FEWER if run.dumps_of_threads else HOW_TO_DUMP)
        return
    waits = [(each, kind) for each in judged if (kind := each.waits(limits["idle"])) is not None]
    blocked = _by_process(each for each, kind in waits if kind != "library")
    unknown = _by_process(each for each, kind in waits if kind == "library")
    if not waits:
        yield Clear(subject_of_run(run))
    for threads in blocked.values():
        yield _blocked(threads, limits)
    for pid, threads in unknown.items():
        yield CannotTell(subject_of_process(run, pid), _why_not_judged(threads))


def _by_process(threads: Iterator[Dumped]) -> Mapping[int, Sequence[Dumped]]:
    found: defaultdict[int, list[Dumped]] = defaultdict(list)
    for each in threads:
        found[each.process.pid].append(each)
    return found


def _why_not_judged(threads: Sequence[Dumped]) -> str:
    stands = "; ".join(f"{each.label} of {process(each.process)} stands in {place(each.leaf)}" for each in threads[:4])
    return f"{stands}: whether for a lock, a collective or a result of native code its stack does not tell"


def _blocked(threads: Sequence[Dumped], limits: Limits) -> Finding:
    first = threads[0]
    run, one = first.run, first.process
    is_known = all(each.waits(limits["idle"]) == "lock" for each in threads)
    stands_still = (one.cores or 0.0) < limits["idle"]
    line = place(first.leaf)
    what = " for a lock" if is_known else ""
    unknown = "" if is_known else " Where it sleeps in the kernel is not readable, so whether for a lock is not known."
    return Finding(
        title=f"{units.count(len(threads), 'thread')} of {one.last.name} wait{'s' if len(threads) == 1 else ''}{what} "
        f"in {line}",
        claim=f"In all {len(first.stacks)} dumps thread {first.name} of {process(one)} stands in {line}, and did not "
        f"run between them{'; the whole process stands still' if stands_still else ''}.{unknown}",
        subject=subject_of_process(run, one.pid),
        level="critical" if stands_still and is_known else "warning",
        confidence="low" if not is_known else "high" if len(first.stacks) > 2 else "medium",
        counterfactual="These threads would run; what that wins, a timeline tells.",
        evidence=[
            *(
                Evidence(
                    f"{each.label} waits in", place(each.leaf), "text", f"in all {len(each.stacks)} dumps", each.rows
                )
                for each in threads[:MOST_SHOWN]
            ),
            Evidence("cores of the process", one.cores or 0.0, "cores", "CPU time / time", None),
            *_others(run, one, {each.thread.tid for each in threads}),
        ],
        refute="Another dump, a minute later, shows the thread elsewhere.",
        next=[
            f"Look at {line}, and at who else takes that lock.",
            "Dump once more: a thread that moved is not blocked.",
        ],
    )


def _others(run: LiveRun, one: LiveProcess, blocked: set[int]) -> Iterator[Evidence]:
    """Where the other threads of the process are: one of them holds the lock."""
    others = (Dumped(run, one, each, run.dumps_of_threads.get((one.pid, each.tid), ())) for each in one.threads)
    seen = [each for each in others if each.stacks and each.thread.tid not in blocked]
    for each in seen[:MOST_SHOWN]:
        found = whereabouts(each.stacks)
        if found is not None:
            formula = "the leaf of its stack most often"
            yield Evidence(f"{each.label} is in", place(found.frame), "text", formula, each.rows)


def _dumped_twice(run: LiveRun) -> list[Dumped]:
    return [
        Dumped(run, one, thread, stacks)
        for one in run.processes
        for thread in one.threads
        if len(stacks := run.dumps_of_threads.get((one.pid, thread.tid), ())) >= FEWEST_DUMPS
    ]


def _callers(stacks: Sequence[ThreadStack]) -> str:
    return " < ".join(place(frame) for frame in stacks[-1].frames[1:4]) or "nothing: it is the root"

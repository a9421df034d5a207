"""What the stacks of threads tell: a line that a core is spent in, and threads that wait for a lock."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.live import ThreadStack
from diag.model.live_run import LiveProcess, LiveRun, LiveThread
from diag.model.live_stacks import in_function, waits_in_same_frames, whereabouts
from diag.rules.engine import live_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.live import HOW_TO_DUMP, place, process, stack_rows, subject_of_process, subject_of_run, thread_rows
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
"""Functions of threading.py in which a thread waits for a lock; in others of it, for an event or a thread's end."""


@live_rule("live.hot_line")
def hot_line(run: LiveRun, limits: Limits) -> Iterator[Answer]:
    """A thread spends a core in one line.

    Asks      Does a thread keep a core busy, and is it in the same place each time its stack is dumped?
    Decides   Both together: its CPU time is at least `core` of the window, and at least `found` of two or more dumps of
              its stack end in the same function. The line is the one they end in most often. A single dump names no
              line: it shows where a thread was, and not that it stays there.
    Matters   Python runs one thread at a time: a line that keeps it busy holds up every other thread of its process, be
              it the one that launches kernels.
    Do        Vectorise it, cache what it computes, or move it into another process. If it polls, let it wait instead.
    Refute    `py-spy record --pid PID` over ten seconds shows the thread elsewhere.
    """
    judged = [(one, thread, stacks) for one, thread, stacks in _dumped_twice(run)]
    if not judged:
        yield CannotTell(subject_of_run(run), FEWER if run.dumps_of_threads else HOW_TO_DUMP)
        return
    hot = [each for each in judged if (each[1].cores or 0.0) >= limits["core"] and _stays(each[2], limits["found"])]
    if not hot:
        yield Clear(subject_of_run(run))
    for one, thread, stacks in hot:
        yield _hot(run, one, thread, stacks)


def _stays(stacks: Sequence[ThreadStack], share: float) -> bool:
    found = whereabouts(stacks)
    return found is not None and in_function(stacks, found.frame) >= share * len(stacks)


def _hot(run: LiveRun, one: LiveProcess, thread: LiveThread, stacks: Sequence[ThreadStack]) -> Finding:
    found = whereabouts(stacks)
    assert found is not None
    rows = stack_rows(run, one.pid, thread.tid)
    same = in_function(stacks, found.frame)
    return Finding(
        title=f"Thread {thread.name} spends a core in {place(found.frame)}",
        claim=f"Thread {thread.name} ({thread.tid}) of {process(one)} keeps {thread.cores or 0.0:.2f} cores busy, and "
        f"{same} of {units.count(len(stacks), 'dump')} of its stack end in {found.frame.function}.",
        subject=subject_of_process(run, one.pid, thread=_thread(thread)),
        level="warning",
        confidence="high" if len(stacks) > 2 else "medium",
        counterfactual="What waits for this thread would wait less; how much, a timeline tells.",
        evidence=[
            Evidence("cores of the thread", thread.cores or 0.0, "cores", "CPU time / time", thread_rows(
                run, one.pid, thread.tid, "cpu_ns", "state")),
            Evidence("dumps in its function", same, "count", "stacks whose leaf is in that function", rows),
            Evidence("dumps in its line", found.found, "count", "stacks whose leaf is that line", rows),
            Evidence("dumps", len(stacks), "count", "of this thread", rows),
            Evidence("called from", _callers(stacks), "text", "frames above it, in the last dump", rows),
        ],
        refute="py-spy record over ten seconds shows the thread elsewhere.",
        next=[
            f"Look at {place(found.frame)}.",
            f"Sample it: py-spy record --pid {one.pid} --duration 10 -o profile.svg",
        ],
    )  # fmt: skip


@live_rule("live.blocked")
def blocked_threads(run: LiveRun, limits: Limits) -> Iterator[Answer]:
    """Threads wait for a lock that nobody gives up.

    Asks      Does a thread stand in the same line, waiting for a lock, each time its stack is dumped?
    Decides   All together, over two or more dumps: every frame of its stack is in the same line, it was never running,
              it used less than `idle` of a core, and it sleeps in a futex of the kernel where that was readable. Frames
              that wait for work (queues, sockets, pools), for an event or for a thread's end are none: there is no lock
              behind them. The other threads of the process are listed, for one of them holds it; where none of them
              moves either it is a deadlock, as far as can be seen, and critical.
    Matters   What waits for a lock does nothing, and neither does whoever waits for that.
    Do        Look at the line and find who takes the same lock. Take locks in one order everywhere, hold them for less,
              and never while waiting for another thread or for the GPU.
    Refute    Another dump, a minute later, shows the thread elsewhere.
    """
    judged = _dumped_twice(run)
    if not judged:
        yield CannotTell(subject_of_run(run), FEWER if run.dumps_of_threads else HOW_TO_DUMP)
        return
    waiting: defaultdict[int, list[tuple[LiveThread, Sequence[ThreadStack]]]] = defaultdict(list)
    processes = {one.pid: one for one, _, _ in judged}
    for one, thread, stacks in judged:
        if _waits_for_lock(thread, stacks, limits["idle"]):
            waiting[one.pid].append((thread, stacks))
    if not waiting:
        yield Clear(subject_of_run(run))
    for pid, threads in waiting.items():
        yield _blocked(run, processes[pid], threads, limits)


def _waits_for_lock(thread: LiveThread, stacks: Sequence[ThreadStack], idle: float) -> bool:
    if not waits_in_same_frames(stacks) or (thread.cores or 0.0) >= idle:
        return False
    if thread.last.waits_in is not None and "futex" not in thread.last.waits_in:
        return False
    leaf = stacks[0].frames[0]
    if leaf.file.endswith("threading.py"):
        return leaf.function in LOCKING
    return WAITS_FOR_WORK.search(leaf.file) is None


def _blocked(
    run: LiveRun, one: LiveProcess, threads: Sequence[tuple[LiveThread, Sequence[ThreadStack]]], limits: Limits
) -> Finding:
    stands_still = (one.cores or 0.0) < limits["idle"]
    thread, stacks = threads[0]
    line = place(stacks[0].frames[0])
    is_known = all(each.last.waits_in is not None for each, _ in threads)
    where = [
        Evidence(
            f"{each.name} ({each.tid}) waits in", place(found[0].frames[0]), "text", f"in all {len(found)} dumps",
            stack_rows(run, one.pid, each.tid),
        )
        for each, found in threads[:8]
    ]  # fmt: skip
    tids = {each.tid for each, _ in threads}
    others = [
        Evidence(f"{each.name} ({each.tid}) is in", place(last.frame), "text", "the leaf of its stack most often",
                 stack_rows(run, one.pid, each.tid))
        for each in one.threads
        if each.tid not in tids and (last := whereabouts(run.dumps_of_threads.get((one.pid, each.tid), ())))
    ]  # fmt: skip
    waits = f"wait{'s' if len(threads) == 1 else ''}"
    return Finding(
        title=f"{units.count(len(threads), 'thread')} of {one.last.name} {waits} for a lock in {line}",
        claim=f"In all {len(stacks)} dumps thread {thread.name} of {process(one)} stands in {line}, and did not run "
        f"between them{'; the whole process stands still' if stands_still else ''}.",
        subject=subject_of_process(run, one.pid),
        level="critical" if stands_still else "warning",
        confidence="high" if is_known and len(stacks) > 2 else "medium",
        counterfactual="These threads would run; what that wins, a timeline tells.",
        evidence=[
            *where,
            Evidence("cores of the process", one.cores or 0.0, "cores", "CPU time / time", None),
            *others[:8],
        ],
        refute="Another dump, a minute later, shows the thread elsewhere.",
        next=[
            f"Look at {line}, and at who else takes that lock.",
            "Dump once more: a thread that moved is not blocked.",
        ],
    )


def _dumped_twice(run: LiveRun) -> list[tuple[LiveProcess, LiveThread, Sequence[ThreadStack]]]:
    """Threads of which there are stacks enough, with their processes."""
    return [
        (one, thread, stacks)
        for one in run.processes
        for thread in one.threads
        if len(stacks := run.dumps_of_threads.get((one.pid, thread.tid), ())) >= FEWEST_DUMPS
    ]


def _thread(thread: LiveThread) -> str:
    return f"thread {thread.name} ({thread.tid})"


def _callers(stacks: Sequence[ThreadStack]) -> str:
    return " < ".join(place(frame) for frame in stacks[-1].frames[1:4]) or "nothing: it is the root"

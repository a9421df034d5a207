"""What a host thread waits for: locks, and Python's global interpreter lock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import numpy as np

from diag.model import units
from diag.rules import activities
from diag.rules.activities import activities as known
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.host_time import HostTime, Spent, finding, host_time_rule
from diag.rules.thresholds import Limits
from diag.timeline.host import OsCalls
from diag.timeline.intervals import Intervals

LONGEST_TRIVIAL_NS = 10_000
"""Taking a free lock returns within a few microseconds, the tracing of the call included; sleeping takes longer."""


@host_time_rule("host.locks", needs=("lock_wait",))
def lock_contention(time: HostTime, limits: Limits) -> Iterator[Answer]:
    """A thread waits for locks that others hold.

    Asks      How much of the time in which the launching thread keeps the device waiting (without GPU work: of the main
              thread's window) does it wait for mutexes, read-write or spin locks?
    Decides   |union of its calls of pthread_mutex_lock, pthread_rwlock_*lock and pthread_spin_lock that take longer
              than 10 us| / window: a free lock is taken at once. Fires at `share`. Without OS calls in the trace,
              samples inside the slow paths of locks can show contention but not rule it out: threads that wait are not
              sampled. Conditions, semaphores and joins are waiting for work as well as for a lock: their time is named
              apart, and from `share` on the rule says that it cannot tell.
    Matters   A lock hands the launching thread's time to whoever holds it.
    Do        Hold the lock for less time, split it, or take it off the path of the launching thread.
    Refute    Run with the other threads switched off: if the calls take as long, nobody else held the lock.
    """
    if not time.trace.source.captured("os_call"):
        yield from _sampled_contention(time, limits)
        return
    calls = activities.calls_of(time.thread, known()["wait_for_lock"])
    contended = calls.select(calls.end_ns - calls.start_ns > LONGEST_TRIVIAL_NS)
    signals = activities.calls_of(time.thread, known()["wait"])
    signals = signals.select(~np.isin(signals.stack_id, list(_stacks_of_gil(time, signals))))
    spent, unclear = Spent.within(time, contended.union()), Spent.within(time, signals.union())
    if spent.share >= limits["share"]:
        callers = list(_callers(time, contended))
        yield _contention(
            spent,
            [f"The longest wait takes {units.time(int(spent.extent.lengths_ns.max()))}.", *_most_in(callers)],
            [*_call_evidence(time, contended), *_signal_evidence(unclear), *callers],
        )
        yield CannotTell(time.subject, "who held the lock meanwhile: no trace says which lock a thread holds")
    elif unclear.share >= limits["share"]:
        because = (
            f"whether a lock is behind {_longest_name(time, signals)}(): {units.time(unclear.ns)} of {time.in_words} "
            "are inside conditions, semaphores or joins, in which threads wait for work and for locks alike"
        )
        yield CannotTell(time.subject, f"{because} (py-spy dump --native shows who called them)")
    else:
        yield Clear(time.subject)


def _sampled_contention(time: HostTime, limits: Limits) -> Iterator[Answer]:
    sampled = time.sampled(known()["wait_for_lock"])
    spent = Spent.as_sampled(sampled)
    if sampled.decides and spent.share >= limits["share"]:
        claim = [f"So say {sampled.in_words}; threads that sleep are not sampled: it is a lower bound."]
        yield _contention(spent, claim, list(sampled.evidence()))
    else:
        yield CannotTell(time.subject, f"threads that wait are not sampled, and {FACTS['os_call'].why_not(time.trace)}")


def _contention(spent: Spent, claim: Sequence[str], evidence: Sequence[Evidence]) -> Finding:
    lock = known()["wait_for_lock"]
    return finding(
        spent,
        doing=lock.label,
        claim=" ".join(claim),
        evidence=evidence,
        refute="Run with the other threads switched off: if the calls take as long, nobody else held the lock.",
        do=[lock.do, "See who holds it: gdb -p PID -batch -ex 'thread apply all bt', or py-spy dump --native."],
    )


def _most_in(callers: Sequence[Evidence]) -> Iterator[str]:
    if callers:
        yield f"For {units.time(int(callers[0].value))} of it the lock is {callers[0].label}."


def _call_evidence(time: HostTime, calls: OsCalls) -> Iterator[Evidence]:
    for name_id in np.unique(calls.name_id).tolist():
        name, of = time.trace.names[name_id], calls.select(calls.name_id == name_id)
        inside = of.union() & time.when
        if inside:
            formula = f"union of the calls longer than {units.time(LONGEST_TRIVIAL_NS)} within {time.in_words}"
            yield Evidence(f"in {name}()", inside.measure_ns, "ns", formula, _calls_sql(time, name_id))


def _signal_evidence(signals: Spent) -> Iterator[Evidence]:
    if signals.ns:
        label = "waiting for a signal (condition, semaphore, join)"
        yield Evidence(label, signals.ns, "ns", "union of these calls; work or a lock, the call does not say")


def _longest_name(time: HostTime, calls: OsCalls) -> str:
    inside_ns = time.when.measure_within(calls.start_ns, calls.end_ns)
    names, index = np.unique(calls.name_id, return_inverse=True)
    return time.trace.names[int(names[np.argmax(np.bincount(index, inside_ns))])]


def _callers(time: HostTime, calls: OsCalls) -> Iterator[Evidence]:
    """The functions that take the lock, by the time of their waits: the first frame outside the C library."""
    frames: dict[int, str] = {}
    for row in time.trace.case.rows(_STACKS, (json.dumps(np.unique(calls.stack_id).tolist()),)):
        if not PurePosixPath(row["module"] or "").name.startswith(_PLUMBING):
            frames.setdefault(row["id"], row["symbol"])
    stacks, index = np.unique(calls.stack_id, return_inverse=True)
    inside_ns = np.bincount(index, time.when.measure_within(calls.start_ns, calls.end_ns)).astype(np.int64)
    waits: Counter[str] = Counter()
    for stack_id, ns in zip(stacks.tolist(), inside_ns.tolist(), strict=True):
        if stack_id in frames:
            waits[frames[stack_id]] += ns
    for name, ns in waits.most_common(3):
        if ns > 0:
            yield Evidence(f"taken in {name}", ns, "ns", "waits whose stack leads there; short waits have no stack")


_PLUMBING = ("libc.", "libc-", "libpthread", "ld-", "libToolsInjection")
"""Libraries through which a call passes: their frames do not say who made it."""


@host_time_rule("host.gil", needs=("gil",))
def gil_contention(time: HostTime, limits: Limits) -> Iterator[Answer]:
    """A thread waits for Python's global interpreter lock (GIL).

    Asks      How much of the time in which the launching thread keeps the device waiting (without GPU work: of the main
              thread's window) does it wait for the GIL?
    Decides   The best evidence that the trace has: its ranges "Waiting for GIL" (nsys --trace=python-gil); else its OS
              calls whose stack shows CPython taking the GIL (take_gil, PyEval_RestoreThread), a lower bound, as short
              calls have no stack; else samples with such a stack. Fires at `share` of the window. CPython waits for the
              GIL in pthread_cond_timedwait: that such calls take time proves nothing, but that they take less than
              `share` rules it out.
    Matters   One thread of a process at a time runs Python: a busy helper thread takes every other slice of 5 ms from
              the thread that launches (sys.getswitchinterval).
    Do        Move the Python code of other threads to processes of their own, or make it release the GIL.
    Refute    Switch the helper threads off, or run them in other processes: if the waits stay, it was not the GIL.
    """
    if time.thread.gil is not None:
        yield from _judge_gil(Spent.within(time, time.thread.gil.waiting), limits, list(_gil_holders(time)))
    elif time.trace.source.captured("os_call"):
        yield from _gil_by_calls(time, limits)
    elif time.trace.source.has("cpu_sample"):
        yield from _gil_by_samples(time, limits)
    else:
        yield CannotTell(time.subject, f"waits for Python's GIL were not captured ({FACTS['gil'].nsys})")


def _gil_by_calls(time: HostTime, limits: Limits) -> Iterator[Answer]:
    waits = activities.calls_of(time.thread, known()["wait_for_gil"])
    told = _stacks_of_gil(time, waits)
    spent = Spent.within(time, waits.select(np.isin(waits.stack_id, list(told))).union())
    untold = Spent.within(time, waits.select(waits.stack_id < 0).union())
    if spent.share < limits["share"] <= spent.share + untold.share:
        because = f"{units.time(untold.ns)} of {time.in_words} are inside pthread_cond_timedwait() without a stack"
        yield CannotTell(time.subject, f"{because} ({FACTS['gil'].nsys}; nsys --osrt-backtrace-threshold)")
        return
    frames = ", ".join(dict.fromkeys(told.values()))
    formula = f"union of OS calls whose stack takes the GIL ({frames}); shorter calls have no stack"
    yield from _judge_gil(spent, limits, [Evidence("waiting for the GIL", spent.ns, "ns", formula)])


def _stacks_of_gil(time: HostTime, calls: OsCalls) -> Mapping[int, str]:
    return activities.frames_that_tell(time.trace.case, np.unique(calls.stack_id).tolist(), known()["wait_for_gil"])


def _gil_by_samples(time: HostTime, limits: Limits) -> Iterator[Answer]:
    sampled = time.sampled(known()["wait_for_gil"])
    spent = Spent.as_sampled(sampled)
    if not sampled.decides or spent.share < limits["share"]:
        yield CannotTell(time.subject, f"threads that wait for the GIL are not sampled ({FACTS['gil'].nsys})")
        return
    yield from _judge_gil(spent, limits, list(sampled.evidence()))


def _judge_gil(spent: Spent, limits: Limits, evidence: list[Evidence]) -> Iterator[Answer]:
    time, gil = spent.time, known()["wait_for_gil"]
    if spent.share < limits["share"]:
        yield Clear(time.subject)
        return
    held = next((each for each in evidence if each.label.startswith("held by")), None)
    yield finding(
        spent,
        doing=gil.label,
        claim=f"For {units.time(int(held.value))} of it the GIL is {held.label}."
        if held
        else "Who held it was not captured.",
        evidence=evidence,
        refute="Switch the helper threads off, or run them in other processes: if the waits stay, it was not the GIL.",
        do=[gil.do] if held else [gil.do, "See who holds it: nsys profile --trace=python-gil, or py-spy record --gil."],
    )


def _gil_holders(time: HostTime) -> Iterator[Evidence]:
    """What the thread waited, and which threads of its process had the GIL meanwhile, longest first."""
    gil = time.thread.gil
    waits = gil.waiting & time.when if gil else Intervals.empty()
    yield Evidence(
        "waiting for the GIL", waits.measure_ns, "ns", f"its ranges 'Waiting for GIL' within {time.in_words}"
    )
    held = [
        (thread.tid, (thread.gil.holding & waits).measure_ns)
        for thread in time.trace.threads.values()
        if thread.gil and thread.process_id == time.thread.process_id and thread is not time.thread
    ]
    for tid, ns in sorted(held, key=lambda pair: -pair[1])[:3]:
        if ns > 0:
            yield Evidence(f"held by thread {tid}", ns, "ns", "its ranges 'Holding GIL' within those waits")


def _calls_sql(time: HostTime, name_id: int) -> str:
    return (
        "SELECT start_ns, end_ns, end_ns - start_ns AS duration_ns, stack_id FROM os_call "
        f"WHERE thread_id = {time.thread.thread_id:d} AND name_id = {name_id:d} "
        f"AND end_ns - start_ns > {LONGEST_TRIVIAL_NS:d} ORDER BY start_ns"
    )


_STACKS = """
    SELECT k.id, s.text AS symbol, m.text AS module
      FROM stack k
      LEFT JOIN name s ON s.id = k.symbol_id
      LEFT JOIN name m ON m.id = k.module_id
     WHERE k.id IN (SELECT value FROM json_each(?)) AND s.text IS NOT NULL
     ORDER BY k.id, k.depth
"""

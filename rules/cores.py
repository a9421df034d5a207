"""A host thread that could run but has no core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Evidence
from diag.rules.host_time import HostTime, Spent, finding, host_time_rule
from diag.rules.thresholds import Limits
from diag.timeline.gpu_work import NONE
from diag.timeline.host import RUNNABLE, HostThread, Switches
from diag.timeline.intervals import Intervals

LONGEST_TURN_NS = 100_000_000
"""A thread that can run gets a core again within the period of its container's CPU limit (Linux' sched-bwc: 100 ms by
default); without a limit its turn comes sooner. Who stays away for longer is probably blocked."""


@host_time_rule("host.oversubscription", needs=("sched",))
def oversubscription(time: HostTime, limits: Limits) -> Iterator[Answer]:
    """A thread that could run has no core.

    Asks      For how long is the launching thread off its core although it could run, while the device waits for it
              (without GPU work: in the main thread's window)?
    Decides   Time from each context switch that leaves the thread runnable (preempted) to the next one that gives it a
              core again / window; fires at `share`. Where the trace leaves open why the thread left its core for
              `share` of the window or more, stretches of up to 100 ms off the core outside all of its OS and CUDA calls
              are told for information, with low confidence; all that is sure then is that a thread which hardly leaves
              its core has one.
    Matters   More threads than cores take turns of milliseconds; a launch that waits for its turn lets the device idle.
    Do        Have fewer threads (OMP_NUM_THREADS, torch.set_num_threads, loader workers), more cores (the container's
              CPU limit), or cores of its own for the launching thread (taskset, numactl, sched_setaffinity).
    Refute    Pin the thread to a core that nothing else may use: if the time stays, it was not taken by others.
    """
    switches = time.thread.switches
    if switches is None or not len(switches.time_ns):
        yield CannotTell(time.subject, f"no context switch of {time.whose} is in the trace")
        return
    runnable, untold = switches.off_cpu(RUNNABLE), switches.off_cpu(NONE)
    # Some files give a state to a few switches only: what the others leave open must not pass for blocked.
    states_are_known = Spent.within(time, untold).share < limits["share"]
    if Spent.within(time, runnable if states_are_known else runnable | untold).share < limits["share"]:
        yield Clear(time.subject)
        return
    off = runnable if states_are_known else _without_reason(time.thread, runnable | untold)
    spent = Spent.within(time, off)
    if not states_are_known:
        unsure = "whether it was preempted or blocked while off its core: the switches do not say"
        os_calls = FACTS["os_call"]
        captured = os_calls.is_captured(time.trace)
        yield CannotTell(time.subject, unsure if captured else f"{unsure}, and {os_calls.why_not(time.trace)}")
        if not captured or spent.share < limits["share"]:
            return
    others = _others_on_its_cores(time, switches, spent.extent)
    yield finding(
        spent,
        doing="ready to run without a core" if states_are_known else "off its core for no recorded reason",
        claim=" ".join(_claim(spent, others, states_are_known=states_are_known)),
        evidence=[
            Evidence("without a core", spent.ns, "ns", _FORMULAS[states_are_known], _switches_sql(time)),
            Evidence("stretches without a core", len(spent.extent), "count", _FORMULAS[states_are_known]),
            Evidence(
                "its core taken by captured threads", others.time.measure_ns, "ns", "their time on the core it left"
            ),
            Evidence("captured threads on its core", len(others.tids), "count", "threads that ran there meanwhile"),
            Evidence("moves to another core", _migrations(time, switches), "count", "switches in on another core"),
        ],
        refute="Pin the thread to a core that nothing else may use: if the time stays, it was not taken by others.",
        do=[
            "Have fewer threads: OMP_NUM_THREADS, torch.set_num_threads, the workers of the data loader.",
            "Give the launching thread a core of its own: taskset, numactl, sched_setaffinity.",
            "See whether the container's CPU limit throttles it: nr_throttled in /sys/fs/cgroup/cpu.stat.",
        ],
        confidence="high" if states_are_known else "low",
        level=None if states_are_known else "info",
    )


_FORMULAS = {
    True: "switches out as runnable, each to the next switch in",
    False: "stretches of up to 100 ms off the core outside OS and CUDA calls of the thread",
}
"""By whether the trace says how threads leave their core."""


def _without_reason(thread: HostThread, off: Intervals) -> Intervals:
    """Those stretches off the core, no longer than a turn, that no OS or CUDA call of the thread touches."""
    called = (thread.in_os | thread.in_cuda).measure_within(off.starts_ns, off.ends_ns) > 0
    unexplained = ~called & (off.lengths_ns <= LONGEST_TURN_NS)
    return Intervals(off.starts_ns[unexplained], off.ends_ns[unexplained])


@dataclass(frozen=True, eq=False)
class Others:
    """Captured threads that ran on a core that a thread had left, and when."""

    tids: frozenset[int]
    time: Intervals


def _others_on_its_cores(time: HostTime, switches: Switches, off: Intervals) -> Others:
    left_at = np.searchsorted(switches.time_ns, off.starts_ns, side="right") - 1
    cores = switches.cpu[np.maximum(left_at, 0)]
    tids, taken = set(), Intervals.empty()
    for core in np.unique(cores).tolist():
        left = Intervals(off.starts_ns[cores == core], off.ends_ns[cores == core])
        for thread in time.trace.threads.values():
            meanwhile = left & thread.switches.on_cpu(core) if thread.switches else Intervals.empty()
            if meanwhile and thread is not time.thread:
                tids.add(thread.tid)
                taken = taken | meanwhile
    return Others(frozenset(tids), taken)


def _claim(spent: Spent, others: Others, *, states_are_known: bool) -> Iterator[str]:
    longest_ns = int(spent.extent.lengths_ns.max())
    yield f"It happens {units.count(len(spent.extent), 'time')}, for {units.time(longest_ns)} at most."
    if others.tids:
        threads = units.count(len(others.tids), "other captured thread")
        yield f"For {units.time(others.time.measure_ns)} of it {threads} ran on the core that it had left."
    if not states_are_known:
        yield "It was preempted, or blocked in something that was not recorded: the trace does not say which."


def _migrations(time: HostTime, switches: Switches) -> int:
    """Switches in on another core than the last one, from the first to the last instant of the time."""
    ins = switches.is_in == 1
    cpus, times_ns = switches.cpu[ins], switches.time_ns[ins]
    first, last = time.when.span
    moved = (cpus[1:] != cpus[:-1]) & (times_ns[1:] >= first) & (times_ns[1:] <= last)
    return int(moved.sum())


def _switches_sql(time: HostTime) -> str:
    return f"SELECT time_ns, is_in, cpu, state FROM sched WHERE thread_id = {time.thread.thread_id:d} ORDER BY time_ns"

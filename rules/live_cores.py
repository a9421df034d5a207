"""Cores of the machine: more threads that want to run than there are cores."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live_run import LiveRun
from diag.rules.engine import live_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.live import subject_of_run, thread_rows
from diag.rules.thresholds import Limits


@live_rule("live.oversubscription")
def more_threads_than_cores(run: LiveRun, limits: Limits) -> Iterator[Answer]:
    """More threads want to run than there are cores.

    Asks      Do the workload's threads take cores from each other, or others from them?
    Decides   Both together: of the switches of its threads that do work (`busy` of a core or more) at least
              `involuntary` are involuntary, which is another thread taking the core; and on average `runnable` times as
              many of its threads run or are ready as it may use cores. The states are those of the moments of the
              snapshots.
    Matters   A thread that launches kernels and loses its core leaves the GPU without work for a slice of time. Threads
              that share cores also empty each other's caches.
    Do        Set OMP_NUM_THREADS (torch.set_num_threads) so that processes x threads fit the cores; start fewer loader
              workers; ask the scheduler or the container for more cores.
    Refute    With as many threads as cores the same work takes as long.
    """
    subject = subject_of_run(run)
    threads = [(one.pid, thread) for one in run.processes for thread in one.threads]
    at_work = [(pid, thread) for pid, thread in threads if (thread.cores or 0.0) >= limits["busy"]]
    switched = [
        (pid, thread, taken, waited)
        for pid, thread in at_work
        if (taken := thread.involuntary_switches) is not None and (waited := thread.voluntary_switches) is not None
    ]
    if not threads:
        yield CannotTell(subject, run.untold("processes") or "no thread was watched for long enough")
        return
    if at_work and not switched:
        because = next(
            (one.last.untold[key] for one in run.processes for key in _SWITCHES if key in one.last.untold), None
        )
        yield CannotTell(subject, because or "context switches of the threads were not readable")
        return
    taken = sum(taken for _, _, taken, _ in switched)
    switches = taken + sum(waited for *_, waited in switched)
    cores = run.snapshots[-1].host.cores
    if not switches or taken < limits["involuntary"] * switches or len(at_work) < limits["runnable"] * cores:
        yield Clear(subject)
        return
    runnable = _mean_runnable(run)
    if runnable < limits["runnable"] * cores:
        yield Clear(subject)
        return
    pid, thread, most, _ = max(switched, key=lambda each: each[2])
    rows = thread_rows(run, pid, thread.tid, "state", "involuntary_switches", "voluntary_switches")
    yield Finding(
        title=f"{runnable:.1f} threads want to run on {units.count(cores, 'core')}",
        claim=f"{units.share(taken / switches)} of the switches of {units.count(len(switched), 'busy thread')} are "
        f"involuntary; on average {runnable:.1f} threads run or are ready, where the workload may use "
        f"{units.count(cores, 'core')}.",
        subject=subject,
        level="warning",
        counterfactual="Threads would not wait for cores; what that wins, a timeline tells "
        "(nsys profile --cpuctxsw=process-tree).",
        evidence=[
            Evidence("run or ready", runnable, "threads", "mean of the threads in state R, weighted by time", rows),
            Evidence("cores", cores, "count", "that the workload may use", None),
            Evidence("involuntary switches", taken, "count", "sum over its busy threads", rows),
            Evidence("all switches", switches, "count", "voluntary and involuntary", rows),
            Evidence("most of one thread", most, "count", f"involuntary, of {thread.name} ({thread.tid})", rows),
        ],
        refute="With as many threads as cores the same work takes as long.",
        next=["Let processes x threads fit the cores: OMP_NUM_THREADS, torch.set_num_threads, num_workers"],
    )


_SWITCHES = ("voluntary_switches", "involuntary_switches", "threads")


def _mean_runnable(run: LiveRun) -> float:
    """Threads in state R, each snapshot speaking for the time before it."""
    weighted = 0
    for (before, after), snapshot in zip(
        zip(run.times_ns, run.times_ns[1:], strict=False), run.snapshots[1:], strict=True
    ):
        runnable = sum(thread.state == "R" for each in snapshot.processes for thread in each.threads)
        weighted += runnable * (after - before)
    return weighted / run.window_ns if run.window_ns else 0.0

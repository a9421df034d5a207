"""A device that waits for the host."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live_run import LiveRun
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from diag.rules.live import (
    HOW_TO_DUMP,
    Device,
    extent,
    gpu,
    live_device_rule,
    process,
    subject_of,
)
from diag.rules.live_threads import busy_words, thread_name
from diag.rules.live_waiting import Waiting, holders, holding_pids, idle_ns, why_unwatched
from diag.rules.thresholds import Limits

NEEDS = ("resident_pct", "processes")

STOPPED = ("T", "t")
"""States of a process that does nothing until it gets SIGCONT, or its debugger lets it (proc(5))."""


@live_device_rule("live.waits_for_host", needs=NEEDS)
def gpu_waits_for_host(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """The GPU waits for the host.

    Asks      For how much of the window has the device no kernel, while a process of the workload holds it, and what do
              that process's threads do?
    Decides   Together: no kernel is resident for at least `share` of the window, and a watched process holds memory of
              the device. A thread that has work for `core` of a core, be it on one or ready without one, is what it
              waits for, and its line is where the dumps of its stack end most often; where there is none, the threads
              wait themselves, and what the main thread sleeps in is told. Kernel-resident % is coarse: a kernel that
              does little counts as much as one that does much.
    Matters   A GPU without a kernel does nothing at all. No faster kernel helps.
    Do        Look at the line. Launch more with each call (larger batches, CUDA graphs), move work of the host into
              other threads or processes, or out of the loop.
    Refute    A timeline (`nsys profile --trace=cuda,osrt`) shows the device busy in that time.
    """
    subject = subject_of(run, device)
    idle = idle_ns(device)
    pids = holding_pids(device)
    if not pids or idle < limits["share"] * run.window_ns:
        yield Clear(subject)
        return
    found = holders(run, device)
    if not found:
        yield CannotTell(subject, why_unwatched(pids))
        return
    yield _finding(Waiting(run, device, found[0], limits))


def _finding(waiting: Waiting) -> Finding:
    device, hot, thread = waiting.device, waiting.hot_thread, waiting.thread
    line = waiting.line
    where = f" in {line}" if line else ""
    if hot is not None:
        name = thread_name(waiting.run, waiting.process, hot)
        title = f"{gpu(device)} waits for the host: thread {name} keeps a core busy{where}"
        doing = f"its thread {name} ({hot.tid}) {busy_words(hot)}{where}"
    elif waiting.process.last.state in STOPPED:
        title = f"{gpu(device)} waits for the host, which is stopped"
        stands = f"; it stands{where}" if where else ""
        doing = f"it is stopped, by a signal (SIGSTOP, Ctrl-Z) or a debugger{stands}"
    else:
        title = f"{gpu(device)} waits for the host, which waits itself{where}"
        sleeps = f", in {thread.last.waits_in} of the kernel" if thread is not None and thread.last.waits_in else ""
        doing = f"none of its threads keeps a core busy, and its main thread waits{where}{sleeps}"
    unseen = "" if line else f" Which line that is cannot be told: {HOW_TO_DUMP}."
    return Finding(
        title=title,
        claim=f"No kernel is resident for {units.time(waiting.idle_ns)} ({units.share(waiting.share)} of the window). "
        f"{process(waiting.process)} holds the device, and {doing}.{unseen}",
        subject=subject_of(waiting.run, device, process=waiting.process.pid),
        share=waiting.share,
        recoverable_ns=waiting.idle_ns,
        confidence="high" if line else "medium",
        counterfactual="If the host never kept it waiting, the same work would take that much less time.",
        evidence=list(waiting.evidence()),
        refute="A timeline (nsys profile --trace=cuda,osrt) shows the device busy in that time.",
        next=[
            f"Look at {line}." if line else f"Find the line: {HOW_TO_DUMP}.",
            "Record a timeline, which tells each gap by its cause: diag run --with nsys",
        ],
        extent=extent(waiting.spans),
    )

"""A device that waits for data, told from the stacks of the process that holds it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.live import Frame, ThreadStack
from diag.model.live_run import LiveProcess, LiveRun
from diag.rules import live
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.live import (
    HOW_TO_DUMP,
    Device,
    extent,
    gpu,
    live_device_rule,
    place,
    process_rows,
    stack_rows,
    subject_of,
)
from diag.rules.live_waiting import Waiting, holders, holding_pids, idle_ns, why_unwatched
from diag.rules.thresholds import Limits

LOADER = re.compile(
    r"torch/utils/data/|tensorflow/python/data/|nvidia/dali/|webdataset/|streaming/base/|(^|[/_.])data_?loader",
    re.IGNORECASE,
)
"""Files of the loaders of PyTorch, TensorFlow, DALI, WebDataset and MosaicML Streaming, and what calls itself one."""


@live_device_rule("live.data_loader", needs=("resident_pct", "processes"))
def data_loader_behind(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """The data loader does not keep up.

    Asks      While the device has no kernel, does the main thread of its process wait for, or load, the next batch?
    Decides   Three together: no kernel is resident for at least `share` of the window, a watched process holds the
              device, and in at least `found` of the dumps its main thread is inside a data loader. Then it says whose
              fault that is: without worker processes the main thread loads by itself; workers that have work for
              `core` of a core each are too few, or do too much; idle ones wait as well, for storage or for each other.
    Matters   Each step is as long as its batch takes to load, whatever the GPU could do.
    Do        Give the loader workers (num_workers, persistent_workers, prefetch_factor), make the work per sample
              cheaper or move it to the GPU, or read larger pieces from storage.
    Refute    With one batch that is used again and again the device is as idle.
    """
    subject = subject_of(run, device)
    found, pids = holders(run, device), holding_pids(device)
    if not pids or idle_ns(device) < limits["share"] * run.window_ns:
        yield Clear(subject)
        return
    if not found:
        yield CannotTell(subject, why_unwatched(pids))
        return
    for process in found:
        stacks = run.dumps_of_threads.get((process.pid, process.pid), ())
        about = subject_of(run, device, process=process.pid)
        inside = [stack for stack in stacks if _loader_frame(stack) is not None]
        if not stacks:
            yield CannotTell(about, HOW_TO_DUMP)
        elif len(inside) < limits["found"] * len(stacks):
            yield Clear(about)
        else:
            yield _finding(Waiting(run, device, process, limits), inside, len(stacks))


def _loader_frame(stack: ThreadStack) -> Frame | None:
    return next((frame for frame in stack.frames if LOADER.search(frame.file)), None)


def _caller(stack: ThreadStack) -> Frame:
    """The line that asked for the batch: the first above the loader that is not the loader's own."""
    at = max(at for at, frame in enumerate(stack.frames) if LOADER.search(frame.file))
    return stack.frames[min(at + 1, len(stack.frames) - 1)]


def _finding(waiting: Waiting, inside: Sequence[ThreadStack], n_dumps: int) -> Finding:
    run, process, pid = waiting.run, waiting.process, waiting.process.pid
    workers = _workers(run, waiting.device, process)
    story, advice = _story(workers, inside, waiting.limits["core"])
    line = place(_caller(inside[-1]))
    rows = stack_rows(run, pid, pid)
    return Finding(
        title=f"{gpu(waiting.device)} waits for the data loader: {story}",
        claim=f"No kernel is resident for {units.time(waiting.idle_ns)} ({units.share(waiting.share)} of the window), "
        f"and in {len(inside)} of {units.count(n_dumps, 'dump')} the main thread of {live.process(process)} is inside "
        f"a data loader, which {line} asked for a batch.",
        subject=subject_of(run, waiting.device, process=pid),
        share=waiting.share,
        recoverable_ns=waiting.idle_ns,
        confidence="high" if n_dumps > 1 else "medium",
        counterfactual="If every batch were there when it is asked for, the same work would take that much less time.",
        evidence=[
            *waiting.evidence(),
            Evidence("inside a loader", len(inside), "count", "dumps of the main thread with a loader's file", rows),
            Evidence("dumps", n_dumps, "count", "of the main thread", rows),
            Evidence("workers", len(workers), "count", "child processes that do not hold the device"),
            *(
                Evidence(
                    f"worker {each.pid}",
                    each.cores or 0.0,
                    "cores",
                    "CPU time / time",
                    process_rows(run, each.pid, "cpu_ns"),
                )
                for each in workers[:8]
            ),
            *_reading(workers),
        ],
        refute="With one batch that is used again and again the device is as idle.",
        next=[advice, "Time the loader alone: iterate over it without training."],
        extent=extent(waiting.spans),
    )


def _workers(run: LiveRun, device: Device, process: LiveProcess) -> list[LiveProcess]:
    holding = {each.pid for each in holders(run, device)}
    children = [each for each in run.processes if each.last.parent_pid == process.pid and each.pid not in holding]
    return [each for each in children if each.cores is not None and not each.is_over]


def _story(workers: Sequence[LiveProcess], inside: Sequence[ThreadStack], core: float) -> tuple[str, str]:
    """Who is slow, and the first thing to do about it."""
    if not workers:
        is_loading = any(stack.is_running for stack in inside)
        said = "the main thread loads by itself" if is_loading else "the main thread waits for it, without workers"
        return said, "Give the loader worker processes: num_workers > 0, with persistent_workers=True."
    busy = [each for each in workers if _wants(each) >= core]
    if 2 * len(busy) >= len(workers):
        said = (
            f"its {units.count(len(workers), 'worker')} keep{'s' if len(workers) == 1 else ''} up to a core busy each"
        )
        return said, "Make the work per sample cheaper or move it to the GPU, or start more workers if cores are free."
    reads = sum(each.rate("read_bytes") or 0.0 for each in workers)
    blocked = any(thread.last.state == "D" for each in workers for thread in each.threads)
    cause = ", for storage" if blocked or reads > 0 else ""
    said = f"its {units.count(len(workers), 'worker')} wait{'s' if len(workers) == 1 else ''} as well{cause}"
    return said, "Dump the stacks of a worker to see what it waits for; read larger pieces, or from a faster disk."


def _wants(worker: LiveProcess) -> float:
    """Cores that it keeps busy, or that its busiest thread would if it had one: workers may outnumber the cores."""
    busiest = next(iter(worker.threads), None)
    return max(worker.cores or 0.0, (busiest.wanted_cores or 0.0) if busiest else 0.0)


def _reading(workers: Sequence[LiveProcess]) -> Iterator[Evidence]:
    rates = [rate for each in workers if (rate := each.rate("read_bytes")) is not None]
    if rates:
        yield Evidence("read from storage", round(sum(rates)), "bytes/s", "sum over workers")

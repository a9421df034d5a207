"""Device memory that is held for processes that have ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.model import units
from diag.model.live_run import LiveRun
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.live import Device, device_rows, gpu, live_device_rule, subject_of
from diag.rules.live_waiting import why_unwatched
from diag.rules.thresholds import Limits

ENDED = ("zombie", "gone")


@live_device_rule("live.orphan_memory", needs=("processes",))
def memory_of_ended_processes(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """A process that has ended still holds device memory.

    Asks      Does the device hold memory for a process that is a zombie, or gone?
    Decides   Both together, for at least `share` of the window until its end: the driver lists the process with memory
              of the device, and the process is a zombie or no longer there. Of those that were watched the watch tells,
              of all others the machine, unless process numbers of the driver mean nothing where diag runs, as in a
              container. A process on its way out holds its memory for a moment.
    Matters   The memory is missing for whoever comes next, and no program will ever free it. Often a worker that was
              forked with the device open lives on, or the parent never asked for the exit status.
    Do        End the parent of a zombie, and what is left of the process group. If nothing is left and the memory
              stays, see who has the device open, and reset the GPU when nobody else uses it.
    Refute    `nvidia-smi --query-compute-apps=pid,used_memory --format=csv` no longer lists the process.
    """
    subject = subject_of(run, device)
    held = {each.pid: each for each in device.known("processes")[-1]}
    ended = {pid: since_ns for pid in held if (since_ns := _ended_ns(run, device, pid)) is not None}
    lasting = {pid: since for pid, since in ended.items() if run.window[1] - since >= limits["share"] * run.window_ns}
    if lasting:
        yield _finding(run, device, lasting)
        return
    watched = {each.pid for each in run.processes}
    unseen = sorted(pid for pid, each in held.items() if each.state is None and pid not in watched)
    yield CannotTell(subject, why_unwatched(unseen)) if unseen else Clear(subject)


def _finding(run: LiveRun, device: Device, lasting: Mapping[int, int]) -> Finding:
    sizes = {each.pid: each.memory_bytes for each in device.known("processes")[-1] if each.pid in lasting}
    known = [size for size in sizes.values() if size is not None]
    total = units.size(sum(known)) if known else "memory"
    pids = ", ".join(map(str, sorted(lasting)))
    rows = device_rows(run, device, "processes")
    longest_ns = run.window[1] - min(lasting.values())
    return Finding(
        title=f"{gpu(device)} holds {total} for {units.count(len(lasting), 'process')} that ended",
        claim=f"The driver still lists memory for {pids}, which had ended {units.time(longest_ns)} before the last "
        "look, or earlier.",
        subject=subject_of(run, device),
        level="warning",
        counterfactual=f"Nothing would be faster; {total} would be free for others.",
        evidence=[
            *(Evidence(f"held for {pid}", sizes[pid] or 0, "bytes", "by NVML", rows) for pid in sorted(sizes)),
            *(
                Evidence(
                    f"{pid} ended", run.window[1] - since, "ns", "last snapshot - the first that saw it ended", rows
                )
                for pid, since in sorted(lasting.items())
            ),
        ],
        refute="nvidia-smi --query-compute-apps=pid,used_memory --format=csv no longer lists it.",
        next=[
            f"See what is left of it: ps -o pid,ppid,stat,cmd -p {pids.replace(' ', '')}",
            f"See who has the device open: sudo fuser -v /dev/nvidia{device.last.index}",
        ],
    )


def _ended_ns(run: LiveRun, device: Device, pid: int) -> int | None:
    """Since when a process has been seen to have ended; None where it lives, or nobody can tell."""
    told = (_ended_by_watch(run, pid), _ended_by_driver(device, pid))
    return min((since for since in told if since is not None), default=None)


def _ended_by_watch(run: LiveRun, pid: int) -> int | None:
    of_pid = [each for each in run.processes if each.pid == pid]
    if not of_pid:
        return None
    latest = max(of_pid, key=lambda each: each.times_ns[-1])
    zombie = (t for t, reading in zip(latest.times_ns, latest.readings, strict=True) if reading.state in ("Z", "X"))
    gone = (t for t in run.times_ns if t > latest.times_ns[-1])
    return next(zombie, next(gone, None))


def _ended_by_driver(device: Device, pid: int) -> int | None:
    """From when on all readings list it as ended."""
    since = None
    for reading, (_, time_ns) in zip(reversed(device.readings), reversed(device.spans), strict=True):
        if reading.processes is None:
            continue
        states = [each.state for each in reading.processes if each.pid == pid]
        if not states or states[0] not in ENDED:
            break
        since = time_ns
    return since

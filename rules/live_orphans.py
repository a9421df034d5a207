"""Device memory that is held for processes that have ended."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live_run import LiveRun
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.live import Device, device_rows, gpu, live_device_rule, process_rows, subject_of
from diag.rules.thresholds import Limits


@live_device_rule("live.orphan_memory", needs=("processes",))
def memory_of_ended_processes(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """A process that has ended still holds device memory.

    Asks      Does the device hold memory for a process of the workload that is a zombie, or gone?
    Decides   Both together: the driver lists the process with memory of the device, and it was among those that were
              watched but is a zombie, or no longer there, for at least `share` of the window until its end. A process
              on its way out holds its memory for a moment. Processes of others are not judged: who they are is not
              known here.
    Matters   The memory is missing for whoever comes next, and no program will ever free it. Often a worker that was
              forked with the device open lives on, or the parent never asked for the exit status.
    Do        End the parent of a zombie, and what is left of the process group. If nothing is left and the memory
              stays, see who has the device open, and reset the GPU when nobody else uses it.
    Refute    `nvidia-smi --query-compute-apps=pid,used_memory --format=csv` no longer lists the process.
    """
    subject = subject_of(run, device)
    held = {each.pid: each.memory_bytes for each in device.last.processes or ()}
    ended = {pid: since_ns for pid in held if (since_ns := _ended_ns(run, pid)) is not None}
    lasting = {pid: since for pid, since in ended.items() if run.window[1] - since >= limits["share"] * run.window_ns}
    if not lasting:
        yield Clear(subject)
        return
    known = [size for pid in lasting if (size := held[pid]) is not None]
    total = units.size(sum(known)) if known else "memory"
    pids = ", ".join(map(str, sorted(lasting)))
    yield Finding(
        title=f"{gpu(device)} holds {total} for {units.count(len(lasting), 'process')} that ended",
        claim=f"Of the workload {pids} ended {units.time(run.window[1] - min(lasting.values()))} before the last look "
        "or earlier, and the driver still lists memory for it.",
        subject=subject,
        level="warning",
        counterfactual=f"Nothing would be faster; {total} would be free for others.",
        evidence=[
            *(
                Evidence(f"held for {pid}", held[pid] or 0, "bytes", "by NVML", device_rows(run, device, "processes"))
                for pid in sorted(lasting)
            ),
            *(
                Evidence(
                    f"{pid} ended",
                    run.window[1] - lasting[pid],
                    "ns",
                    "last snapshot - the first one without it, or with its state Z",
                    process_rows(run, pid, "state"),
                )
                for pid in sorted(lasting)
            ),
        ],
        refute="nvidia-smi --query-compute-apps=pid,used_memory --format=csv no longer lists it.",
        next=[
            f"See what is left of it: ps -o pid,ppid,stat,cmd -p {pids.replace(' ', '')}",
            f"See who has the device open: sudo fuser -v /dev/nvidia{device.last.index}",
        ],
    )


def _ended_ns(run: LiveRun, pid: int) -> int | None:
    """When a watched process was first seen to have ended; None where it lives, or was never watched."""
    of_pid = [each for each in run.processes if each.pid == pid]
    if not of_pid:
        return None
    latest = max(of_pid, key=lambda each: each.times_ns[-1])
    zombie = (t for t, reading in zip(latest.times_ns, latest.readings, strict=True) if reading.state in ("Z", "X"))
    gone = (t for t in run.times_ns if t > latest.times_ns[-1])
    return next(zombie, next(gone, None))

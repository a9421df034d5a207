"""Synchronisation that lets the device run dry."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.rules import activities
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace


@device_rule("sync.drain", needs=("api",))
def drained_by_sync(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Synchronisation drains the device.

    Asks      How long does the device idle while the launching thread is still inside a synchronising call?
    Decides   The part of the host-late time in which the launching thread is in a call that waits for the device
              (cuda...Synchronize, cudaMemcpy without Async, and with it where the copy reads or writes pageable memory:
              CUDA Runtime API, "API synchronization behavior"; copies to the device of up to 64 KB do not wait). A
              synchronisation explains a gap only up to its return. Fires at `share` of the window.
    Matters   The host learns late that the device is done and can launch only then: the queue is empty meanwhile.
    Do        Remove the synchronisation (`.item()`, `.cpu()`, `print(tensor)`, timers), or ask later: launch the next
              step before reading the result of this one; use events instead of device-wide synchronisation.
    Refute    Remove the calls for one run: if the device idles as long, something else kept the host.
    """
    account = trace.idle_of(device)
    drained = Intervals.empty()
    names: dict[str, int] = {}
    for thread_id, late in account.host_late_of.items():
        thread = trace.threads[thread_id]
        waiting = late & thread.synchronising
        drained = drained | waiting
        for name, ns in activities.longest_cuda_calls(trace.case, thread, waiting):
            names[name] = names.get(name, 0) + ns
    share = device.share(drained)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    top = max(names, key=lambda name: names[name])
    yield Finding(
        title=f"Synchronisation drains the device ({top})",
        claim=f"For {units.time(drained.measure_ns)} ({units.share(share)} of the window) the device had run dry while "
        f"the launching thread was still inside {top}{' and other synchronising calls' if len(names) > 1 else ''}.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=drained.measure_ns,
        counterfactual=f"Launching ahead of the synchronisation would win at most {units.time(drained.measure_ns)}.",
        evidence=[
            Evidence(f"idle inside {name}", ns, "ns", "host-late time inside this call")
            for name, ns in sorted(names.items(), key=lambda item: -item[1])
        ],
        refute="Remove the calls for one run: if the device idles as long, something else kept the host.",
        next=[
            "Find the callers (`.item()`, `.cpu()`, `print` of a tensor, timers) and drop or postpone them.",
            "Launch the next step before waiting for the result of this one.",
        ],
        extent=drained,
    )

"""A device that looks busy and does little, as a kernel does that waits for other ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.live import GpuReading
from diag.model.live_run import LiveRun
from diag.model.live_series import Told
from diag.model.pcie import link_bytes_per_s
from diag.rules.finding import Answer, Confidence, Evidence, Finding
from diag.rules.live import (
    Device,
    device_rows,
    extent,
    gpu,
    is_busy,
    live_device_rule,
    not_held,
    subject_of,
    unreadable,
)
from diag.rules.live_waiting import holders
from diag.rules.thresholds import Limits

NEEDS = ("resident_pct", "power_w", "power_limit_w", "memory_active_pct")


@live_device_rule("live.busy_wait", needs=NEEDS)
def busy_waiting(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """A kernel is resident all the time, and the GPU does little: it waits in a collective.

    Asks      Is the GPU full of work by kernel-resident %, and idle by everything else?
    Decides   All together, in the same readings, for at least `share` of the window: kernels are resident for `busy` of
              the time or more; power stays below `power` of its limit; device memory is active for less than `memory`
              of the time; PCIe, where it was read, carries less than `link` of what the link can; and SM activity
              (GPM), where it was read, is below `sm`. A kernel of NCCL polls on a few SMs until the last rank has
              arrived. Tiny kernels in a row look alike: only SM activity, or a job of several ranks, tells the two
              apart, and where neither is known the confidence is low.
    Matters   The job is as fast as its slowest rank. GPUs that wait show 100 %, so that nobody looks for it.
    Do        Find the rank that does not wait: another GPU of the job with less residency or more power. Compare its
              host, its data and its clocks.
    Refute    A timeline of this rank (`nsys profile --trace=cuda,nvtx`) shows kernels other than NCCL's in that time,
              or NCCL moving data all along.
    """
    subject = subject_of(run, device)
    held = _waiting(device, limits)
    if held.share < limits["share"]:
        yield not_held(subject, held)
        return
    sm_active = device.mean("sm_active_pct", held.spans)
    processes = holders(run, device)
    ranks = max((each.last.world_size or 1 for each in processes), default=1)
    others = [other for other in run.devices if other is not device and _waiting(other, limits).share < limits["share"]]
    yield Finding(
        title=f"{gpu(device)} looks busy and does little: "
        f"{'it waits in a collective' if ranks > 1 else 'a kernel waits, or tiny kernels follow each other'}",
        claim=f"For {units.time(held.held_ns)} ({units.share(held.share)} of the window) a kernel is resident nearly "
        f"all the time, while power, memory and PCIe are nearly idle{_of_ranks(ranks)}.{_untold_sm(device)}",
        subject=subject,
        share=held.share,
        recoverable_ns=held.held_ns,
        confidence=_confidence(ranks, is_sm_known=sm_active is not None),
        counterfactual="If no rank had to wait for another one, the same work would take that much less time.",
        evidence=list(_evidence(run, device, held, ranks)),
        refute="A timeline of this rank shows other kernels than NCCL's in that time.",
        next=[
            *_suspects(others),
            "Dump the stacks of all ranks: the one that is not in a collective holds up the others.",
        ],
        extent=extent(held.spans),
    )


def _confidence(ranks: int, *, is_sm_known: bool) -> Confidence:
    """Low where neither tells a kernel that waits from tiny ones."""
    signs: Sequence[Confidence] = ("low", "medium", "high")
    return signs[(ranks > 1) + is_sm_known]


def _waiting(device: Device, limits: Limits) -> Told:
    """Of each device it is asked once for itself, and once for each other one."""
    return device.when(lambda reading: _is_waiting(reading, limits), key=("live.busy_wait", *sorted(limits.items())))


def _is_waiting(reading: GpuReading, limits: Limits) -> bool | None:
    busy = is_busy(reading, limits)
    if busy is None or reading.power_w is None or not reading.power_limit_w or reading.memory_active_pct is None:
        return None
    carried, capacity = (reading.pcie_rx_bytes_per_s, reading.pcie_tx_bytes_per_s), _capacity(reading)
    is_link_idle = capacity is None or all(each is None or each < limits["link"] * capacity for each in carried)
    return (
        busy
        and reading.power_w < limits["power"] * reading.power_limit_w
        and reading.memory_active_pct < 100 * limits["memory"]
        and is_link_idle
        and (reading.sm_active_pct is None or reading.sm_active_pct < 100 * limits["sm"])
    )


def _capacity(reading: GpuReading) -> float | None:
    if reading.pcie_generation is None or reading.pcie_width is None:
        return None
    return link_bytes_per_s(reading.pcie_generation, reading.pcie_width)


def _of_ranks(ranks: int) -> str:
    return f", in a job of {ranks} ranks" if ranks > 1 else ""


def _untold_sm(device: Device) -> str:
    because = unreadable(device, ["sm_active_pct"])
    return "" if because is None else f" SM activity would tell a kernel that waits from small ones: {because}."


def _suspects(others: Sequence[Device]) -> Iterator[str]:
    if others:
        names = ", ".join(gpu(other) for other in others[:4])
        yield f"Look at {names}: of those that were watched {'it does' if len(others) == 1 else 'they do'} not wait."


def _evidence(run: LiveRun, device: Device, held: Told, ranks: int) -> Iterator[Evidence]:
    columns = (*NEEDS, "sm_active_pct", "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s")
    sql = device_rows(run, device, *columns)
    yield Evidence(
        "looks busy, does little", held.held_ns, "ns", "readings with all signs, each for the time before", sql
    )
    figures = (
        ("resident_pct", "kernel resident", "%"),
        ("memory_active_pct", "memory active", "%"),
        ("sm_active_pct", "SM active", "%"),
        ("power_w", "power", "W"),
        ("power_limit_w", "power limit", "W"),
    )
    for name, label, unit in figures:
        if (mean := device.mean(name, held.spans)) is not None:
            yield Evidence(label, mean, unit, "mean over that time", sql)
    for name, label in (("pcie_rx_bytes_per_s", "PCIe into the GPU"), ("pcie_tx_bytes_per_s", "PCIe out of it")):
        if (mean := device.mean(name, held.spans)) is not None:
            yield Evidence(label, round(mean), "bytes/s", "mean over that time", sql)
    yield Evidence(
        "ranks of the job", ranks, "count", "WORLD_SIZE of the processes that hold it; 1: not known to be more"
    )

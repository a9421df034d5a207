"""How much of the link between host and device its copies reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import hardware, units
from diag.model.hardware import Link
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals, union_of_all
from diag.timeline.link_copies import LARGE_BYTES, LinkCopies, copies_by_direction
from diag.timeline.trace import Trace


@device_rule("transfer.link", needs=("memory_kind",))
def slow_link(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Large copies stay far below what the link carries.

    Asks      Do copies that nothing should slow, large ones of pinned memory, use the link between host and device?
    Decides   rate = bytes / union of the copies of at least 1 MiB between the device and pinned memory, per direction;
              share of the link = rate / rate of the product's link in one direction (its datasheet). Fires when a
              direction stays below `link_share` of it, and its copies that no kernel hides take `share` of the window.
              If they are faster than that link, the machine has another one and nothing is said. It is clear where all
              copies over the link take less than `share`.
    Matters   Such copies wait for nothing in the program: a slot, a switch, a socket or a neighbour slows them.
    Do        See what the link was trained to, and where the memory lies: bind the process to the device's NUMA node;
              give devices that copy at once links of their own.
    Refute    A bandwidth test alone on the machine (nvbandwidth) reaches no more: then the machine is like that.
    """
    if device.share(device.exposed_link_copies) < limits["share"]:
        yield Clear(subject_of(device))
        return
    if hardware.is_integrated(device.hardware):
        yield CannotTell(subject_of(device), _NO_LINK.format(name=device.hardware))
        return
    link = hardware.host_link(device.hardware)
    if link is None:
        yield CannotTell(subject_of(device), _UNKNOWN_LINK.format(name=device.hardware or "this device"))
        return
    copies = copies_by_direction(device)
    judged = [use for of in copies if (use := _use_of(of.pinned.large, copies)) is not None]
    if not judged:
        yield CannotTell(subject_of(device), _NOTHING_LARGE)
        return
    if (fastest := max(use.bytes_per_s for use in judged)) > link.bytes_per_s:
        carried = units.size(link.bytes_per_s)
        faster = _ANOTHER_LINK.format(rate=units.size(fastest), name=device.hardware, carried=carried)
        yield CannotTell(subject_of(device), faster)
        return
    slow = [use for use in judged if use.bytes_per_s < limits["link_share"] * link.bytes_per_s]
    worst = max(slow, key=lambda use: use.exposed.measure_ns, default=None)
    if worst is None or device.share(worst.exposed) < limits["share"]:
        yield Clear(subject_of(device))
        return
    yield _finding(trace, device, link, judged, worst)


def _finding(trace: Trace, device: DeviceTimeline, link: Link, judged: Sequence[_Use], worst: _Use) -> Finding:
    """`worst`: of those directions that were judged, the slow one that costs most."""
    others = _copying_elsewhere(trace, device)
    crowded = (worst.time & others).measure_ns / worst.time.measure_ns
    won_ns = min(worst.exposed.measure_ns, int(worst.time.measure_ns - worst.bytes * 1e9 / link.bytes_per_s))
    return Finding(
        title=f"Copies {worst.name} reach {units.share(worst.bytes_per_s / link.bytes_per_s)} of the link",
        claim=f"{units.count(worst.count, 'copy')} of pinned memory {worst.name} (median "
        f"{units.size(worst.median_bytes)}) run at {units.size(worst.bytes_per_s)}/s; the link of {device.hardware} "
        f"({link.name}) carries {units.size(link.bytes_per_s)}/s. No kernel hides "
        f"{units.time(worst.exposed.measure_ns)} of them ({units.share(device.share(worst.exposed))} of the window).",
        subject=subject_of(device),
        share=device.share(worst.exposed),
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"At the full rate of the link the copies would take at most {units.time(won_ns)} less; no copy "
        "reaches all of it.",
        evidence=[
            *(evidence for use in judged for evidence in _evidence(device, use, link)),
            Evidence("while other devices or processes copy", crowded, "share", "of the union of the slow copies"),
        ],
        refute="A bandwidth test alone on the machine (nvbandwidth) reaches no more: then the machine is like that.",
        next=[
            *([_CROWDED.format(share=units.share(crowded))] if crowded >= 0.5 else []),
            "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv while it copies: a link "
            "trained to fewer lanes or an older generation carries less.",
            "nvidia-smi topo -m, then bind the process to the device's NUMA node (numactl --cpunodebind --membind).",
        ],
        extent=worst.exposed,
    )


@dataclass(frozen=True, eq=False)
class _Use:
    """Large copies of pinned memory in one direction."""

    name: str
    count: int
    bytes: int
    median_bytes: int
    bytes_per_s: float
    time: Intervals
    exposed: Intervals  # while no kernel runs
    both_ways: Intervals  # while a copy runs the other way


def _use_of(copies: LinkCopies, all_copies: Sequence[LinkCopies]) -> _Use | None:
    rate, time = copies.bytes_per_s, copies.time
    if rate is None:
        return None
    return _Use(
        name=copies.direction,
        count=len(copies),
        bytes=copies.bytes,
        median_bytes=copies.median_bytes,
        bytes_per_s=rate,
        time=time,
        exposed=time - copies.device.kernel_time,
        both_ways=time & union_of_all(other.time for other in all_copies if other.direction != copies.direction),
    )


def _evidence(device: DeviceTimeline, use: _Use, link: Link) -> Iterator[Evidence]:
    rows = queries.operations(device, _COLUMNS, "kind = 'copy'", f"bytes >= {LARGE_BYTES:d}")
    formula = f"rate / {units.size(link.bytes_per_s)}/s, {link.name} of {device.hardware}, in one direction"
    yield Evidence(
        f"rate {use.name}", use.bytes_per_s, "bytes/s", "bytes / union of large copies of pinned memory", rows
    )
    yield Evidence(f"share of the link {use.name}", use.bytes_per_s / link.bytes_per_s, "share", formula)
    yield Evidence(f"both ways at once, {use.name}", use.both_ways.measure_ns, "ns", "overlap with the other direction")


def _copying_elsewhere(trace: Trace, device: DeviceTimeline) -> Intervals:
    return union_of_all(other.link_copy_time for other in trace.devices if other is not device)


_UNKNOWN_LINK = (
    "the width and speed of the link of {name} are not in the trace (nvidia-smi "
    "--query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv)"
)
_NO_LINK = "{name} shares its memory with the host, no link lies between them"
_NOTHING_LARGE = "no copy of 1 MiB or more is between the device and pinned memory"
_ANOTHER_LINK = "{rate}/s is more than the {carried}/s of {name}: it has another link here"
_CROWDED = (
    "During {share} of these copies other devices or processes copy as well: see which devices share a switch "
    "(nvidia-smi topo -m), and let them copy in turns."
)
_COLUMNS = "copy_kind, src_memory, dst_memory, stream, bytes, start_ns, end_ns"

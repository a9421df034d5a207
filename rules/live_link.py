"""The PCIe link of a device while it works."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live import GpuReading
from diag.model.live_run import LiveRun
from diag.model.pcie import link_bytes_per_s
from diag.rules.finding import Answer, CannotTell, Evidence, Finding
from diag.rules.live import Device, device_rows, extent, gpu, is_busy, live_device_rule, not_held, subject_of
from diag.rules.thresholds import Limits

NEEDS = ("resident_pct", "pcie_generation", "pcie_generation_max", "pcie_width", "pcie_width_max")


@live_device_rule("live.pcie_link", needs=NEEDS)
def link_below_its_best(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """The PCIe link is slower than GPU and slot allow, while the GPU works.

    Asks      While kernels are resident, has the link fewer lanes or a lower generation than it could have?
    Decides   Both together: kernels are resident for `busy` of the time or more, and width or generation is below what
              this GPU in this slot can do, for at least `share` of that busy time. An idle GPU powers its link down,
              and that is harmless: only busy time counts.
    Matters   Copies between host and device, and between GPUs without NVLink, take longer in proportion. Fewer lanes
              than usual mostly mean a card that is not seated well, a bad riser or dust.
    Do        Compare it with its neighbours: `nvidia-smi
              --query-gpu=index,pcie.link.gen.current,pcie.link.width.current --format=csv`. Reseat the card or the
              riser; look for a lower setting in the firmware.
    Refute    During a large copy of pinned memory the link shows its full width and generation.
    """
    subject = subject_of(run, device)
    busy = device.when(lambda reading: is_busy(reading, limits))
    if not busy.spans:
        yield CannotTell(subject, "kernels were never resident for long enough, and an idle GPU powers its link down")
        return
    degraded = device.when(lambda reading: _is_degraded(reading, limits))
    if degraded.held_ns < limits["share"] * busy.held_ns:
        yield not_held(subject, degraded)
        return
    seen = next(reading for reading in reversed(device.readings) if _is_degraded(reading, limits))
    is_, could = (seen.pcie_generation, seen.pcie_width), (seen.pcie_generation_max, seen.pcie_width_max)
    sql = device_rows(run, device, *NEEDS, "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s")
    evidence = [
        Evidence("busy", busy.held_ns, "ns", "snapshots with resident kernels, each for the time before it", sql),
        Evidence("busy: link below its best", degraded.held_ns, "ns", "of that, with fewer lanes or slower ones", sql),
        *(_capacity("link now", *is_, sql)),
        *(_capacity("link at its best", *could, sql)),
    ]
    for name, label in (("pcie_rx_bytes_per_s", "into the GPU"), ("pcie_tx_bytes_per_s", "out of the GPU")):
        if (mean := device.mean(name, degraded.spans)) is not None:
            evidence.append(Evidence(label, round(mean), "bytes/s", "mean over that time", sql))
    yield Finding(
        title=f"{gpu(device)} has a PCIe {is_[0]}.0 x{is_[1]} link where {could[0]}.0 x{could[1]} is possible",
        claim=f"For {units.time(degraded.held_ns)} of the {units.time(busy.held_ns)} in which kernels were resident "
        "its link was below what GPU and slot can do.",
        subject=subject,
        level="warning",
        counterfactual="Copies between host and device would take less time in proportion, as far as they are what is "
        "waited for.",
        evidence=evidence,
        refute="During a large copy of pinned memory the link shows its full width and generation.",
        next=[
            "Compare with the other GPUs: nvidia-smi --query-gpu=index,pcie.link.gen.current,pcie.link.width.current "
            "--format=csv",
            "See whether copies matter here at all: record a timeline (diag run --with nsys), and see transfer.bound.",
        ],
        extent=extent(degraded.spans),
    )


def _is_degraded(reading: GpuReading, limits: Limits) -> bool | None:
    link = (reading.pcie_generation, reading.pcie_generation_max, reading.pcie_width, reading.pcie_width_max)
    busy = is_busy(reading, limits)
    if busy is None or None in link:
        return None
    generation, best_generation, width, best_width = (value or 0 for value in link)
    return busy and (generation < best_generation or width < best_width)


def _capacity(label: str, generation: int | None, width: int | None, sql: str | None) -> Iterator[Evidence]:
    per_s = link_bytes_per_s(generation or 0, width or 0)
    if per_s is not None:
        yield Evidence(label, round(per_s), "bytes/s", "lanes x rate of a lane, in one direction", sql)

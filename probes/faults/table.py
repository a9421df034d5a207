"""All faults of the host and of the timeline, by name."""

from __future__ import annotations

from collections.abc import Mapping

from diag.model.near import named
from diag.probes.faults import (
    allocation,
    item_in_loop,
    lock_contention,
    no_overlap,
    one_core,
    pageable_copies,
    recompilation,
    serial_streams,
    sleep_in_loop,
    slow_loader,
    sync_every_step,
    text_formatting,
    tiny_kernels,
)
from diag.probes.faults.fault import Fault

FAULTS: Mapping[str, Fault] = {
    module.FAULT.name: module.FAULT
    for module in (
        pageable_copies,
        sync_every_step,
        item_in_loop,
        sleep_in_loop,
        slow_loader,
        tiny_kernels,
        serial_streams,
        allocation,
        recompilation,
        no_overlap,
        text_formatting,
        lock_contention,
        one_core,
    )
}


def find(name: str) -> Fault:
    """Raises UsageError for a name that no fault has."""
    return named(name, FAULTS, "fault", "python -m diag.probes.faults --list")

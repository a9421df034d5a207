"""All hang faults, by name."""

from __future__ import annotations

from collections.abc import Mapping

from diag.model.near import named
from diag.probes.faults.hang import (
    dies,
    holds_gil,
    mismatched_group,
    recv_cycle,
    recv_without_send,
    skipped,
    sleeps,
    swapped_order,
    wrong_shape,
    wrong_shape_aborts,
    wrong_world_size,
)
from diag.probes.faults.hang.fault import HangFault

FAULTS: Mapping[str, HangFault] = {
    module.FAULT.name: module.FAULT
    for module in (
        swapped_order,
        wrong_shape,
        wrong_shape_aborts,
        skipped,
        dies,
        sleeps,
        holds_gil,
        recv_without_send,
        recv_cycle,
        mismatched_group,
        wrong_world_size,
    )
}


def find(name: str) -> HangFault:
    """Raises UsageError for a name that no fault has."""
    return named(name, FAULTS, "hang fault", "python -m diag.probes.faults.hang")

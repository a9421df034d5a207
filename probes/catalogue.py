"""The probes that there are, and those that a user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diag.errors import UsageError
from diag.model.near import did_you_mean, near
from diag.probes import (
    copy,
    data_pipeline,
    decode_step,
    flash_attention,
    gemm,
    norm,
    reduce,
    softmax,
    training_step,
    vector_add,
)
from diag.probes.collective import catalogue as collective
from diag.probes.probe import Probe

ALL = "all"
PROBES: Mapping[str, Probe] = {
    module.PROBE.name: module.PROBE
    for module in (
        vector_add, reduce, gemm, softmax, norm, flash_attention, decode_step, copy, data_pipeline, training_step,
    )
}  # fmt: skip
"""From the simplest to whole steps."""


def named(names: Sequence[str]) -> Sequence[Probe]:
    """Each once, in the order in which they were named; all of them for 'all'. Raises UsageError."""
    if unknown := [name for name in names if name not in (ALL, *PROBES)]:
        hint = did_you_mean(near(unknown[0], (*PROBES, *collective.PROBES)))
        raise UsageError(f"No probe is called {unknown[0]!r}.{hint} List them with: diag probe list")
    wanted = [each for name in names for each in (PROBES if name == ALL else (name,))]
    return [PROBES[name] for name in dict.fromkeys(wanted)]

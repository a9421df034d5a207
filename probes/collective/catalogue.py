"""The probes of several ranks, and those that a user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diag.errors import UsageError
from diag.model.near import did_you_mean, near
from diag.probes.collective import data_parallel, pipeline, primitives, sharded, tensor_parallel, two_phase
from diag.probes.collective.collective_probe import CollectiveProbe

ALL = "collectives"
PATTERNS = [each.PROBE for each in (two_phase, data_parallel, tensor_parallel, pipeline, sharded)]
PROBES: Mapping[str, CollectiveProbe] = {each.name: each for each in (*primitives.PROBES, *PATTERNS)}
"""From single calls to ways of spreading a model."""


def named(names: Sequence[str]) -> Sequence[CollectiveProbe]:
    """Each once, in the order in which they were named; all of them for 'collectives'. Raises UsageError."""
    if unknown := [name for name in names if name not in (ALL, *PROBES)]:
        hint = did_you_mean(near(unknown[0], PROBES))
        raise UsageError(f"No probe of several ranks is called {unknown[0]!r}.{hint} List them with: diag probe list")
    wanted = [each for name in names for each in (PROBES if name == ALL else (name,))]
    return [PROBES[name] for name in dict.fromkeys(wanted)]

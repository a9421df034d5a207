"""What keeps warps from issuing: reasons and classes of stalls, as `data/stalls.toml` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from diag.model.tables import table


@dataclass(frozen=True)
class StallClass:
    """Reasons that have the same remedies."""

    key: str
    title: str
    waits_for: str
    saturates: bool  # whether a stall at the limit of `resource` is only the limit's sign
    do: Sequence[str]
    resource: str | None = None  # quantity that tells how much of it is used
    beside: Sequence[str] = ()  # quantities that say more of it

    @property
    def evidence(self) -> list[str]:
        """Quantities that tell of what it waits for."""
        return [*([self.resource] if self.resource else []), *self.beside]


@dataclass(frozen=True)
class StallReason:
    key: str
    stall_class: StallClass
    waits_for: str
    spellings: tuple[str, ...]  # in names of metrics: counters and sampler do not always agree


@dataclass(frozen=True)
class LatencyShare:
    """How counters give a reason's share of a warp's time: a metric, of another one or of a number."""

    reason: str  # with '{reason}' for its name
    whole: str | int


@cache
def classes() -> Mapping[str, StallClass]:
    return {key: StallClass(key=key, **entry) for key, entry in table("stalls.toml")["classes"].items()}


@cache
def reasons() -> Mapping[str, StallReason]:
    """By the names that the counters use. Selected and not selected warps could issue: they are no stalls."""
    return {
        key: StallReason(
            key=key,
            stall_class=classes()[entry["class"]],
            waits_for=entry["waits_for"],
            spellings=(key, entry["also"]) if "also" in entry else (key,),
        )
        for key, entry in table("stalls.toml")["reasons"].items()
    }


@cache
def reason_of(spelling: str) -> StallReason | None:
    """
    >>> reason_of("no_instructions").key, reason_of("not_selected")
    ('no_instruction', None)
    """
    return next((reason for reason in reasons().values() if spelling in reason.spellings), None)


@cache
def ready_states() -> tuple[str, ...]:
    """States of warps that could issue."""
    return tuple(table("stalls.toml")["ready"])


@cache
def latency_shares() -> Sequence[LatencyShare]:
    return [LatencyShare(**entry) for entry in table("stalls.toml")["latency"]]

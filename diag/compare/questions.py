"""How a condition of a comparison is asked: what two sides say of one thing, and whether that is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from diag.compare.facts import Facts, Variants, Weights
from diag.model import units

Sameness = Literal["same", "differs", "unknown"]

Domain = Literal["run", "device", "profile"]
"""Figures that a condition can decide: times of the whole run and its host; times of GPU work; launches that Nsight
Compute measured."""

EVERYTHING: frozenset[Domain] = frozenset({"run", "device", "profile"})
NOTHING: frozenset[Domain] = frozenset()
"""What is told but decides nothing."""

MOSTLY, HARDLY = 0.95, 0.1
"""From this part of its work in common with another a run is of the same program, and below the other of another one.
In between it may be the same program, changed: a compiler leaves few kernels as they were. Own choice.
"""

NEARLY_ALL, CLEARLY_LESS = 0.98, 0.9
"""Of what comes with sizes, the part that must come with the same ones, and below which sizes differ; own choice."""


@dataclass(frozen=True)
class Evidence:
    """One thing that tells whether a condition is the same."""

    what: str
    answer: Sameness
    said: str  # what is known of both sides
    decides: frozenset[Domain]
    is_needed: bool = False  # unknown, it leaves the condition unknown
    is_undecided: bool = False  # unknown although both sides are known: they have too little or too much in common
    is_usual: bool = False  # to be the same, and worth no word then

    @property
    def counts(self) -> bool:
        return bool(self.decides) or self.is_needed


Known = Sequence[Facts]
"""Of all recordings of one side."""

Question = Callable[[Known, Known], Evidence]


def equal(
    what: str,
    of: Callable[[Facts], Any],
    decides: frozenset[Domain],
    *,
    is_needed: bool = False,
    is_usual: bool = False,
) -> Question:
    """Whether all recordings of both sides say the same."""

    def ask(before: Known, after: Known) -> Evidence:
        there = [[of(facts) for facts in side] for side in (before, after)]
        said = both([shown(values) for values in there])
        if any(value is None for values in there for value in values):
            return Evidence(what, "unknown", said, decides, is_needed)
        is_same = len({value for values in there for value in values}) == 1
        return Evidence(what, "same" if is_same else "differs", said, decides, is_needed, is_usual=is_usual and is_same)

    return ask


def agree(what: str, of: Callable[[Facts], Mapping[str, str] | None], decides: frozenset[Domain]) -> Question:
    """Whether all recordings say the same of whatever all of them tell; what only some tell sets none apart."""

    def ask(before: Known, after: Known) -> Evidence:
        sides = [[of(facts) or {} for facts in side] for side in (before, after)]
        every = [told for side in sides for told in side]
        common = [name for name in every[0] if all(name in told for told in every)]
        said = both([shown([_listed(told, common or told) for told in side]) for side in sides])
        if not common:
            return Evidence(what, "unknown", said, decides)
        is_same = all(len({told[name] for told in every}) == 1 for name in common)
        return Evidence(what, "same" if is_same else "differs", said, decides)

    return ask


def _listed(told: Mapping[str, str], names: Iterable[str]) -> str | None:
    return "; ".join(f"{name} {told[name]}" for name in names) or None


def near(
    what: str,
    of: Callable[[Facts], float | None],
    decides: frozenset[Domain],
    is_near: Callable[[float, float], bool],
    show: Callable[[float], str],
) -> Question:
    """Whether a number of the first recordings is nearly the same."""

    def ask(before: Known, after: Known) -> Evidence:
        a, b = of(before[0]), of(after[0])
        said = both([None if value is None else show(value) for value in (a, b)])
        if a is None or b is None:
            return Evidence(what, "unknown", said, decides)
        return Evidence(what, "same" if is_near(a, b) else "differs", said, decides)

    return ask


def common(what: str, of: Callable[[Facts], Weights | None], unit: str) -> Question:
    """Whether most of each recording is of kinds that the first one has, too, and the other way round."""

    def ask(before: Known, after: Known) -> Evidence:
        known = [weights for facts in (*before, *after) if (weights := of(facts)) is not None]
        if len(known) < len(before) + len(after):
            return Evidence(what, "unknown", "not known of all", EVERYTHING)
        first, *others = known
        part = min(min(_part_known(first, other), _part_known(other, first)) for other in others)
        answer: Sameness = "same" if part >= MOSTLY else "differs" if part < HARDLY else "unknown"
        said = f"{units.share(part)} of {unit} in what both have"
        return Evidence(what, answer, said, EVERYTHING, is_undecided=answer == "unknown")

    return ask


def same_variants(what: str, of: Callable[[Facts], Variants | None], unit: str) -> Question:
    """Whether what the first recording and another both have comes in the same variants."""

    def ask(before: Known, after: Known) -> Evidence:
        known = [variants for facts in (*before, *after) if (variants := of(facts)) is not None]
        if len(known) < len(before) + len(after):
            return Evidence(what, "unknown", "not known of all", EVERYTHING)
        first, *others = known
        if not all(first.keys() & other.keys() for other in others):
            return Evidence(what, "unknown", f"no {unit} to compare", EVERYTHING)
        part = min(min(_part_alike(first, other), _part_alike(other, first)) for other in others)
        answer: Sameness = "same" if part >= NEARLY_ALL else "differs" if part < CLEARLY_LESS else "unknown"
        return Evidence(
            what, answer, f"{units.share(part)} of the {unit} that both have come with the same", EVERYTHING
        )

    return ask


def never(what: str, said: str) -> Question:
    """What no trace tells."""
    return lambda before, after: Evidence(what, "unknown", said, NOTHING, is_needed=True)  # noqa: ARG005


def _part_known(of: Weights, other: Weights) -> float:
    whole = sum(of.values())
    return sum(weight for kind, weight in of.items() if kind in other) / whole if whole else 1.0


def _part_alike(of: Variants, other: Variants) -> float:
    both = of.keys() & other.keys()
    whole = sum(sum(of[kind].values()) for kind in both)
    alike = sum(count for kind in both for variant, count in of[kind].items() if variant in other[kind])
    return alike / whole if whole else 1.0


def shown(values: Sequence[Any]) -> str | None:
    """The distinct values of one side; repeats that do not agree are all shown."""
    known = list(dict.fromkeys(str(value) for value in values if value is not None))
    return " / ".join(known) if known else None


def both(shown: Sequence[str | None]) -> str:
    before, after = ("not known" if each is None else each for each in shown)
    return before if before == after else f"{before} → {after}"

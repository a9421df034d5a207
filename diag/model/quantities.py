"""What the metrics of one launch say: named quantities, each a formula over metrics of Nsight Compute.

The formulas stand in `data/quantities/*.toml`, with their units, their sources and the section of ncu that collects
what they need. An entry has one formula or several, the best first, and the first whose metrics are all there counts;
one may be for a range of compute capabilities only. `@name` in a formula stands for another quantity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeGuard

from diag.model.formulas import DividedByZero, Name, Operation, Tree, names_in, parsed, spelt, value_of
from diag.model.hardware import ComputeCapability, parsed_capability
from diag.model.tables import files, table

Metrics = Mapping[str, Any]
"""Values by the names that ncu gives metrics; what is no number counts as not there."""

TOO_MUCH = 1 << 63

MOST_REMEMBERED = 1 << 14


@dataclass(frozen=True)
class Formula:
    text: str
    tree: Tree
    since: ComputeCapability = (0, 0)
    before: ComputeCapability = (1000, 0)
    is_for_unknown: bool = True  # False where other devices give the same metrics another meaning

    def holds_for(self, capability: ComputeCapability | None) -> bool:
        """An unknown device may be any: the metrics that are there decide, unless they do not tell devices apart."""
        return self.is_for_unknown if capability is None else self.since <= capability < self.before


@dataclass(frozen=True)
class Quantity:
    name: str
    unit: str
    means: str
    section: str  # of ncu, that collects what it needs
    source: str
    formulas: Sequence[Formula]


@dataclass(frozen=True)
class Measured:
    """The value of a quantity. `formula` is spelt out in metrics."""

    value: float
    unit: str
    formula: str
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """Why a quantity has no value: metrics that are not there, or a division by `zero`, a formula that is 0.

    `is_empty`: the report has the metrics, but no number for them; ncu could not measure what it was told to.
    """

    quantity: str
    metrics: tuple[str, ...]
    section: str
    zero: str | None = None
    is_empty: bool = False

    @property
    def because(self) -> str:
        if self.zero is not None:
            return f"{self.zero} is 0"
        if not self.metrics:
            return f"no formula of {self.quantity} is known for this compute capability"
        return together([self])


def together(missing: Sequence[Missing], most: int | None = None) -> str:
    """Why several quantities have no value, in one sentence that names `most` metrics, or all of them.

    >>> together([Missing("a", ("m.sum",), "SpeedOfLight"), Missing("b", ("n.sum",), "Occupancy")])
    'm.sum, n.sum were not collected (ncu --section SpeedOfLight --section Occupancy)'
    >>> together([Missing("a", ("m.sum", "n.sum", "o.sum"), "SpeedOfLight")], most=1)
    'm.sum and 2 more were not collected (ncu --section SpeedOfLight)'
    """
    uncollected = [each for each in missing if each.metrics]
    if not uncollected:
        return "; ".join(dict.fromkeys(each.because for each in missing))
    sentences = []
    for is_empty, why in ((False, "not collected"), (True, "not measured: the report holds no number")):
        of = [each for each in uncollected if each.is_empty == is_empty]
        metrics = tuple(dict.fromkeys(metric for each in of for metric in each.metrics))
        if metrics:
            were = "was" if len(metrics) == 1 else "were"
            sections = "" if is_empty else f" (ncu {_sections([each.section for each in of])})"
            rest = f" and {len(metrics) - most} more" if most is not None and len(metrics) > most else ""
            sentences.append(f"{', '.join(metrics[:most])}{rest} {were} {why}{sections}")
    return "; ".join(sentences)


def _sections(named: Sequence[str]) -> str:
    """Options of ncu that collect some sections; an entry may name several, with commas."""
    sections = dict.fromkeys(each.strip() for names in named for each in names.split(","))
    return " ".join(f"--section {each}" for each in sections)


def measure(name: str, metrics: Metrics, capability: ComputeCapability | None = None) -> Measured | Missing:
    """The value of a quantity for one launch on a device of this compute capability (None: not known).

    >>> measure("duration", {"gpu__time_duration.sum": 2400000})
    Measured(value=2400000.0, unit='ns', formula='gpu__time_duration.sum', metrics=('gpu__time_duration.sum',))
    """
    quantity = quantities()[name]
    measured = frozenset(metric for metric in _mentioned(name) if is_number(metrics.get(metric)))
    tree = _chosen(name, measured, capability)
    if tree is None:
        return Missing(name, (), quantity.section)
    used = names_in(tree)
    if missing := tuple(metric for metric in used if metric not in measured):
        is_empty = all(metric in metrics for metric in missing)
        return Missing(name, missing, quantity.section, is_empty=is_empty)
    try:
        return Measured(value_of(tree, metrics), quantity.unit, spelt(tree), used)
    except DividedByZero as error:
        return Missing(name, (), quantity.section, zero=error.denominator)


@cache
def _mentioned(name: str) -> frozenset[str]:
    """All metrics that any formula of the quantity reads, or of those that it refers to."""
    names = {each for formula in quantities()[name].formulas for each in names_in(formula.tree)}
    others = {each for each in names if each.startswith("@")}
    return frozenset(names - others).union(*(_mentioned(other[1:]) for other in others))


@lru_cache(MOST_REMEMBERED)
def _chosen(name: str, measured: frozenset[str], capability: ComputeCapability | None) -> Tree | None:
    """The first formula whose metrics are all `measured`, over metrics alone; without such, the first that applies.

    Launches of one report have the same metrics, and a report may hold a hundred thousand: what was found is kept.
    """
    formulas = [formula for formula in quantities()[name].formulas if formula.holds_for(capability)]
    trees = [_over_metrics(formula.tree, measured, capability) for formula in formulas]
    known = [tree for tree in trees if tree is not None]
    whole = (tree for tree in known if measured.issuperset(names_in(tree)))
    return next(whole, known[0] if known else None)


def _over_metrics(tree: Tree, measured: frozenset[str], capability: ComputeCapability | None) -> Tree | None:
    """The formula with that of each quantity in the place of its `@name`; None where one has none."""
    match tree:
        case Name(name) if name.startswith("@"):
            other = name[1:]
            return _chosen(other, measured & _mentioned(other), capability)
        case Operation(sign, left, right):
            before, after = (_over_metrics(side, measured, capability) for side in (left, right))
            return None if before is None or after is None else Operation(sign, before, after)
    return tree


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a metric has a value: not a text, not what a division by zero gives, and not less than nothing.

    Nor 2^63 or more, for a counter that ran below zero reads as a number near 2^64.
    """
    return isinstance(value, int | float) and 0 <= value < TOO_MUCH


# ---- the data files ------------------------------------------------------------------------------------------------


@cache
def quantities() -> Mapping[str, Quantity]:
    """All quantities by name. Raises ValueError for a formula that cannot be read and for a name used twice."""
    entries = [entry for file in files("quantities") for entry in table(file).items()]
    if twice := [name for name, count in Counter(name for name, _ in entries).items() if count > 1]:
        raise ValueError(f"two files have a quantity {', '.join(twice)}")
    return {name: _quantity(name, entry) for name, entry in entries}


def _quantity(name: str, entry: Mapping[str, Any]) -> Quantity:
    return Quantity(
        name=name,
        unit=entry["unit"],
        means=entry["means"],
        section=entry["section"],
        source=entry["source"],
        formulas=[_formula(each) for each in entry["formulas"]],
    )


def _formula(entry: str | Mapping[str, Any]) -> Formula:
    if isinstance(entry, str):
        return Formula(entry, parsed(entry))
    return Formula(
        entry["formula"],
        parsed(entry["formula"]),
        parsed_capability(entry.get("since", "0.0")),
        parsed_capability(entry.get("before", "1000.0")),
        entry.get("is_for_unknown", True),
    )

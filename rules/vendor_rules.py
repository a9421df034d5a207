"""NVIDIA's own rules, whose answers reports hold, beside ours that ask the same."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from diag.rules.finding import Answer
from diag.rules.launch_report import LaunchRow, VendorRule
from diag.rules.report import Report

Said = Literal["fault", "no fault", "error"]
Ours = Literal["fired", "clear", "cannot tell", "not asked"]


@dataclass(frozen=True)
class Pair:
    """What NVIDIA's rule and ours say of one launch."""

    launch: LaunchRow
    vendor: VendorRule
    said: Said
    rule: str | None  # ours; None: no rule of ours asks that
    ours: Ours

    @property
    def is_disagreement(self) -> bool:
        """One sees a fault where the other has looked and sees none."""
        return (self.said, self.ours) in (("fault", "clear"), ("no fault", "fired"))


def pairs(report: Report) -> Iterator[Pair]:
    """Every stored answer of NVIDIA's rules, with ours about the same kernel in the same configuration."""
    answered = _answers(report)
    for launch in report.launches:
        for vendor in _gravest(launch.vendor_rules):
            for rule in counterparts(vendor.rule) or (None,):
                ours = answered.get((rule, launch.spoken_for_by), "not asked") if rule else "not asked"
                yield Pair(launch, vendor, said(vendor), rule, ours)


def _gravest(results: Sequence[VendorRule]) -> Iterator[VendorRule]:
    """Of the messages of one rule, of which there may be several, the first of the gravest kind."""
    by_rule: defaultdict[str, list[VendorRule]] = defaultdict(list)
    for result in results:
        by_rule[result.rule].append(result)
    for messages in by_rule.values():
        yield min(messages, key=lambda message: _GRAVITY.index(said(message)))


_GRAVITY: Sequence[Said] = ("fault", "no fault", "error")


def said(vendor: VendorRule) -> Said:
    """Its rules answer with a type; one that has nothing to say leaves no message."""
    if vendor.type == "error":
        return "error"
    return "fault" if vendor.type in ("optimization", "warning") else "no fault"


def counterparts(vendor_rule: str) -> Sequence[str]:
    """Ids of our rules that ask what one of NVIDIA's asks; empty where none does, or where its name is new."""
    return tuple(_table().get(vendor_rule, {}).get("ours", ()))


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(resources.files("diag.rules").joinpath("vendor_rules.toml").read_text("utf-8"))


def _answers(report: Report) -> Mapping[tuple[str, str], Ours]:
    """By rule and launch that speaks for the kernel; of several answers a finding counts most, *cannot tell* least."""
    told: tuple[tuple[Ours, Sequence[Answer]], ...] = (
        ("cannot tell", report.cannot_tell),
        ("clear", report.clear),
        ("fired", report.findings),
    )
    return {
        (answer.rule, answer.subject.launch): ours
        for ours, answers in told
        for answer in answers
        if answer.subject.launch is not None
    }


@dataclass(frozen=True)
class Summary:
    """One of NVIDIA's rules over all launches, and what ours answered."""

    name: str
    said: Said
    count: int
    speedup_pct: float | None  # the largest estimate
    rule: str | None
    ours: Mapping[Ours, int]


def summaries(report: Report) -> list[Summary]:
    """Faults first, those on most launches before others; without the answers that are no answers."""
    grouped: defaultdict[tuple[str, Said, str | None], list[Pair]] = defaultdict(list)
    for pair in pairs(report):
        if pair.said != "error":
            name = pair.vendor.name or pair.vendor.rule
            grouped[name, pair.said, pair.rule].append(pair)
    made = [_summary(name, said, rule, group) for (name, said, rule), group in grouped.items()]
    return sorted(made, key=lambda each: (each.said != "fault", -each.count, each.name))


def _summary(name: str, said: Said, rule: str | None, group: Sequence[Pair]) -> Summary:
    speedups = [pair.vendor.speedup_pct for pair in group if pair.vendor.speedup_pct is not None]
    ours: defaultdict[Ours, int] = defaultdict(int)
    for pair in group:
        ours[pair.ours] += 1
    return Summary(name, said, len(group), max(speedups, default=None), rule, dict(ours))

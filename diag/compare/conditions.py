"""Whether two runs may be compared: six conditions, each *same*, *differs* or *unknown*, with what tells so.

What differs stands in the way of those figures that it decides: a device of another kind of every time, another set of
captured events of the times of the host alone (docs/compare.md has the table).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.compare.facts import Facts, Weights
from diag.compare.questions import (
    EVERYTHING,
    NOTHING,
    Domain,
    Evidence,
    Known,
    Question,
    Sameness,
    agree,
    both,
    common,
    equal,
    near,
    never,
    same_variants,
    shown,
)
from diag.compare.recording import Side
from diag.model import units

ON_A_TIMELINE: frozenset[Domain] = frozenset({"run", "device"})
OF_THE_RUN: frozenset[Domain] = frozenset({"run"})
OF_A_PROFILE: frozenset[Domain] = frozenset({"profile"})

Name = Literal["model", "hardware", "lengths", "arrival", "configuration", "metric"]

TITLES: dict[Name, str] = {
    "model": "model and precision",
    "hardware": "hardware and topology",
    "lengths": "input and output lengths",
    "arrival": "arrival process",
    "configuration": "configuration and cache warmth",
    "metric": "metric and correctness",
}

MARGIN_OF_SHARES = 0.1
"""Startup and the profiler's cost, as shares of the window, differ from here on; own choice."""

MARGIN_OF_RATES = 0.05
"""Rates of arrival likewise, in proportion; own choice."""


@dataclass(frozen=True)
class Condition:
    name: Name
    evidence: Sequence[Evidence]
    is_allowed: bool = False  # to differ, by the user

    @property
    def answer(self) -> Sameness:
        deciding = [each for each in self.evidence if each.counts]
        answers = {each.answer for each in deciding}
        if "differs" in answers:
            return "differs"
        is_unknown = any(each.answer == "unknown" and each.is_needed for each in deciding)
        return "unknown" if is_unknown or "same" not in answers else "same"

    def stands_against(self, domain: Domain) -> list[Evidence]:
        """What differs and decides figures of this domain, unless the user allowed it."""
        if self.is_allowed:
            return []
        return [each for each in self.evidence if each.answer == "differs" and domain in each.decides]


def conditions_of(before: Side, after: Side, allowed: Collection[str] = ()) -> list[Condition]:
    """All six, in the order in which one would ask."""
    sides = [run.facts for run in before.runs], [run.facts for run in after.runs]
    of_loads = _ASKED_OF_LOADS if any(facts.n_loads for side in sides for facts in side) else {}
    return [
        Condition(name, [ask(*sides) for ask in (*questions, *of_loads.get(name, ()))], name in allowed)
        for name, questions in _ASKED.items()
    ]


def _links(before: Known, after: Known) -> Evidence:
    """Traces do not record how GPUs are linked. One GPU has no links to others; the same pieces are the same box."""
    numbers = {facts.n_gpus for facts in (*before, *after)}
    pieces = {facts.pieces for facts in (*before, *after)}
    if numbers <= {0, 1, None}:
        return Evidence("links between GPUs", "unknown", "there is one GPU at most", NOTHING)
    if len(pieces) == 1 and None not in pieces:
        return Evidence("links between GPUs", "same", "the very same GPUs", EVERYTHING)
    return Evidence("links between GPUs", "unknown", "not recorded", EVERYTHING, is_needed=True)


def _basis(before: Known, after: Known) -> Evidence:
    """Nsight Compute runs a kernel alone, under its own clocks and with caches flushed: not as the run had it."""
    if not any(facts.bases for facts in (*before, *after)):
        return Evidence("times", "unknown", "neither side tells any", NOTHING)
    sides = [shown([facts.bases and f"of a {facts.bases}" for facts in side]) for side in (before, after)]
    of_all = set.intersection(*(set((facts.bases or "").split(", ")) for facts in (*before, *after)))
    return Evidence("times", "same" if of_all - {""} else "differs", both(sides), EVERYTHING)


# ---- the six -------------------------------------------------------------------------------------------------------


def _ranges_alone(facts: Facts) -> Weights | None:
    """Of a run without kernels and operators; elsewhere ranges may have been added to look closer."""
    return None if facts.kernels or facts.operators else facts.ranges


def _word(is_so: bool | None) -> str | None:
    return None if is_so is None else "yes" if is_so else "no"


def _by_margin(a: float, b: float) -> bool:
    return abs(a - b) <= MARGIN_OF_SHARES


def _by_rate(a: float, b: float) -> bool:
    return abs(a - b) <= MARGIN_OF_RATES * max(a, b)


_ASKED: dict[Name, Sequence[Question]] = {
    "model": (
        common("kernels", lambda facts: facts.kernels, "their time"),
        common("operators", lambda facts: facts.operators, "their calls"),
        equal("precision of matrix kernels", lambda facts: facts.precision, EVERYTHING),
        equal("types of matrix operators", lambda facts: facts.operator_types, EVERYTHING),
        common("ranges", _ranges_alone, "their instances"),
    ),
    "hardware": (
        equal("GPUs", lambda facts: facts.gpus, EVERYTHING, is_needed=True),
        equal("number of GPUs", lambda facts: facts.n_gpus, EVERYTHING),
        agree("limits", lambda facts: facts.limits, EVERYTHING),
        equal("MIG instance", lambda facts: facts.mig, EVERYTHING, is_usual=True),
        _links,
        equal("ranks of the job", lambda facts: facts.world_size, EVERYTHING),
        equal("pieces (UUID)", lambda facts: facts.pieces, NOTHING),
        equal("host", lambda facts: facts.hosts, NOTHING),
    ),
    "lengths": (
        same_variants("shapes", lambda facts: facts.shapes, "operators' calls"),
        same_variants("grids", lambda facts: facts.grids, "launches with the same block"),
    ),
    "arrival": (
        near(
            "requests",
            lambda facts: facts.request_rate_per_s,
            OF_THE_RUN,
            _by_rate,
            lambda rate: f"{rate:,.0f} per second" if rate >= 1000 else f"{rate:.3g} per second",
        ),
    ),
    "configuration": (
        equal("tool", lambda facts: facts.tools, OF_THE_RUN),
        equal("what was captured", lambda facts: facts.captured, OF_THE_RUN),
        equal("tracing of CUDA graphs", lambda facts: facts.graph_mode, ON_A_TIMELINE),
        equal("part of the trace", lambda facts: facts.part, ON_A_TIMELINE, is_usual=True),
        equal("cut short", lambda facts: _word(facts.is_cut), ON_A_TIMELINE, is_usual=True),
        near("startup", lambda facts: facts.startup_share, OF_THE_RUN, _by_margin, units.share),
        near("profiler's cost", lambda facts: facts.profiler_share, OF_THE_RUN, _by_margin, units.share),
        equal("clocks", lambda facts: facts.clocks, OF_A_PROFILE),
        equal("cache control", lambda facts: facts.cache_control, OF_A_PROFILE),
        equal("replay", lambda facts: facts.replay, OF_A_PROFILE),
        equal("tool's version", lambda facts: facts.tool_versions, NOTHING),
    ),
    "metric": (
        _basis,
        never("results", "no trace tells whether they are right, compare them apart from this"),
        equal("time resolution", lambda facts: facts.tick_ns, NOTHING),
    ),
}

_ASKED_OF_LOADS: dict[Name, Sequence[Question]] = {
    "model": (equal("served model", lambda facts: facts.served_model, EVERYTHING),),
    "lengths": (
        near("prompt tokens", lambda facts: facts.prompt_tokens, EVERYTHING, _by_rate, lambda mean: f"{mean:,.4g}"),
        near(
            "shared prefix", lambda facts: facts.shared_prefix_share, EVERYTHING,
            lambda a, b: abs(a - b) <= MARGIN_OF_RATES, units.share,
        ),
        equal("asked output lengths", lambda facts: facts.output_lengths, EVERYTHING),
        near("output tokens", lambda facts: facts.output_tokens, NOTHING, _by_rate, lambda mean: f"{mean:,.4g}"),
    ),
    "arrival": (
        equal("arrivals", lambda facts: facts.arrivals, OF_THE_RUN),
        near("burstiness", lambda facts: facts.burstiness, OF_THE_RUN, _by_rate, lambda ratio: f"{ratio:g}"),
        equal("requests in flight", lambda facts: facts.concurrency, OF_THE_RUN),
    ),
}  # fmt: skip
"""Asked besides, where a side has loads on a server. That outputs are longer decides end-to-end times alone, of which
there is a table by their lengths.
"""

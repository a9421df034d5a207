"""What a comparison says of loads on servers: latencies, end-to-end time by actual output tokens, and rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.compare.changes import Change
from diag.compare.comparison import Comparison
from diag.compare.serving import RateChange, ServingComparison
from diag.render.comparison_phrases import signed_share, tally, time_of
from diag.render.table import Table

_HEADER = ("before", "after", "change", "answer")


def serving_tables(comparison: Comparison) -> list[Table]:
    of = comparison.serving
    return [] if of is None else [_latencies(of), _by_output(of), _rates(of)]


def _latencies(of: ServingComparison) -> Table:
    """All loads of one percentile below each other."""
    names = list(dict.fromkeys(change.name for change in of.latencies))
    changes = [change for name in names for change in of.latencies if change.name == name]
    notes = [*_untold(of), f"All: {tally(changes)}."]
    return Table("Latencies", (*_HEADER, "latency"), _rows(changes), name_column=4, notes=notes, wraps_names=True)


def _by_output(of: ServingComparison) -> Table:
    return Table(
        "End-to-end time by the tokens that came out",
        (*_HEADER, "latency"),
        _rows(of.by_output),
        name_column=4,
        notes=[f"All: {tally(of.by_output)}."],
        wraps_names=True,
    )


def _rows(changes: Sequence[Change]) -> list[list[str]]:
    return [
        [
            time_of(change.before),
            time_of(change.after),
            signed_share(change.ratio),
            change.answer,
            f"{change.name}{_at(change.place)}",
        ]
        for change in changes
    ]


def _rates(of: ServingComparison) -> Table:
    names = list(dict.fromkeys(rate.name for rate in of.rates))
    rates = [rate for name in names for rate in of.rates if rate.name == name]
    return Table(
        "Rates of completed requests",
        (*_HEADER, "rate"),
        [_rate(rate) for rate in rates],
        name_column=4,
        notes=["Of one run each, the noise of a rate is not known."] if _is_unsure(rates) else [],
        wraps_names=True,
    )


def _rate(rate: RateChange) -> list[str]:
    figures = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (rate.before, rate.after)]
    return [*figures, signed_share(rate.ratio), rate.answer, f"{rate.name}{_at(rate.load)}"]


def _is_unsure(rates: Sequence[RateChange]) -> bool:
    return any(rate.answer == "cannot tell" for rate in rates)


def _at(load: str) -> str:
    return f" at {load}" if load else ""


def _untold(of: ServingComparison) -> Iterator[str]:
    """What is set otherwise, and what does not compare."""
    if of.settings:
        yield f"Settings: {'; '.join(f'{each.name} {each.before} → {each.after}' for each in of.settings)}."
    if of.unmatched:
        yield f"Loads that one side alone has: {', '.join(of.unmatched)}."
    if of.other_lengths:
        yield (
            "Outputs are longer on one side, as when a model stops early: E2E and rates do not compare. See E2E by the "
            "tokens that came out."
        )

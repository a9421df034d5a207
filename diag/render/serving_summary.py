"""What was measured of a load on a server, short: counts, latencies, rates, and what went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from diag.model import serving_metrics as metrics
from diag.model import units
from diag.model.serving_metrics import LATENCIES, LATENCY_NAMES, Counts, Objective, Rates, ServedRequest
from diag.render.escape import one_line
from diag.render.layout import columns, wrap
from diag.render.table import Table

INDENT = "  "
MOST_ERRORS = 3
"""Different ones, the most frequent first."""


def render_summary(
    requests: Sequence[ServedRequest],
    *,
    width: int,
    title: str = "Load",
    over_ns: int | None = None,
    objective: Objective | None = None,
) -> str:
    """Of one run. Rates are over `over_ns` (default: from the first sent to the last ended), goodput with an objective.

    Latencies are of completed, measured requests; others are counted, and their errors named.
    """
    return "\n".join(line for part in _parts(requests, width, title, over_ns, objective) for line in part) + "\n"


def _parts(
    requests: Sequence[ServedRequest], width: int, title: str, over_ns: int | None, objective: Objective | None
) -> Iterator[list[str]]:
    counts = metrics.counts(requests)
    yield wrap(one_line(f"{title}: {counted(counts)}"), width)
    over_ns = metrics.span_ns(requests) if over_ns is None else over_ns
    if over_ns:
        yield wrap(one_line(rated(metrics.rates(requests, over_ns, objective))), width, INDENT, INDENT)
        yield wrap(one_line(_in_flight(requests, over_ns)), width, INDENT, INDENT)
    if (table := latency_table(requests)).rows:
        yield ["", *columns(table, width, INDENT)]
    for error, count in _errors(requests).most_common(MOST_ERRORS):
        yield wrap(one_line(f"{units.count(count, 'request')}: {error}"), width, INDENT * 2, INDENT)


def counted(counts: Counts) -> str:
    """
    >>> counted(Counts(sent=10, completed=7, rejected=2, failed=1, cancelled=0, expired=0))
    '10 requests, 7 completed, 2 rejected, 1 failed'
    """
    names = ("completed", "rejected", "failed", "cancelled", "expired")
    others = [f"{n:,} {name}" for name in names if (n := getattr(counts, name)) or name == "completed"]
    return ", ".join([units.count(counts.sent, "request"), *others])


def rated(rates: Rates) -> str:
    """
    >>> rated(Rates(over_ns=2_000_000_000, requests_per_s=3.5, input_tokens_per_s=448.0, output_tokens_per_s=None))
    'in 2.0 s: 3.5 requests/s, 448 tokens/s in'
    """
    parts = [
        f"{value:,.4g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
        for value, unit in (
            (rates.requests_per_s, "requests/s"),
            (rates.input_tokens_per_s, "tokens/s in"),
            (rates.output_tokens_per_s, "tokens/s out"),
            (rates.goodput_per_s, "requests/s met the objective (goodput)"),
        )
        if value is not None
    ]
    return f"in {units.time(rates.over_ns)}: {', '.join(parts)}"


def latency_table(requests: Sequence[ServedRequest]) -> Table:
    """A row for each latency that was seen; the count is of requests, and of gaps for ITL."""
    rows = []
    for each in LATENCIES:
        found = metrics.latency(requests, each)
        if found is not None:
            times = (found.p50, found.p95, found.p99, found.mean, found.largest)
            rows.append((LATENCY_NAMES[each], *map(units.time, times), f"{found.count:,}"))
    return Table("Latencies", ("", "P50", "P95", "P99", "mean", "largest", "count"), rows, name_column=0)


def _in_flight(requests: Sequence[ServedRequest], over_ns: int) -> str:
    mean = metrics.in_flight(requests, over_ns)
    return f"in flight on average: {mean:.3g}" if mean is not None else ""


def _errors(requests: Sequence[ServedRequest]) -> Counter[str]:
    return Counter(each.error for each in metrics.measured(requests) if each.error is not None)

"""Launches from the tables that ncu prints as CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter

from diag.ingest.launch_records import RuleResult
from diag.ingest.ncu_output import messages, ranges
from diag.ingest.ncu_output.labels import identifier_of, metric_of
from diag.ingest.ncu_output.printed import MOST_FIGURES, Figure, Identity, Printed, capability_of, integer_of, size_of
from diag.ingest.ncu_output.rows import Header, Losses, rows_of

IDENTITY = frozenset(
    (
        *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream"),
        *("Block Size", "Grid Size", "Device", "Device Id", "CC", "Invocations", "Section Name", "Domain"),
        *(ranges.PUSHED, ranges.STARTED),
    )
)
"""Columns that are no metric's."""


Launches = Iterator[tuple[Header, Printed]]


def launches(lines: Iterator[str], losses: Losses) -> Launches:
    """Each launch with the header of the table that it is from."""
    for header, rows in groupby(rows_of(lines, losses), key=itemgetter(0)):
        fields = (fields for _, fields in rows)
        yield from _raw(header, fields, losses) if header.page == "raw" else _by_metric(header, fields, losses)


Rows = Iterator[list[str]]


def _raw(header: Header, rows: Rows, losses: Losses) -> Launches:
    """A row of units, then one for each launch, with a column for each metric."""
    metrics = [(at, name) for at, name in enumerate(header.columns) if name not in IDENTITY and metric_of(None, name)]
    units: Sequence[str] = [""] * len(header.columns)
    for row in rows:
        if _is_launch(header, row):
            printed = _without_figures(header, row)
            printed.figures = [Figure(None, name, units[at], row[at]) for at, name in metrics]
            yield header, printed
        elif row[header.at("ID")] or row[header.at("Kernel Name")]:
            losses.unfit += 1
        else:
            units = row


def _by_metric(header: Header, rows: Rows, losses: Losses) -> Launches:
    """A row for each metric of each launch on the details page, and for each message of a rule.

    Context and stream are wrong in rows of rules (ncu 2022.3).
    """
    launch = ["ID", "Process ID", "Kernel Name"]
    if header.page == "summary":
        launch += ["Block Size", "Grid Size", "Device", "Device Id"]
    for _, group in groupby(rows, key=_columns(header, *launch)):
        if (printed := _launch(header, group, losses)) is not None:
            yield header, printed


def _launch(header: Header, rows: Rows, losses: Losses) -> Printed | None:
    value = "Average" if header.page == "summary" else "Metric Value"
    figure_of = _columns(header, "Section Name", "Metric Name", "Metric Unit", value)
    metric, rule = header.at("Metric Name"), header.at("Rule Name")
    first = next(rows)
    printed = _without_figures(header, first) if _is_launch(header, first) else None
    if printed is not None:
        for row in islice(chain((first,), rows), MOST_FIGURES):
            if row[metric]:
                printed.figures.append(Figure._make(figure_of(row)))
            elif row[rule]:
                printed.rules.append(_rule(header, row))
    losses.unfit += (printed is None) + sum(1 for _ in rows)
    return printed


def _is_launch(header: Header, row: Sequence[str]) -> bool:
    """A summary of the raw page per GPU has rows whose fields are not in their columns (ncu 2022.3)."""
    pid = row[header.at("Process ID")]
    return bool(row[header.at("Kernel Name")]) and (pid.isdigit() or "Process ID" not in header.columns)


def _columns(header: Header, *names: str) -> Callable[[Sequence[str]], tuple[str, ...]]:
    return itemgetter(*map(header.at, names))


def _rule(header: Header, row: Sequence[str]) -> RuleResult:
    section, rule, mark, message, kind, pct = _columns(header, *_RULE_COLUMNS)(row)
    return messages.result(rule, identifier_of(section), mark, message, messages.speedup_of(kind, pct), None)


_RULE_COLUMNS = (
    *("Section Name", "Rule Name", "Rule Type", "Rule Description"),
    *("Estimated Speedup Type", "Estimated Speedup"),
)


def _without_figures(header: Header, row: Sequence[str]) -> Printed:
    def of(column: str) -> str:
        return row[header.at(column)]

    pushed = of(ranges.PUSHED)
    return Printed(
        Identity(
            name=of("Kernel Name"),
            pid=integer_of(of("Process ID")),
            process_name=of("Process Name") or None,
            host=of("Host Name") or None,
            context=integer_of(of("Context")),
            stream=integer_of(of("Stream")),
            grid=size_of(of("Grid Size")),
            block=size_of(of("Block Size")),
            device=integer_of(of("Device") or of("Device Id")),
            compute_capability=capability_of(of("CC")),
            launches=integer_of(of("Invocations")),
        ),
        tid=ranges.thread_of(pushed),
        ranges=[*ranges.pushed(pushed), *ranges.started(of(ranges.STARTED))],
    )

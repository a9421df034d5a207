"""Launches from the tables that ncu prints as CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter

from diag.ingest.launch_records import RuleResult, Size
from diag.ingest.ncu_output import messages, ranges
from diag.ingest.ncu_output.labels import identifier_of
from diag.ingest.ncu_output.printed import Figure, Identity, Printed
from diag.ingest.ncu_output.rows import Header, Losses, names_metric, rows_of

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
        yield from _raw(header, fields) if header.page == "raw" else _by_metric(header, fields, losses)


Rows = Iterator[list[str]]


def _raw(header: Header, rows: Rows) -> Launches:
    """A row of units, then one for each launch, with a column for each metric."""
    metrics = [(at, name) for at, name in enumerate(header.columns) if name not in IDENTITY and names_metric(name)]
    of_launch, kernel = header.at("ID"), header.at("Kernel Name")
    units: Sequence[str] = [""] * len(header.columns)
    for row in rows:
        if not row[of_launch] and not row[kernel]:
            units = row
            continue
        printed = _without_figures(header, row)
        printed.figures = [Figure(None, name, units[at], row[at]) for at, name in metrics]
        yield header, printed


def _by_metric(header: Header, rows: Rows, losses: Losses) -> Launches:
    """A row for each metric of each launch on the details page, and for each message of a rule.

    Context and stream are wrong in rows of rules (ncu 2022.3).
    """
    launch = ["ID", "Process ID", "Kernel Name"]
    if header.page == "summary":
        launch += ["Block Size", "Grid Size", "Device", "Device Id"]
    value = "Average" if header.page == "summary" else "Metric Value"
    figure_of = _columns(header, "Section Name", "Metric Name", "Metric Unit", value)
    metric, rule, kernel = header.at("Metric Name"), header.at("Rule Name"), header.at("Kernel Name")
    for _, group in groupby(rows, key=_columns(header, *launch)):
        first = next(group)
        if not first[kernel]:
            losses.unfit += 1 + sum(1 for _ in group)
            continue
        printed = _without_figures(header, first)
        for row in chain((first,), group):
            if row[metric]:
                printed.figures.append(Figure._make(figure_of(row)))
            elif row[rule]:
                printed.rules.append(_rule(header, row))
        yield header, printed


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
            pid=_integer(of("Process ID")),
            process_name=of("Process Name") or None,
            host=of("Host Name") or None,
            context=_integer(of("Context")),
            stream=_integer(of("Stream")),
            grid=size_of(of("Grid Size")),
            block=size_of(of("Block Size")),
            device=_integer(of("Device") or of("Device Id")),
            compute_capability=capability_of(of("CC")),
            launches=_integer(of("Invocations")),
        ),
        tid=ranges.thread_of(pushed),
        ranges=[*ranges.pushed(pushed), *ranges.started(of(ranges.STARTED))],
    )


def size_of(text: str) -> Size | None:
    """Of `(32, 32, 1)`; None of anything else, as a mere number of threads.

    >>> size_of("(32, 32, 1)")
    (32, 32, 1)
    """
    match = _SIZE.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


_SIZE = re.compile(r"\(([0-9]{1,10}), ?([0-9]{1,10}), ?([0-9]{1,10})\)")


def capability_of(text: str) -> tuple[int, int] | None:
    """
    >>> capability_of("8.6")
    (8, 6)
    """
    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", text)
    return None if match is None else (int(match[1]), int(match[2]))


def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None

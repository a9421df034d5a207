"""`diag explain`: what a rule asks and what it finds, or everything behind a finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli import completion
from diag.cli.ceilings import chosen
from diag.cli.opening import opened
from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import UsageError

if TYPE_CHECKING:
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.finding import Finding
    from diag.rules.report import Report
    from diag.store.case import Case

_FINDING_ID = re.compile(r"F[0-9a-f]{10}")


def explain(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[RULE|FINDING|thresholds|SCHEMA]",
            help="Without it, all rules are listed.",
            autocompletion=completion.explained,
        ),
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[INPUT...]",
            readable=False,
            help="Where the rule looks, or where the finding is not of a cached case.",
        ),
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="START:END", help="The part of INPUT that the report was on.")
    ] = None,
    range_name: Annotated[
        str | None, typer.Option("--range", metavar="NAME", help="The ranges of INPUT that the report was on.")
    ] = None,
) -> None:
    """Explain a rule, open a finding to its formulas, SQL and rows, or print the schema of a document.

    Example: diag explain idle.gpu
    Example: diag explain idle.gpu train.nsys-rep
    Example: diag explain F03ed6bd010
    Example: diag explain diag.report/1 > report.schema.json

    Exit status 3: An input could not be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, NO_COLOR, TMPDIR
    See also: docs/nvidia-rules.md, docs/json-contract.md, diag report, diag query
    """
    from diag.render import explanation, published, render_finding
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.engine import rules
    from diag.rules.scope import parse_window

    if window is not None:
        parse_window(window)
    if (window is not None or range_name is not None) and not inputs:
        raise UsageError("--window and --range are parts of an input. Name it: diag explain WHAT INPUT --window ...")
    options = AnalysisOptions(window, range_name, ceilings=chosen(None) if inputs else ())
    known = rules()
    if what is None:
        text = explanation.list_of_rules(list(known.values()), width=width())
    elif what == "thresholds":
        text = explanation.thresholds(width=width())
    elif what in published.names():
        text = published.schema_text(what)
    elif what in known:
        text = explanation.rule(known[what], width=width())
        if inputs:
            with _looked_at(inputs, options) as (_, report):
                text += "\n\n" + explanation.answers(known[what], report, width=width())
    elif _FINDING_ID.fullmatch(what):
        found = _found_in(what, inputs, options) if inputs else _found_in_cache(what)
        text = render_finding(found, width=width(), color=color())
    else:
        raise UsageError(_no_rule(what, [*known, *published.names()]))
    write(text if text.endswith("\n") else text + "\n")


def _no_rule(what: str, known: Iterable[str]) -> str:
    from diag.model.near import did_you_mean, near

    near_by = did_you_mean(near(what, known))
    return f"{what!r} is neither a rule, nor a finding, nor a schema.{near_by} Rules are listed by: diag explain"


@contextmanager
def _looked_at(inputs: list[Path], options: AnalysisOptions) -> Iterator[tuple[Case, Report]]:
    from diag.ingest.importer import ImportOptions
    from diag.rules.stored import report_of

    with StatusLine() as status, opened(inputs, ImportOptions(note=note), status) as case:
        status("applying rules")
        yield case, report_of(case, options)


def _found_in(finding_id: str, inputs: list[Path], options: AnalysisOptions) -> Finding:
    from diag.rules.stored import finding_in

    with _looked_at(inputs, options) as (case, report):
        found = next((f for f in report.findings if f.id == finding_id), None) or finding_in(case, finding_id)
    if found is None:
        raise UsageError(
            f"These inputs have no finding {finding_id}. If its report was on a part of them, name that part, too: "
            f"diag explain {finding_id} INPUT... --window START:END or --range NAME"
        )
    return found


def _found_in_cache(finding_id: str) -> Finding:
    from diag.rules.stored import stored_finding
    from diag.store.cache import Cache

    cache = Cache.of_user()
    found = stored_finding(cache.newest_first() if cache else [], finding_id)
    if found is None:
        raise UsageError(
            f"The cached cases have no finding {finding_id}: reports with --no-cache or on a kept case are not there. "
            f"Name its inputs, and the part that it was on: diag explain {finding_id} INPUT... --window START:END"
        )
    return found

"""`diag explain`: what a rule asks, or everything behind a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import UsageError


def explain(
    what: Annotated[
        str | None, typer.Argument(metavar="[RULE|FINDING|thresholds]", help="Without it, all rules are listed.")
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT...]", readable=False, help="Where a finding comes from, if not the last case."),
    ] = None,
) -> None:
    """Explain a rule, or open a finding to its formulas, SQL and rows.

    Example: diag explain idle.gpu

    Example: diag explain F03ed6bd010
    """
    from diag.render import explanation
    from diag.rules.engine import rules

    known = rules()
    if what is None:
        text = explanation.list_of_rules(list(known.values()), width=width())
    elif what == "thresholds":
        text = explanation.thresholds(width=width())
    elif what in known:
        text = explanation.rule(known[what], width=width())
    else:
        text = _finding(what, inputs or [])
    write(text if text.endswith("\n") else text + "\n")


def _finding(finding_id: str, inputs: list[Path]) -> str:
    from diag.ingest.importer import ImportOptions, open_inputs
    from diag.render import render_finding
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.stored import finding_in, report_of, stored_finding
    from diag.store.cache import Cache

    if inputs:
        with StatusLine() as status, open_inputs(inputs, ImportOptions(note=note), status) as case:
            whole = report_of(case, AnalysisOptions()).findings
            found = next((f for f in whole if f.id == finding_id), None) or finding_in(case, finding_id)
    else:
        cache = Cache.of_user()
        found = stored_finding(cache.newest_first() if cache else [], finding_id)
    if found is None:
        where = "these inputs have" if inputs else "the cached cases have; name its inputs: diag explain ID INPUT..."
        raise UsageError(
            f"{finding_id!r} is neither a rule nor a finding that {where}. All rules are listed by: diag explain"
        )
    return render_finding(found, width=width(), color=color())

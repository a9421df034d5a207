"""`diag tui`: browse reports and traces in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from diag.cli.ceilings import chosen
from diag.cli.options import Ceilings, NoCache, ThresholdsFile
from diag.errors import UsageError


def tui(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT...]", readable=False, help="Traces, exports, reports, or one case."),
    ] = None,
    no_cache: NoCache = False,
    thresholds: ThresholdsFile = None,
    ceilings: Ceilings = None,
) -> None:
    """Browse reports and traces: findings, timeline, kernels, rooflines.

    Example: diag tui train.nsys-rep
    Example: diag tui train.nsys-rep kernels.ncu-rep

    Exit status 3: An input could not be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, NO_COLOR, TMPDIR
    See also: docs/tui.md, diag report, diag explain
    """
    from diag.ingest.importer import ImportOptions
    from diag.rules import thresholds as limits
    from diag.rules.analysis import AnalysisOptions
    from diag.tui.app import DiagApp
    from diag.tui.session import Request

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("diag tui needs a terminal. In a pipe, use: diag report INPUT")
    limits.load(thresholds)
    options = AnalysisOptions(thresholds=thresholds, ceilings=chosen(ceilings))
    DiagApp(Request(inputs or [], ImportOptions(use_cache=not no_cache), options)).run()

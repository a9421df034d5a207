"""`diag report`: post-mortem of any mix of files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli.ceilings import chosen
from diag.cli.many import Sharing, opened_by
from diag.cli.opening import opened
from diag.cli.options import Ceilings, MaxSize, NoCache, ThresholdsFile, WithNcuReport, WithNsysExport
from diag.cli.telling import FailOn, Format, Telling, tell
from diag.cli.terminal import StatusLine, note
from diag.errors import UsageError

if TYPE_CHECKING:
    from diag.ingest.importer import ImportOptions
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.baseline import Baseline
    from diag.rules.report import Report


def report(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT...", readable=False, help="Traces, exports, reports, or one case.")
    ],
    output_format: Annotated[Format, typer.Option("--format", "-f", help="How to write the report.")] = Format.TEXT,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 if there is a finding of this severity or above.")
    ] = FailOn.NEVER,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="An earlier run (JSON report, case or trace): only what is new or worse fails."
        ),
    ] = None,
    baseline_margin: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Rise of a finding's share that makes it worse (default 0.02)."
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="START:END", help="Part of the trace, from its first event: 100ms:2.5s, 3s:, :1s."),
    ] = None,
    range_name: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="NAME",
            help="Only the time inside ranges of this name; # stands for any number: 'step #'.",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="Findings to tell in the text, and rows of each table.")
    ] = 5,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the case in FILE.")
    ] = None,
    no_cache: NoCache = False,
    thresholds: ThresholdsFile = None,
    ceilings: Ceilings = None,
    with_nsys_export: WithNsysExport = False,
    with_ncu_report: WithNcuReport = False,
    max_size: MaxSize = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Processes that read traces, from nine on (default: one per core)."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers read the traces: tcp://HOST:8786"),
    ] = None,
) -> None:
    """Read reports and traces, and say what the run is limited by.

    Example: diag report train.nsys-rep
    Example: diag report train.nsys-rep kernels.ncu-rep
    Example: diag report rank0.json.gz --format json --fail-on critical
    Example: diag report train.nsys-rep --baseline main.json --fail-on warning

    Exit status 1: There is a finding at or above --fail-on; with --baseline, one that is new or worse.
    Exit status 3: An input, or the baseline, could not be read, or the output not written.
    Exit status 4: Nothing could be told from these inputs.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, NO_COLOR, TMPDIR
    See also: docs/inputs.md, docs/json-contract.md, diag explain, diag compare, diag tui
    """
    from diag.ingest.importer import ImportOptions
    from diag.ingest.input_file import Bounds
    from diag.rules import thresholds as limits
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.baseline import DEFAULT_MARGIN, compare
    from diag.rules.scope import parse_window
    from diag.rules.stored import keep_only
    from diag.store.sizes import parse_size

    # Told at once, and not when a large trace has been read.
    if window is not None:
        parse_window(window)
    if range_name == "":
        raise UsageError("--range is empty. Write the name of a range, or a pattern like ProfilerStep#")
    if jobs is not None and scheduler is not None:
        raise UsageError("--jobs is for processes of this machine, --scheduler for those of a cluster. Choose one.")
    if baseline is None and baseline_margin is not None:
        raise UsageError("--baseline-margin says when a finding is worse than in a baseline. Name one with --baseline.")
    limits.load(thresholds)
    bounds = Bounds(plain_bytes=parse_size(max_size, of="--max-size")) if max_size is not None else Bounds()
    options = AnalysisOptions(window, range_name, thresholds, chosen(ceilings))
    imports = ImportOptions(
        keep=output,
        finish=lambda kept: keep_only(kept, options),
        use_cache=not no_cache,
        bounds=bounds,
        with_nsys_export=with_nsys_export,
        with_ncu_report=with_ncu_report,
        note=note,
    )

    def compared(result: Report, status: StatusLine) -> Report:
        if baseline is None:
            return result
        earlier = _baseline(baseline, options, replace(imports, keep=None), status)
        margin = DEFAULT_MARGIN if baseline_margin is None else baseline_margin
        return replace(result, baseline=compare(result, earlier, str(baseline), margin))

    opening = partial(opened_by, inputs, imports, options, Sharing(jobs, scheduler))
    if failed := tell(opening, options, Telling(output_format, fail_on, top), compared):
        raise typer.Exit(failed)


def _baseline(path: Path, options: AnalysisOptions, imports: ImportOptions, status: StatusLine) -> Baseline:
    """The findings of an earlier run: from its JSON report, or found anew in its case or trace."""
    from diag.ingest.detect import is_other_json
    from diag.rules.baseline import of_document, of_report
    from diag.rules.document import read
    from diag.rules.stored import report_of

    if not path.is_dir() and is_other_json(path):
        return of_document(read(path))
    with opened([path], imports, status) as case:
        return of_report(report_of(case, options))

"""`diag compare`: did the change help?"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli.ceilings import chosen
from diag.cli.opening import opened
from diag.cli.options import MaxSize, NoCache
from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import NothingToTell, UsageError

if TYPE_CHECKING:
    from diag.compare.comparison import Comparison, Gate
    from diag.compare.recording import Recording, Side
    from diag.ingest.importer import ImportOptions
    from diag.rules.analysis import AnalysisOptions


class CompareFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class Allowed(enum.StrEnum):
    """Conditions that may differ; not the metric: times of a run and of a profile are never comparable."""

    MODEL = "model"
    HARDWARE = "hardware"
    LENGTHS = "lengths"
    ARRIVAL = "arrival"
    CONFIGURATION = "configuration"


def compare(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="BEFORE",
            readable=False,
            help="A trace, report, case, JSON report, or folder of repeats of one run.",
        ),
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", readable=False, help="Likewise.")],
    output_format: Annotated[
        CompareFormat, typer.Option("--format", "-f", help="How to write it.")
    ] = CompareFormat.TEXT,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="What the verdict is about: step, window, gpu-busy, kernels, launches, ttft, tpot, itl, e2e, "
            "kernel:NAME or range:NAME (default: step, else kernels, launches, window, e2e).",
        ),
    ] = None,
    fail_on_regression: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="PCT",
            help="Exit with 1 if the metric grew by more, and beyond noise; 4 if it cannot be told.",
        ),
    ] = None,
    allow: Annotated[
        list[Allowed] | None,
        typer.Option(
            metavar="<model|hardware|lengths|arrival|configuration>",
            help="A condition that may differ, as what you changed; repeat it for several.",
        ),
    ] = None,
    whole_runs: Annotated[
        bool, typer.Option("--whole-runs", help="Compare whole runs, also where both have steps.")
    ] = False,
    window: Annotated[
        str | None, typer.Option(metavar="START:END", help="Part of both, from the first event: 100ms:2.5s, 3s:, :1s.")
    ] = None,
    range_name: Annotated[
        str | None, typer.Option("--range", metavar="NAME", help="Only the time inside ranges of this name, of both.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Rows of each table.")] = 5,
    no_cache: NoCache = False,
    max_size: MaxSize = None,
) -> None:
    """Compare two runs: whether they may be compared, what moved, and whether it is beyond noise.

    Example: diag compare main.nsys-rep branch.nsys-rep
    Example: diag compare runs/main runs/branch --metric range:decode
    Example: diag compare main.diag branch.nsys-rep --fail-on-regression 5
    Example: diag compare serve-main.jsonl serve-branch.jsonl --metric ttft

    Exit status 1: With --fail-on-regression: it grew by more, and beyond noise.
    Exit status 3: An input could not be read.
    Exit status 4: They have nothing in common; with --fail-on-regression also: it cannot be told.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, NO_COLOR, TMPDIR
    See also: docs/compare.md, diag report, diag log
    """
    from diag.compare.comparison import compare as compared
    from diag.compare.comparison import gate
    from diag.ingest.importer import ImportOptions
    from diag.ingest.input_file import Bounds
    from diag.render import COMPARISON_RENDERERS
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.scope import parse_window
    from diag.store.sizes import parse_size

    if window is not None:
        parse_window(window)
    if range_name == "":
        raise UsageError("--range is empty. Write the name of a range, or a pattern like ProfilerStep#")
    bounds = Bounds(plain_bytes=parse_size(max_size, of="--max-size")) if max_size is not None else Bounds()
    imports = ImportOptions(use_cache=not no_cache, bounds=bounds, note=note)
    options = AnalysisOptions(window, range_name, ceilings=chosen(None))
    with StatusLine() as status:
        sides = [side_of_path(path, options, imports, status) for path in (before, after)]
        status("comparing")
        result = compared(*sides, metric=metric, allowed=allow or (), whole_runs=whole_runs)
    text = COMPARISON_RENDERERS[output_format.value](result, width=width(), color=color(), top=top)
    write(text if text.endswith("\n") else text + "\n")
    if not result.tells_something:
        raise NothingToTell("The two sides have nothing in common that could be compared.")
    if fail_on_regression is not None:
        _decide(result, gate(result, fail_on_regression), fail_on_regression)


def _decide(result: Comparison, decided: Gate, most_pct: float) -> None:
    change = result.headline.change
    if decided == "failed":
        note(f"{result.headline.what} grew by {100 * (change.ratio or 0):.1f} %, more than {most_pct:g} %.")
        raise typer.Exit(1)
    if decided == "cannot tell":
        why = "the two sides are not comparable" if change.answer == "not comparable" else "its noise is not known"
        why = why if change.before and change.after else "only one side has it"
        raise NothingToTell(
            f"Whether {result.headline.what} regressed cannot be told: {why}. The comparison says more."
        )


def side_of_path(path: Path, options: AnalysisOptions, imports: ImportOptions, status: StatusLine) -> Side:
    """A side of a comparison: a trace, report, case, JSON report, or folder of repeats of one run."""
    from diag.compare.recording import side_of
    from diag.ingest.repeats import runs_in

    return side_of(str(path), [_recording(run, options, imports, status) for run in runs_in(path, note)], note)


def _recording(path: Path, options: AnalysisOptions, imports: ImportOptions, status: StatusLine) -> Recording:
    from diag.compare import of_case, of_report
    from diag.ingest.detect import is_other_json
    from diag.rules.document import read

    if not path.is_dir() and is_other_json(path):
        if options.window or options.range_name:
            raise UsageError(f"{path} is a report, of which no other part can be told. Name the trace it was made of.")
        return of_report.recording_of(read(path), str(path))
    with opened([path], imports, status) as case:
        return of_case.recording_of(case, options, str(path))

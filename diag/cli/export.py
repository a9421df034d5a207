"""`diag export`: a case for Perfetto, a spreadsheet or a data frame."""

from __future__ import annotations

import enum
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli.ceilings import chosen
from diag.cli.export_plots import SCALE, check_plots, remarks, write_plots
from diag.cli.opening import opened
from diag.cli.options import MaxSize, NoCache, WithNcuReport, WithNsysExport
from diag.cli.terminal import StatusLine, note, remark, write
from diag.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from diag.export.axis import Part
    from diag.export.table import Table
    from diag.ingest.input_file import Bounds
    from diag.rules.analysis import AnalysisOptions
    from diag.store.case import Case

STANDARD_OUTPUT = Path("-")


class ExportFormat(enum.StrEnum):
    PERFETTO = "perfetto"
    CSV = "csv"
    PARQUET = "parquet"
    NSYS_SQLITE = "nsys-sqlite"
    SVG = "svg"
    PNG = "png"


_BY_ENDING = {
    ".json": ExportFormat.PERFETTO,
    ".json.gz": ExportFormat.PERFETTO,
    ".csv": ExportFormat.CSV,
    ".parquet": ExportFormat.PARQUET,
    ".sqlite": ExportFormat.NSYS_SQLITE,
    ".svg": ExportFormat.SVG,
}


def export(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT...", readable=False, help="A case, or any input that report takes.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write; a folder for all tables or plots; - for standard output.",
        ),
    ],
    chosen_format: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            "-f",
            help="A trace for ui.perfetto.dev, tables, an export as by nsys, or the rooflines of profiled kernels as a "
            "picture (svg). Without it, the ending of FILE tells. With --plots: svg (default) or png.",
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this table (csv, parquet), as one file.")
    ] = None,
    plots: Annotated[
        bool, typer.Option("--plots", help="Whatever can be drawn of the case, as one file for each plot.")
    ] = False,
    scale: Annotated[
        float | None,
        typer.Option(min=0.25, max=4.0, metavar="FACTOR", help="Size of PNG plots (default 2: 1920 pixels wide)."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="START:END", help="Part of the trace, from its first event: 100ms:2.5s, 3s:, :1s."),
    ] = None,
    as_stored: Annotated[
        bool, typer.Option("--as-stored", help="Tables with ids as the case stores them, not names.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier export wrote.")] = False,
    no_cache: NoCache = False,
    with_nsys_export: WithNsysExport = False,
    with_ncu_report: WithNcuReport = False,
    max_size: MaxSize = None,
) -> None:
    """Write a case as a trace for Perfetto, its tables as CSV or Parquet, or what can be drawn of it as SVG or PNG.

    A report of Nsight Systems can also become the SQLite file that `nsys export` makes, for tools that read those.

    Example: diag export train.nsys-rep -o train.json.gz
    Example: diag export run.diag -o operations.csv --table gpu_op
    Example: diag export run.diag -o tables --format parquet
    Example: diag export train.nsys-rep -o train.sqlite
    Example: diag export kernels.ncu-rep -o roofline.svg
    Example: diag export train.nsys-rep --plots -o plots

    Exit status 3: An input could not be read, or the output not written.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, TMPDIR
    See also: docs/plots.md, docs/roofline.md, diag query
    """
    from diag.export import target
    from diag.ingest.importer import ImportOptions
    from diag.ingest.input_file import Bounds
    from diag.ingest.inputs import find_inputs
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.scope import parse_window
    from diag.store.sizes import parse_size

    if window is not None:
        parse_window(window)
    wishes = _Wishes(chosen_format, output, table, window, plots=plots, scale=scale, as_stored=as_stored)
    kind = _checked(wishes)
    bounds = Bounds(plain_bytes=parse_size(max_size, of="--max-size")) if max_size is not None else Bounds()
    if kind is Kind.NSYS_SQLITE:
        if with_nsys_export:
            raise UsageError("To have nsys itself export a report: nsys export --type sqlite REPORT")
        _nsys_sqlite(inputs, output, bounds, force=force)
        return
    if output != STANDARD_OUTPUT:
        as_folder = kind in (Kind.TABLES, Kind.PLOTS)
        target.check(output, [item.path for item in find_inputs(inputs)], as_folder=as_folder, force=force)
    options = ImportOptions(
        use_cache=not no_cache,
        bounds=bounds,
        with_nsys_export=with_nsys_export,
        with_ncu_report=with_ncu_report,
        note=note,
    )
    analysis = AnalysisOptions(window, ceilings=chosen(None))
    with StatusLine() as status, opened(inputs, options, status) as case:
        said = _write(kind, wishes, case, analysis, status)
    for sentence in said:
        remark(sentence)


class Kind(enum.Enum):
    """What is written."""

    TRACE = enum.auto()
    TABLE = enum.auto()
    TABLES = enum.auto()
    ROOFLINES = enum.auto()
    PLOTS = enum.auto()
    NSYS_SQLITE = enum.auto()


@dataclass(frozen=True)
class _Wishes:
    """What the command line asks for."""

    chosen_format: ExportFormat | None
    output: Path
    table: str | None
    window: str | None
    plots: bool
    scale: float | None
    as_stored: bool

    @property
    def output_format(self) -> ExportFormat:
        """Raises UsageError when neither an option nor the name of the output tells it."""
        return self.chosen_format or (ExportFormat.SVG if self.plots else _format_of(self.output))

    @property
    def narrows(self) -> bool:
        """Whether a table, a part or a form of tables is asked for."""
        return self.table is not None or self.as_stored or self.window is not None


def _checked(wishes: _Wishes) -> Kind:
    """What is to be written. Raises UsageError for what does not go together."""
    is_to_stdout = wishes.output == STANDARD_OUTPUT
    if wishes.plots:
        if wishes.narrows:
            raise UsageError("--table, --as-stored and --window are not for plots, which are of the whole case.")
        check_plots(wishes.chosen_format, wishes.scale, is_folder=not is_to_stdout)
        return Kind.PLOTS
    if wishes.chosen_format is ExportFormat.PNG or wishes.scale is not None:
        raise UsageError("--format png and --scale are for plots: diag export INPUT --plots --format png -o FOLDER")
    match wishes.output_format:
        case ExportFormat.NSYS_SQLITE:
            if wishes.narrows:
                raise UsageError(
                    "--table, --as-stored and --window are for a case; nsys-sqlite is the whole of a report."
                )
            return Kind.NSYS_SQLITE
        case ExportFormat.SVG:
            if wishes.narrows:
                raise UsageError(
                    "--table, --as-stored and --window are not for svg: it is the rooflines of whole launches."
                )
            return Kind.ROOFLINES
        case ExportFormat.PERFETTO:
            if wishes.table is not None or wishes.as_stored:
                raise UsageError("--table and --as-stored are for tables. Add --format csv or --format parquet.")
            return Kind.TRACE
    if wishes.chosen_format is None and wishes.table is None:
        raise UsageError(
            f"{wishes.output} names one file, and a case has many tables. Choose one with --table NAME, or name a "
            f"folder for all: -o FOLDER --format {wishes.output_format.value}"
        )
    if is_to_stdout and (wishes.table is None or wishes.output_format is ExportFormat.PARQUET):
        raise UsageError("-o - takes a trace, or one table as CSV: --format csv --table NAME. Name a file instead.")
    return Kind.TABLES if wishes.table is None else Kind.TABLE


def _write(kind: Kind, wishes: _Wishes, case: Case, analysis: AnalysisOptions, status: StatusLine) -> Sequence[str]:
    """Writes it, and returns what there is to say to whoever sits at the terminal."""
    from diag.export import axis, tables
    from diag.model import units
    from diag.timeline.elsewhere import elsewhere

    output, output_format = wishes.output, wishes.output_format
    if said := elsewhere(case):
        if kind is Kind.TRACE or wishes.window is not None:
            raise UsageError(said)
        if kind in (Kind.TABLE, Kind.TABLES):
            note(said)
    parts = axis.parts(case, wishes.window)
    match kind:
        case Kind.PLOTS:
            made = write_plots(case, analysis, output, output_format.value, wishes.scale or SCALE, status)
            return list(remarks(made, output))
        case Kind.ROOFLINES:
            _rooflines(case, analysis, output, status)
        case Kind.TRACE:
            _trace(case, parts, analysis, output, status)
            return [] if output == STANDARD_OUTPUT else [f"{output}: open it at https://ui.perfetto.dev"]
        case Kind.TABLE:
            table = tables.one_table(case, parts, analysis, wishes.table or "", as_stored=wishes.as_stored)
            _table(table, output, output_format)
        case Kind.TABLES:
            stale = [f"{name}.{output_format.value}" for name in case.tables]
            every = tables.all_tables(case, parts, analysis, as_stored=wishes.as_stored)
            n_tables = _folder(every, output, stale, output_format, status)
            n_empty = len(tables.empty_tables(case))
            left_out = f" ({n_empty} empty ones left out)" if n_empty else ""
            return [f"{output}: {units.count(n_tables, 'table')}{left_out}."]
    return []


def _format_of(output: Path) -> ExportFormat:
    """What the ending of a name says. Raises UsageError when it says nothing."""
    if output == STANDARD_OUTPUT:
        return ExportFormat.PERFETTO
    for ending, told in _BY_ENDING.items():
        if output.name.lower().endswith(ending):
            return told
    raise UsageError(
        f"The ending of {output} tells no format. Name it .json, .json.gz, .csv, .parquet, .sqlite or .svg, "
        "or add --format."
    )


def _nsys_sqlite(inputs: Sequence[Path], output: Path, bounds: Bounds, *, force: bool) -> None:
    from diag.export import target
    from diag.ingest import nsys_conversion
    from diag.ingest.inputs import find_inputs
    from diag.store.cache import unchanged
    from diag.store.work_folder import work_folder

    found = find_inputs(inputs)
    if len(found) != 1 or found[0].kind not in nsys_conversion.KINDS:
        raise UsageError("--format nsys-sqlite takes one report of Nsight Systems: .nsys-rep, .qdrep or .qdstrm.")
    if output == STANDARD_OUTPUT:
        raise UsageError("-o - takes a trace, or one table as CSV: --format csv --table NAME. Name a file instead.")
    report = found[0]
    target.check(output, [report.path], as_folder=False, force=force)
    with StatusLine() as status, target.whole_file(output) as part, work_folder(None) as folder, unchanged(report.path):
        made = nsys_conversion.converted(report, folder, bounds=bounds, progress=status)
        shutil.move(made.export, part)
    if made.losses:
        note(f"{report.path} is damaged: {'; '.join(made.losses)}. {output} holds what is whole of it.")


def _trace(case: Case, parts: Mapping[int, Part], options: AnalysisOptions, output: Path, status: StatusLine) -> None:
    from diag.export.perfetto import trace_of
    from diag.rules.analysis import analyse

    if not any(source.has_timeline or source.captured("live_snapshot") for source in case.sources):
        raise UsageError(
            "Nsight Compute measures launches one by one: there is no timeline to draw. Its tables are to be had with "
            "--format csv -o FOLDER"
        )
    status("applying rules")
    findings = analyse(case, options).findings  # anew, for a stored report has no extents
    status(f"writing {output.name}")
    _text(trace_of(case, parts, findings), output)


def _rooflines(case: Case, options: AnalysisOptions, output: Path, status: StatusLine) -> None:
    from diag.render.roofline_svg import roofline_svg
    from diag.rules.stored import report_of

    status("applying rules")
    rooflines = report_of(case, options).rooflines
    if not rooflines:
        raise UsageError(
            "No kernel here has a roofline: that takes a profile of Nsight Compute that counts bytes and operations "
            "(ncu --set roofline)."
        )
    _text([roofline_svg(rooflines)], output)


def _table(table: Table, output: Path, output_format: ExportFormat) -> None:
    from diag.export.table import csv_text, write_parquet
    from diag.export.target import whole_file

    if output_format is ExportFormat.CSV:
        _text(csv_text(table), output)
        return
    with whole_file(output) as part:
        write_parquet(table, part)


def _folder(
    tables: Iterable[Table], output: Path, stale: Iterable[str], output_format: ExportFormat, status: StatusLine
) -> int:
    """Writes a file for each table; returns how many."""
    from diag.export.table import write_csv, write_parquet
    from diag.export.target import whole_folder

    write_table = write_csv if output_format is ExportFormat.CSV else write_parquet
    n_tables = 0
    with whole_folder(output, stale) as folder:
        for n_tables, table in enumerate(tables, 1):  # noqa: B007 - the last number is how many there were
            status(f"writing {table.name}")
            write_table(table, folder / f"{table.name}.{output_format.value}")
    return n_tables


def _text(pieces: Iterable[str], output: Path) -> None:
    """To a file that is whole or absent, compressed when its name says so, or to standard output."""
    from diag.export import target

    if output == STANDARD_OUTPUT:
        _ = all(write(piece) for piece in target.in_blocks(pieces))  # stops when the reader has seen enough
        return
    with target.whole_file(output) as part, target.opened(part, compressed=output.suffix == ".gz") as file:
        file.writelines(target.in_blocks(pieces))

"""The verbs of the command line, one file each."""

from __future__ import annotations

import typer

from diag import __version__
from diag.cli import doctor, explain, export, query, report

app = typer.Typer(
    name="diag",
    help="From a GPU program's run to the reason it is slow.",
    epilog="Start with: diag report TRACE    (an Nsight Systems report or export, or a PyTorch profiler trace)",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="report", no_args_is_help=True)(report.report)
app.command(name="explain")(explain.explain)
app.command(name="query", no_args_is_help=True)(query.query)
app.command(name="export", no_args_is_help=True)(export.export)
app.command(name="doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"diag {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """From a GPU program's run to the reason it is slow."""

"""The command line: one verb per file, and one place that turns errors into sentences and exit statuses."""

from __future__ import annotations

import sys

import typer

from diag import __version__
from diag.cli import explain, query, report
from diag.errors import DiagError

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

INTERRUPTED = 130  # as shells report a program ended by Ctrl-C


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"diag {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """From a GPU program's run to the reason it is slow."""


def main() -> None:
    """Runs the command line and exits with the status of docs/json-contract.md."""
    try:
        app()
    except DiagError as error:
        print(f"diag: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        print("diag: interrupted; nothing was kept of what was being read.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = None  # the reader went away; flushing at exit would complain again
        sys.exit(0)


if __name__ == "__main__":
    main()

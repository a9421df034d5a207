"""The command line: one verb per file, and one place that turns errors into sentences and exit statuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from diag import __version__
from diag.cli import explain, query, report
from diag.cli.signals import Ending
from diag.errors import DiagError
from diag.render.escape import one_line

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
    _use_streams_as_they_are()
    ending = Ending()
    ending.watch()
    try:
        app()
    except DiagError as error:
        _say(str(error))
        sys.exit(error.exit_status)
    except (KeyboardInterrupt, SystemExit) as error:
        # Typer turns an interrupt into an exit, and SQLite and NumPy may turn it into something else on the way.
        if isinstance(error, SystemExit) and ending.number is None:
            raise
        _say("interrupted; nothing was kept of what was being read.")
        sys.exit(ending.exit_status)


def _say(text: str) -> None:
    print(f"diag: {one_line(text)}", file=sys.stderr)


def _use_streams_as_they_are() -> None:
    """A closed stream swallows what is written, and one that is not UTF-8 gets escapes: neither ends the program."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the program ends
        else:
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()

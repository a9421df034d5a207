"""The verbs of the command line, one file each."""

from __future__ import annotations

from collections.abc import Callable

import typer

from diag import __version__
from diag.cli import (
    calibrate,
    compare,
    doctor,
    explain,
    export,
    hang,
    learn,
    log,
    plan,
    plan_comm,
    plan_memory,
    plan_quantisation,
    plan_serving,
    plan_speculative,
    plan_transfer,
    probe,
    probe_inspect,
    probe_list,
    probe_run,
    probe_serve,
    query,
    report,
    run,
    tui,
    watch,
)
from diag.cli.verb import Verb, VerbGroup

HELP = """From a GPU program's run to the reason it is slow.

Example: diag report train.nsys-rep
Example: diag run -- python train.py
Example: diag learn

Exit status 1: Told by those verbs that have it: a finding or a regression that should fail a build.
Exit status 3: An input could not be read, or an output not written.
Exit status 4: Nothing could be told.
Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, DIAG_NCU, NO_COLOR, TMPDIR
See also: docs/start.md, docs/inputs.md, docs/json-contract.md
"""

app = typer.Typer(
    name="diag",
    cls=VerbGroup,
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(
    verb: Callable[..., None],
    *,
    needs_words: bool,
    runs_command: bool = False,
    to: typer.Typer = app,
    name: str | None = None,
) -> None:
    """Under its function's name. Its first line is its summary, which Typer would cut to a line of the terminal.

    `runs_command`: from its first word on, the command line belongs to the command that it names.
    """
    summary = str(verb.__doc__).partition("\n")[0]
    settings = {"allow_interspersed_args": not runs_command}
    command = to.command(
        name or verb.__name__, cls=Verb, short_help=summary, no_args_is_help=needs_words, context_settings=settings
    )
    command(verb)


_add(report.report, needs_words=True)
_add(run.run, needs_words=True, runs_command=True)
_add(tui.tui, needs_words=False)
_add(watch.watch, needs_words=False)
_add(hang.hang, needs_words=True)
_add(compare.compare, needs_words=True)
_add(log.log, needs_words=True)
_add(explain.explain, needs_words=False)
_add(query.query, needs_words=True)
_add(export.export, needs_words=True)
_add(calibrate.calibrate, needs_words=False)
_add(doctor.doctor, needs_words=False)
_add(learn.learn, needs_words=False)

app.add_typer(probe.app, short_help=probe.SUMMARY)
_add(probe_list.list_probes, needs_words=False, to=probe.app, name="list")
_add(probe_run.run, needs_words=True, to=probe.app)
_add(probe_inspect.inspect, needs_words=True, to=probe.app)
_add(probe_serve.serve, needs_words=True, to=probe.app)

app.add_typer(plan.app, short_help=plan.SUMMARY)
_add(plan_memory.memory, needs_words=True, to=plan.app)
_add(plan_serving.serving, needs_words=True, to=plan.app)
_add(plan_transfer.transfer, needs_words=True, to=plan.app)
_add(plan_speculative.speculative, needs_words=True, to=plan.app)
_add(plan_quantisation.quantisation, needs_words=True, to=plan.app)
_add(plan_comm.comm, needs_words=True, to=plan.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"diag {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """From a GPU program's run to the reason it is slow."""

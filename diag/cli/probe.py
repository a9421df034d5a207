"""`diag probe`: reference workloads whose every figure can be worked out in closed form."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="probe",
    help="Reference workloads with known answers: list, run and inspect them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
"""Its verbs are added by `diag.cli.verbs`."""

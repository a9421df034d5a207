"""`diag probe`: reference workloads whose every figure can be worked out in closed form."""

from __future__ import annotations

import typer

SUMMARY = "Reference workloads with known answers: list, run and inspect them."
"""Said twice, for Typer would cut it to a line of the terminal."""

app = typer.Typer(
    name="probe",
    help=SUMMARY,
    no_args_is_help=True,
    rich_markup_mode=None,
)
"""Its verbs are added by `diag.cli.verbs`."""

"""`diag probe`: reference workloads whose every figure can be worked out in closed form."""

from __future__ import annotations

import typer

from diag.cli.verb import VerbGroup

SUMMARY = "Reference workloads with known answers: list, run and inspect them."
"""Said twice, for Typer would cut it to a line of the terminal."""

HELP = f"""{SUMMARY}

Example: diag probe list
Example: diag probe run vector_add gemm

See also: docs/probes.md, docs/load.md, diag calibrate
"""

app = typer.Typer(
    name="probe",
    cls=VerbGroup,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
)
"""Its verbs are added by `diag.cli.verbs`."""

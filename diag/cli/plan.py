"""`diag plan`: capacity on paper, each assumption shown."""

from __future__ import annotations

import typer

SUMMARY = (
    "Capacity on paper: memory, serving, transfers, speculation, quantisation, communication; each assumption shown."
)
"""Said twice, for Typer would cut it to a line of the terminal."""

app = typer.Typer(
    name="plan",
    help=SUMMARY,
    no_args_is_help=True,
    rich_markup_mode=None,
)
"""Its verbs are added by `diag.cli.verbs`."""

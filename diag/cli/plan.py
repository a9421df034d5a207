"""`diag plan`: capacity on paper, each assumption shown."""

from __future__ import annotations

import typer

from diag.cli.verb import VerbGroup

SUMMARY = (
    "Capacity on paper: memory, serving, transfers, speculation, quantisation, communication; each assumption shown."
)
"""Said twice, for Typer would cut it to a line of the terminal."""

HELP = f"""{SUMMARY}

Example: diag plan memory --model llama-3-70b --tp 8
Example: diag plan serving --rate 8 --stay 6s

See also: docs/capacity.md, docs/collectives.md, diag calibrate
"""

app = typer.Typer(
    name="plan",
    cls=VerbGroup,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
)
"""Its verbs are added by `diag.cli.verbs`."""

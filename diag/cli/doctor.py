"""`diag doctor`: what can be read on this machine, and the remedy where something cannot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from diag.cli.choices import TextOrJson
from diag.cli.terminal import color, width, write
from diag.errors import InputError


def doctor(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]", readable=False, help="Say of these alone what they are and how to read them."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Without recording a program with nsys, which takes some seconds.")
    ] = False,
    output_format: Annotated[
        TextOrJson, typer.Option("--format", "-f", help="How to write what was found.")
    ] = TextOrJson.TEXT,
) -> None:
    """Say what this machine can read and record, with which tools, and what to do about what it cannot.

    Example: diag doctor
    Example: diag doctor train.nsys-rep

    Exit status 3: Something is broken that diag needs, or a FILE cannot be read.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, DIAG_NCU, NO_COLOR, TMPDIR
    See also: docs/inputs.md, docs/start.md, diag report
    """
    from diag.doctor.examination import examine
    from diag.doctor.file import about
    from diag.render.checks import render_checks, render_checks_as_json

    if files:
        checks = [about(file) for file in files]
    else:
        checks = list(
            examine(sys.stdout, is_terminal=sys.stdout.isatty(), width=width(), color=color(), is_quick=quick)
        )
    if output_format is TextOrJson.JSON:
        write(render_checks_as_json(checks))
    else:
        write(render_checks(checks, width=width(), color=color()))
    if any(check.state in ("broken", "unreadable") for check in checks):
        raise typer.Exit(InputError.exit_status)

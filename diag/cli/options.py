"""Options that several verbs take, with the words that they are explained in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

NoCache: TypeAlias = Annotated[bool, typer.Option("--no-cache", help="Neither use nor fill the cache of cases.")]

ThresholdsFile: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="TOML with thresholds to change; see: diag explain thresholds")
]

Ceilings: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="<FILE|none>", help="Measured ceilings for rooflines (default: those that diag calibrate stored)."
    ),
]

WithNsysExport: TypeAlias = Annotated[
    bool, typer.Option("--with-nsys-export", help="Have an installed nsys export the .nsys-rep, as a check.")
]

WithNcuReport: TypeAlias = Annotated[
    bool, typer.Option("--with-ncu-report", help="Have NVIDIA's package read the .ncu-rep, as a check.")
]

MaxSize: TypeAlias = Annotated[
    str | None, typer.Option(metavar="BYTES", help="Most that a compressed input may unpack to (default 64G).")
]

"""Options of `diag probe run`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from diag.cli import completion
from diag.cli.choices import DeviceChoice, TextOrJson


class ScaleChoice(enum.StrEnum):
    TINY = "tiny"
    SMALL = "small"
    FULL = "full"


Probes: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Probes, or all; see: diag probe list", autocompletion=completion.probes),
]
Device: TypeAlias = Annotated[DeviceChoice, typer.Option(help="Where; auto is a CUDA GPU if there is one.")]
Dtype: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TYPE", help="fp32, tf32, fp16 or bf16 (default: each probe's own).")
]
Variant: TypeAlias = Annotated[str | None, typer.Option(metavar="NAME", help="Only this one (default: all).")]
Scale: TypeAlias = Annotated[ScaleChoice, typer.Option(help="How large the inputs are.")]
Shape: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME=SIZE,...", help="Sizes in the place of those of the scale.")
]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the measurements in FILE.")
]
WithReport: TypeAlias = Annotated[
    bool, typer.Option("--report", help="Run each probe once more under torch.profiler, and report on it.")
]
Ceilings: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="<FILE|none>", help="Measured ceilings (default: those that diag calibrate stored)."),
]
Ranks: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="Of probes of several ranks: how many (default: one for each GPU, or 2)."),
]
TraceFolder: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Of several ranks: record each with torch.profiler.")
]
LateRank: TypeAlias = Annotated[int | None, typer.Option(metavar="RANK", help="This rank sleeps in each traced step.")]
LateMs: TypeAlias = Annotated[float | None, typer.Option(metavar="MS", help="For so long, with --late-rank.")]
OutputFormat: TypeAlias = Annotated[TextOrJson, typer.Option("--format", "-f", help="How to write the report.")]

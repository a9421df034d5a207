"""`diag watch`: a running workload, live."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from diag.cli.choices import TextOrJson
from diag.cli.options import ThresholdsFile
from diag.errors import UsageError

_UNITS_S = {"ms": 0.001, "s": 1.0, "": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s?([a-z]*)")

SHORTEST_PERIOD_S = 0.1
LONGEST_PERIOD_S = 60.0
SHORTEST_STACKS_S = 10.0
"""From one dump to the next: the threads of a process stand still while it is asked."""


def watch(
    pid: Annotated[
        int | None,
        typer.Argument(
            min=1,
            metavar="[PID]",
            help="The process to watch, with its descendants. Default: all GPUs and their users.",
        ),
    ] = None,
    every: Annotated[str, typer.Option(metavar="TIME", help="From one reading to the next: 100ms to 1min.")] = "1s",
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Watch so long, as in 30s. Default: until it ends.")
    ] = None,
    stacks: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Ask for Python stacks each so often, at least 10s. Default: only on the key s."
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep the readings in FILE: diag report FILE judges them, diag tui FILE shows them."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Write once, and end: after two readings, --every apart, or after --for.")
    ] = False,
    output_format: Annotated[
        TextOrJson, typer.Option("--format", "-f", help="How to write it: json is a line for each reading.")
    ] = TextOrJson.TEXT,
    listen: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve Prometheus at /metrics, on loopback unless HOST is given."),
    ] = None,
    thresholds: ThresholdsFile = None,
) -> None:
    """Watch a running workload: its GPUs, processes, threads and stacks, and what is wrong with it.

    The workload needs no change and is not slowed down. In a terminal this is a live picture, in a pipe a block of
    text for each reading. Without PID it is about all GPUs and the processes that hold memory of one.

    Example: diag watch 4711
    Example: diag watch 4711 --once --format json
    Example: diag watch --every 5s --listen 9400 --record night.diag

    Exit status 3: There is no such process, or the record cannot be written.
    Exit status 4: There is neither a GPU nor a process to watch.
    Environment: NO_COLOR, TMPDIR
    See also: docs/live.md, diag hang, diag report
    """
    from diag.cli.live import Wishes, watch_and_tell

    period_s = _seconds("--every", every)
    if not SHORTEST_PERIOD_S <= period_s <= LONGEST_PERIOD_S:
        raise UsageError(f"--every {every} is out of bounds. Choose from 100ms to 1min.")
    stacks_s = None if stacks is None else _seconds("--stacks", stacks)
    if stacks_s is not None and stacks_s < SHORTEST_STACKS_S:
        raise UsageError(f"--stacks {stacks} would hold the workload up. Choose 10s or more.")
    if once and listen is not None:
        raise UsageError("--once ends before anybody could ask at --listen. Choose one.")
    watch_and_tell(
        Wishes(
            pid=pid,
            period_s=period_s,
            duration_s=None if for_ is None else _seconds("--for", for_),
            stacks_s=stacks_s,
            record=record,
            is_once=once,
            output_format=output_format,
            listen=listen,
            thresholds=thresholds,
        )
    )


def _seconds(option: str, text: str) -> float:
    """
    >>> _seconds("--every", "1s"), _seconds("--every", "250ms"), _seconds("--for", "1.5min"), _seconds("--for", "30")
    (1.0, 0.25, 90.0, 30.0)
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS_S or float(match[1]) == 0:
        raise UsageError(f"{option} {text} is not a time. Write a number and ms, s, min or h, as in {option} 30s")
    return float(match[1]) * _UNITS_S[match[2]]

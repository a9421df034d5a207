"""`diag run`: record a workload with a profiler, and report on it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli.telling import FailOn, Format, Telling
from diag.errors import UsageError

if TYPE_CHECKING:
    from diag.collect.torch_capture import Steps


class With(enum.StrEnum):
    NSYS = "nsys"
    NCU = "ncu"
    TORCH = "torch"


class ClockControl(enum.StrEnum):
    BASE = "base"
    NONE = "none"


class CacheControl(enum.StrEnum):
    ALL = "all"
    NONE = "none"


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="What to run, after --, as in: -- python train.py --lr 3")
    ],
    with_: Annotated[
        With | None,
        typer.Option(
            "--with",
            help="The profiler. Default: nsys where there is a GPU, else torch for a PyTorch program, else nsys.",
        ),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="nsys first, then ncu on the kernels by which most can be won; joined.")
    ] = False,
    delay: Annotated[int, typer.Option(min=0, metavar="S", help="nsys, torch: seconds before recording starts.")] = 0,
    duration: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="S", help="nsys, torch: seconds to record; the workload goes on after it (torch: 10)."
        ),
    ] = None,
    range_name: Annotated[
        str | None, typer.Option("--range", metavar="NAME", help="nsys: record the first NVTX range of this name.")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="nsys: sample the CPU too. It may double a run, and makes large files.")
    ] = False,
    steps: Annotated[
        str | None,
        typer.Option(metavar="WAIT:WARMUP:ACTIVE", help="torch: record by steps; a step ends with optimizer.step()."),
    ] = None,
    no_stacks: Annotated[bool, typer.Option("--no-stacks", help="torch: without the calls of Python.")] = False,
    kernel: Annotated[
        str | None, typer.Option(metavar="REGEX", help="ncu: only kernels whose function name contains it.")
    ] = None,
    launch_skip: Annotated[
        int, typer.Option(min=0, metavar="N", help="ncu: launches of these kernels to pass over.")
    ] = 0,
    launch_count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="ncu: launches to profile (default 20).")
    ] = None,
    section_set: Annotated[
        str | None, typer.Option("--set", metavar="NAME", help="ncu: set of sections (default full).")
    ] = None,
    sections: Annotated[
        list[str] | None, typer.Option("--section", metavar="NAME", help="ncu: a section, instead of a set.")
    ] = None,
    clock_control: Annotated[
        ClockControl | None, typer.Option(help="ncu: lock the clocks to base (its default), or leave them.")
    ] = None,
    cache_control: Annotated[
        CacheControl | None, typer.Option(help="ncu: flush caches before each replay (its default), or not.")
    ] = None,
    no_overhead: Annotated[
        bool,
        typer.Option(
            "--no-overhead",
            help="Do not run the workload a second time, without profiler, input and output, to measure the overhead.",
        ),
    ] = False,
    keep: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep the profiler's files there.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the case in FILE.")
    ] = None,
    report_to: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write the report there, not after the workload's output."),
    ] = None,
    output_format: Annotated[Format, typer.Option("--format", "-f", help="How to write the report.")] = Format.TEXT,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 if there is a finding of this severity or above.")
    ] = FailOn.NEVER,
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="Findings to tell in the text, and rows of each table.")
    ] = 5,
) -> None:
    """Run a program under a profiler, and report on it.

    The program's input, output and signals are its own, and so is the exit status if it failed; else it is that of
    diag report. After the report of a whole run the program is run again, without the profiler, to say what that cost:
    use --no-overhead for programs that must not run twice.

    Example: diag run -- python train.py
    Example: diag run --with nsys --delay 20 --duration 10 -o run.diag -- ./server
    Example: diag run --with torch --steps 5:2:3 -- python -m pkg.train
    Example: diag run --deep -- python train.py

    Exit status 1: The program went well, and there is a finding at or above --fail-on.
    Exit status 3: The profiler or COMMAND cannot be started, or what was recorded not be read.
    Exit status 4: Nothing was recorded of which anything could be told.
    Exit status of COMMAND: Where it failed, before any of the above.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_CEILINGS, DIAG_PLUGINS, DIAG_NSYS, DIAG_NCU, NO_COLOR, TMPDIR
    See also: docs/run.md, diag report, diag doctor
    """
    from diag.cli.recording import Wishes, run_and_tell
    from diag.collect.gpu import gpu_devices
    from diag.collect.ncu_options import FEW_LAUNCHES, NcuOptions
    from diag.collect.nsys_options import NsysOptions
    from diag.collect.recording import Plan, Profiler, check_command, profiler_for, usable_ncu
    from diag.collect.torch_capture import BRIEFLY_S, TorchOptions

    check_command(command)
    if deep and with_ is not None:
        raise UsageError("--deep uses nsys and ncu. Leave out --with.")
    if deep:
        usable_ncu()
    profiler = Profiler.NSYS if deep else Profiler(with_.value) if with_ else profiler_for(command)
    given = {
        "--delay": delay,
        "--duration": duration,
        "--range": range_name,
        "--sample": sample,
        "--steps": steps,
        "--no-stacks": no_stacks,
        "--kernel": kernel,
        "--launch-skip": launch_skip,
        "--launch-count": launch_count,
        "--set": section_set,
        "--section": sections,
        "--clock-control": clock_control,
        "--cache-control": cache_control,
    }
    _check([name for name, value in given.items() if value], "deep" if deep else profiler.value)
    plan = Plan(
        command=command,
        nsys=NsysOptions(bool(gpu_devices()), sample, delay, duration, range_name),
        ncu=NcuOptions(
            kernel=kernel,
            launch_skip=launch_skip,
            launch_count=launch_count or FEW_LAUNCHES,
            section_set=section_set,
            sections=sections or (),
            clock_control=clock_control and clock_control.value,
            cache_control=cache_control and cache_control.value,
        ),
        torch=TorchOptions(delay, duration or BRIEFLY_S, _steps(steps) if steps else None, stacks=not no_stacks),
    )
    wishes = Wishes(is_deep=deep, measures_overhead=not no_overhead, keep=keep, output=output)
    if report_to is not None and not report_to.absolute().parent.is_dir():
        raise UsageError(f"--report {report_to}: there is no folder {report_to.parent}. Make it, or choose another.")
    if status := run_and_tell(plan, profiler, wishes, Telling(output_format, fail_on, top, report_to)):
        raise typer.Exit(status)


_BY_TIME = ("--delay", "--duration")
_NSYS = (*_BY_TIME, "--range", "--sample")
_HOW_NCU_MEASURES = ("--set", "--section", "--clock-control", "--cache-control")
_OPTIONS = {
    "nsys": _NSYS,
    "ncu": ("--kernel", "--launch-skip", "--launch-count", *_HOW_NCU_MEASURES),
    "torch": (*_BY_TIME, "--steps", "--no-stacks"),
    "deep": (*_NSYS, *_HOW_NCU_MEASURES),
}
"""That mean something to each way of recording."""


def _check(given: Sequence[str], way: str) -> None:
    """Raises UsageError for options that would not be heeded."""
    for name in given:
        if name not in _OPTIONS[way]:
            ways = " and ".join(f"{'--deep' if way == 'deep' else f'--with {way}'}" for way in _ways_with(name))
            here = "--deep, which chooses kernels itself" if way == "deep" else f"--with {way}"
            raise UsageError(f"{name} is for {ways}, and this is {here}.")
    if "--steps" in given and set(given) & set(_BY_TIME):
        raise UsageError("--steps records by steps, --delay and --duration by time. Choose one.")


def _ways_with(name: str) -> list[str]:
    return [way for way, names in _OPTIONS.items() if name in names]


def _steps(text: str) -> Steps:
    from diag.collect.torch_capture import Steps

    parts = text.split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts) or int(parts[2]) == 0:
        raise UsageError(f"--steps {text} is not WAIT:WARMUP:ACTIVE. Write three numbers, as in --steps 5:2:3")
    return Steps(*map(int, parts))

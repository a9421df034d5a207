"""`diag hang`: why does nothing move?"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli.opening import opened
from diag.cli.options import NoCache, ThresholdsFile
from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import InputError, NothingToTell, StorageError, UsageError

if TYPE_CHECKING:
    from diag.collect.hang_capture import Looked
    from diag.ingest.importer import ImportOptions
    from diag.render.hang_view import HangView
    from diag.rules.analysis import AnalysisOptions

_PID = re.compile(r"[0-9]{1,10}")


class HangFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def hang(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="PID|INPUT...",
            help="Processes that run, and files or folders: recorder dumps, stacks, heartbeats, logs, or one case.",
        ),
    ],
    output_format: Annotated[HangFormat, typer.Option("--format", "-f", help="How to write it.")] = HangFormat.TEXT,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Faults and wait chains to tell.")] = 5,
    wait: Annotated[
        float, typer.Option(min=0, max=600, metavar="S", help="Longest wait for the dumps of a live job.")
    ] = 15.0,
    evidence: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep there what was learnt from the processes.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the case in FILE.")
    ] = None,
    no_cache: NoCache = False,
    thresholds: ThresholdsFile = None,
) -> None:
    """Say why a distributed job stands still: which ranks are at fault, and how it knows.

    All evidence is optional and is put together: dumps of PyTorch's flight recorder, stacks of py-spy or faulthandler,
    heartbeat files, logs of NCCL, the watchdog and Slurm. Of a process it takes stacks, and a dump where the recorder
    has a pipe; it never kills or changes anything. The process of a launcher stands for its ranks.

    Example: diag hang dumps/
    Example: diag hang dumps/ stacks/ beats/ slurm-4711.out --format json
    Example: diag hang 4711 --evidence night/

    Exit status 3: An input could not be read, or the output not written.
    Exit status 4: Nothing could be told from these inputs.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_PLUGINS, DIAG_NSYS, NO_COLOR, TMPDIR
    See also: docs/hang.md, docs/hang-method.md, diag watch
    """
    from tempfile import TemporaryDirectory  # only now: it would slow down diag --help

    from diag.ingest.importer import ImportOptions
    from diag.rules import thresholds as limits
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.stored import keep_only

    pids, paths = told_apart(inputs)
    if evidence is not None and not pids:
        raise UsageError("--evidence keeps what is learnt from processes. Name one, as in: diag hang 4711")
    limits.load(thresholds)
    options = AnalysisOptions(thresholds=thresholds)
    with ExitStack() as until_written, StatusLine() as status:
        why_not: Sequence[str] = ()
        if pids:
            folder = evidence or Path(until_written.enter_context(TemporaryDirectory(prefix="diag-hang-")))
            looked = _look(pids, folder, wait, status)
            if looked.is_blank and not paths:
                raise InputError(" ".join(looked.why_not))
            paths, why_not = [*paths, *looked.files], looked.why_not
        imports = ImportOptions(
            keep=output, finish=lambda kept: keep_only(kept, options), use_cache=not no_cache, tolerant=True, note=note
        )
        view = _view(paths, imports, options, why_not, status)
    text = _rendered(view, output_format, top)
    write(text)
    if not view.tells_something:
        raise NothingToTell("Nothing could be told from these inputs; the report says what was not captured.")


def told_apart(inputs: Sequence[str]) -> tuple[list[int], list[Path]]:
    """Numbers are processes, unless a file or folder is called so.

    >>> told_apart(["4711", "dumps"])
    ([4711], [PosixPath('dumps')])
    """
    pids = [int(each) for each in inputs if _PID.fullmatch(each) and not Path(each).exists()]
    return pids, [Path(each) for each in inputs if not _PID.fullmatch(each) or Path(each).exists()]


def _look(pids: Sequence[int], folder: Path, wait_s: float, status: StatusLine) -> Looked:
    from diag.collect.hang_capture import look

    try:
        folder.mkdir(parents=True, exist_ok=True)
        return look(pids, folder, status, wait_s=wait_s)
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror}. Choose another --evidence.") from error


def _view(
    paths: Sequence[Path],
    imports: ImportOptions,
    options: AnalysisOptions,
    why_not: Sequence[str],
    status: StatusLine,
) -> HangView:
    from diag.ranks.job import Job
    from diag.render.hang_view import hang_view
    from diag.rules.stored import report_of

    with opened(paths, imports, status) as case:
        status("applying rules")
        return hang_view(Job(case), report_of(case, options), why_not)


def _rendered(view: HangView, output_format: HangFormat, top: int) -> str:
    from diag.render.hang_json import render_hang_json
    from diag.render.hang_markdown import render_hang_markdown
    from diag.render.hang_text import render_hang_text

    match output_format:
        case HangFormat.JSON:
            return render_hang_json(view)
        case HangFormat.MARKDOWN:
            return render_hang_markdown(view, top=top)
        case HangFormat.TEXT:
            return render_hang_text(view, width=width(), color=color(), top=top)

"""`diag log`: what was tried, why, and what it gained and cost."""

from __future__ import annotations

import enum
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diag.cli.compare import side_of_path
from diag.cli.opening import opened
from diag.cli.terminal import StatusLine, color, note, width, write
from diag.errors import InputError, NothingToTell, UsageError

if TYPE_CHECKING:
    from diag.store.experiments import Log


class LogFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class Outcome(enum.StrEnum):
    OPEN = "open"
    KEPT = "kept"
    REVERTED = "reverted"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


def log(
    case_path: Annotated[Path, typer.Argument(metavar="CASE", readable=False, help="A case; a new one, with --goal.")],
    goal: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Begin an entry: what should become how much better.")
    ] = None,
    finish: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Add to entry N what was not told yet.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What you expect of the change, and by which formula.")
    ] = None,
    expect: Annotated[
        str | None, typer.Option(metavar="FIGURE", help="That value after the change, with its unit: '9.2 ms'.")
    ] = None,
    evidence: Annotated[str | None, typer.Option(metavar="TEXT", help="What the model rests on.")] = None,
    finding: Annotated[str | None, typer.Option(metavar="ID", help="The finding that says so.")] = None,
    recording: Annotated[Path | None, typer.Option(metavar="FILE", help="The trace that shows it.")] = None,
    change: Annotated[str | None, typer.Option(metavar="TEXT", help="The one thing that you change.")] = None,
    gain: Annotated[str | None, typer.Option(metavar="TEXT", help="What was measured of it.")] = None,
    gained: Annotated[str | None, typer.Option(metavar="FIGURES", help="Before and after: '12.4 -> 9.3 ms'.")] = None,
    comparing: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="BEFORE AFTER", help="The gain is what diag compare says of these."),
    ] = None,
    cost: Annotated[str | None, typer.Option(metavar="TEXT", help="What it was paid with.")] = None,
    paid: Annotated[str | None, typer.Option(metavar="FIGURES", help="Before and after: '0 -> 1.5 GB'.")] = None,
    outcome: Annotated[
        Outcome | None,
        typer.Option(help="What became of the change; refuted: the measurement contradicts the model."),
    ] = None,
    output_format: Annotated[LogFormat, typer.Option("--format", "-f", help="How to write it.")] = LogFormat.TEXT,
) -> None:
    """Keep the log of experiments in a case: goal, model, evidence, one change, gain and cost.

    Without options the log is shown. An entry is begun with --goal, before anything is measured, and completed with
    --finish; what was told is not rewritten.

    Example: diag log run.diag
    Example: diag log run.diag --goal "a step under 10 ms" --model "copies hide behind kernels: 12.4 - 3.2 ms"
    --expect "9.2 ms" --evidence "copies from pageable memory" --change "pin_memory=True"
    Example: diag log run.diag --finish 1 --gain "step" --gained "12.4 -> 9.3 ms" --cost "pinned host memory"
    --paid "0 -> 1.5 GB" --outcome kept

    Exit status 3: The case could not be read, or not written.
    Exit status 4: With --compare: the two may not be compared.
    Environment: DIAG_CACHE, DIAG_CACHE_BYTES, DIAG_PLUGINS, DIAG_NSYS, NO_COLOR, TMPDIR
    See also: docs/log.md, diag compare, diag learn
    """
    if goal is not None and finish is not None:
        raise UsageError("--goal begins an entry, --finish completes one. Choose one of them.")
    told = {
        "model": model,
        **_figure("expected", "--expect", expect),
        "evidence": evidence,
        "finding_id": finding,
        "recording": recording,
        "change": change,
        "gain": gain,
        **_before_and_after("gain", "--gained", gained),
        "cost": cost,
        **_before_and_after("cost", "--paid", paid),
        "outcome": None if outcome is None else outcome.value,
    }
    told = {name: _text(value) for name, value in told.items() if value is not None}
    if comparing is not None:
        told |= _gain_of(comparing, told)
    if goal is not None:
        shown = _begun(case_path, str(_text(goal)), told)
    elif finish is not None:
        shown = _completed(case_path, finish, told)
    elif told:
        raise UsageError("Whose are these? Begin an entry with --goal TEXT, or complete entry N with --finish N.")
    else:
        shown = _kept(case_path)
    _write(shown, output_format)


def _begun(path: Path, goal: str, told: dict[str, Any]) -> Log:
    from diag.ingest.own_case import changed
    from diag.store.experiments import Experiment, append

    told.setdefault("outcome", "undecided" if "gain" in told or "gain_after" in told else "open")
    entry = Experiment(goal, time.time_ns(), **told)
    is_new = not path.exists()
    with changed(path, note) as case:
        number = append(case, entry)
    if is_new:
        note(f"{path} is a new case, with a log and no trace. Put one beside it with: diag report INPUT -o {path}")
    return {number: entry}


def _completed(path: Path, number: int, told: dict[str, Any]) -> Log:
    from diag.ingest.own_case import changed
    from diag.store.experiments import complete

    if not told:
        raise UsageError(f"What is to be added to entry {number}? For example: --gain, --cost and --outcome.")
    _check_exists(path)
    with changed(path, note) as case:
        return {number: complete(case, number, **told)}


def _kept(path: Path) -> Log:
    from diag.ingest.importer import ImportOptions
    from diag.store.experiments import log_of

    _check_exists(path)
    with StatusLine() as status, opened([path], ImportOptions(note=note), status) as case:
        kept = log_of(case)
    if not kept:
        note(f"The log of {path} is empty. Begin it with: diag log {path} --goal TEXT")
    return kept


def _check_exists(path: Path) -> None:
    """Raises InputError for what is no case; to look for a log in a trace, it would have to be imported."""
    from diag.store.kept_file import is_case

    if not path.exists():
        raise InputError(f"There is no {path}. Begin its log with: diag log {path} --goal TEXT")
    try:
        with path.open("rb") as file:
            is_one = is_case(file.read(72))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    if not is_one:
        raise InputError(f"{path} is not a diag case. Make one with: diag report {path} -o CASE")


def _gain_of(paths: tuple[Path, Path], told: dict[str, Any]) -> dict[str, Any]:
    """The gain as `diag compare` tells it. Raises NothingToTell where the two may not be compared."""
    from diag.compare.comparison import compare
    from diag.ingest.importer import ImportOptions
    from diag.render.experiment_phrases import gain_of
    from diag.rules.analysis import AnalysisOptions

    if any(name.startswith("gain") for name in told):
        raise UsageError("--compare fills in the gain. Leave --gain and --gained away.")
    with StatusLine() as status:
        before, after = (side_of_path(path, AnalysisOptions(), ImportOptions(note=note), status) for path in paths)
        gain = gain_of(compare(before, after))
    if gain is None:
        raise NothingToTell(
            f"The two have no figure to compare, or may not be compared: diag compare {paths[0]} {paths[1]}"
        )
    return gain


def _figure(name: str, option: str, text: str | None) -> dict[str, Any]:
    from diag.cli.plan_questions import parsed
    from diag.model.stated_figures import figure

    found = parsed(option, text, figure)
    return {f"{name}_value": found[0], f"{name}_unit": found[1]} if found else {}


def _before_and_after(name: str, option: str, text: str | None) -> dict[str, Any]:
    from diag.cli.plan_questions import parsed
    from diag.model.stated_figures import before_and_after

    found = parsed(option, text, before_and_after)
    return {f"{name}_before": found[0], f"{name}_after": found[1], f"{name}_unit": found[2]} if found else {}


def _text(value: Any) -> Any:
    """Words of the command line may hold bytes that are no text; the case keeps them as text."""
    is_word = isinstance(value, str | Path)
    return os.fsencode(value).decode("utf-8", "backslashreplace") if is_word else value


def _write(shown: Log, output_format: LogFormat) -> None:
    from diag.render.experiment_log import LOG_RENDERERS

    if shown or output_format is LogFormat.JSON:
        write(LOG_RENDERERS[output_format.value](shown, width=width(), color=color()))

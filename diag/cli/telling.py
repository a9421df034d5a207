"""Reads inputs and tells what the rules say of them: what `diag report` and `diag run` share."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli.terminal import StatusLine, braille, color, note, remark, width, write
from diag.errors import NothingToTell, StorageError

if TYPE_CHECKING:
    from diag.rules.analysis import AnalysisOptions
    from diag.rules.report import Report
    from diag.store.case import Case


class Format(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


class FailOn(enum.StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"
    NEVER = "never"


@dataclass(frozen=True)
class Telling:
    """How a report is shown, where, and which findings are failures."""

    output_format: Format
    fail_on: FailOn
    top: int
    to: Path | None = None
    """A file instead of standard output."""


def tell(
    opening: Callable[[StatusLine], AbstractContextManager[Case]],
    options: AnalysisOptions,
    telling: Telling,
    compared: Callable[[Report, StatusLine], Report] = lambda report, _: report,
) -> int:
    """Writes the report on the case that `opening` gives, and returns the exit status: 1 where a finding is a failure.

    Raises NothingToTell.
    """
    from diag.render import RENDERERS, WITH_TIMELINE, timeline_of
    from diag.rules.baseline import failures
    from diag.rules.finding import SEVERITIES
    from diag.rules.stored import report_of
    from diag.store.experiments import log_of

    with StatusLine() as status:
        with opening(status) as case:
            status("applying rules")
            result = replace(report_of(case, options), experiments=log_of(case))
            timeline = None
            if telling.output_format.value in WITH_TIMELINE:
                status("drawing the timeline")
                timeline = timeline_of(case, result)
        result = compared(result, status)
    is_shown = telling.to is None
    text = RENDERERS[telling.output_format.value](
        result,
        width=width(),
        color=is_shown and color(),
        braille=not is_shown or braille(),
        top=telling.top,
        timeline=timeline,
    )
    _write(text if text.endswith("\n") else text + "\n", telling.to)
    if telling.output_format is Format.HTML and is_shown and sys.stdout.isatty():
        remark("This is a page for a browser. Write it to a file: diag report … --format html > report.html")
    if not result.tells_something:
        raise NothingToTell("Nothing could be told from these inputs; the report says what was not captured.")
    if telling.fail_on is FailOn.NEVER:
        return 0
    failed = failures(result, SEVERITIES[SEVERITIES.index(telling.fail_on.value) :])
    if failed:
        which = f"{len(failed)} new or worse finding" if result.baseline is not None else f"{len(failed)} finding"
        note(f"{which}{'' if len(failed) == 1 else 's'} at or above {telling.fail_on.value}.")
    return 1 if failed else 0


def _write(text: str, to: Path | None) -> None:
    if to is None:
        write(text)
        return
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"The report cannot be written to {to}: {error.strerror}.") from error

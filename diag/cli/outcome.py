"""The one place that turns errors into sentences and exit statuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from diag.cli.memory import as_out_of_memory, check_limit, spare_memory
from diag.cli.signals import ENDING
from diag.errors import DiagError, OutOfMemory, UsageError


def run() -> int:
    """Runs the command line and returns its exit status. Raises what is neither expected nor about the command line."""
    _use_streams_as_they_are()
    spare_memory()
    try:
        check_limit()
        from diag.cli.verbs import app  # only now: they load more than may fit into memory

        return int(app(standalone_mode=False) or 0)
    except BaseException as error:
        if ENDING.number is not None:
            raise
        if short := as_out_of_memory(error):
            _end_now(short)
        return told(error)


def told(error: BaseException) -> int:
    """Says an expected error in a sentence and returns its exit status. Raises any other again."""
    if isinstance(error, DiagError):
        _say(str(error))
        return error.exit_status
    return _wrong_usage(error)


def _wrong_usage(error: BaseException) -> int:
    from diag.cli.verb import wrong_usage

    said = wrong_usage(error)
    if said is None:
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        print(str(error), file=sys.stderr)
    else:
        _say(said)
    return UsageError.exit_status


def _say(text: str) -> None:
    from diag.render.escape import one_line

    print(f"diag: {one_line(text)}", file=sys.stderr)


def _end_now(short: OutOfMemory) -> NoReturn:
    """Everything is closed and removed by now. What modules do at their end may need memory, too, and crash without."""
    print(f"diag: {short}", file=sys.stderr, flush=True)
    os._exit(short.exit_status)


def _use_streams_as_they_are() -> None:
    """A closed stream swallows what is written, and one that is not UTF-8 gets escapes: neither ends the program."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the program ends
        else:
            stream.reconfigure(errors="backslashreplace")

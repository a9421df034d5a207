"""The one place that turns errors and signals into sentences and exit statuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from diag.cli.memory import as_out_of_memory, check_limit, spare_memory
from diag.cli.signals import ENDING
from diag.errors import DiagError, OutOfMemory, UsageError


def main() -> None:
    """Runs the command line and exits with the status of docs/json-contract.md."""
    ENDING.watch()
    _use_streams_as_they_are()
    spare_memory()
    try:
        check_limit()
        from diag.cli.verbs import app  # only now: an interrupt while modules load is an interrupt, too

        status = app(standalone_mode=False)
    except BaseException as error:
        # Typer, SQLite and NumPy turn the exception of an interrupt into others on its way here.
        if ENDING.number is not None:
            _end_interrupted()
        if short := as_out_of_memory(error):
            _end_now(short)
        _end_if_wrong_usage(error)
        if not isinstance(error, DiagError):
            raise
        _say(str(error))
        sys.exit(error.exit_status)
    if ENDING.number is not None:  # Typer makes a status of it, too
        _end_interrupted()
    sys.exit(status)


def _end_interrupted() -> NoReturn:
    kept = "what was read is kept, and is not read again next time" if ENDING.is_case_kept else ""
    _say(f"interrupted; {kept or 'nothing was kept of what was being read'}.")
    sys.exit(ENDING.exit_status)


def _end_if_wrong_usage(error: BaseException) -> None:
    from diag.cli.verb import wrong_usage

    said = wrong_usage(error)
    if said is None:
        return
    if type(error).__name__ == "NoArgsIsHelpError":
        print(str(error), file=sys.stderr)
    else:
        _say(said)
    sys.exit(UsageError.exit_status)


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


if __name__ == "__main__":
    main()

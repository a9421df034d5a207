"""The one place that turns errors and signals into sentences and exit statuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from diag.cli.memory import as_out_of_memory, check_limit, spare_memory
from diag.cli.signals import Ending
from diag.errors import DiagError, OutOfMemory


def main() -> None:
    """Runs the command line and exits with the status of docs/json-contract.md."""
    ending = Ending()
    ending.watch()
    _use_streams_as_they_are()
    spare_memory()
    try:
        check_limit()
        from diag.cli.verbs import app  # only now: an interrupt while modules load is an interrupt, too

        app()
    except BaseException as error:
        # Typer, SQLite and NumPy turn the exception of an interrupt into others on its way here.
        if ending.number is not None:
            _say("interrupted; nothing was kept of what was being read.")
            sys.exit(ending.exit_status)
        if short := as_out_of_memory(error):
            _end_now(short)
        if not isinstance(error, DiagError):
            raise
        _say(str(error))
        sys.exit(error.exit_status)


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

"""The command `diag`: it watches for signals before it loads anything that takes time, and ends when one came."""

from __future__ import annotations

import sys

from diag.cli.signals import ENDING


def main() -> None:
    """Runs the command line and exits with the status of docs/json-contract.md."""
    try:
        ENDING.watch()
        from diag.cli.outcome import run  # only now: an interrupt while modules load is an interrupt, too

        status = run()
        ENDING.unwatch()
    except BaseException:
        # Typer, SQLite and NumPy turn the exception of an interrupt into others on its way here.
        if ENDING.number is None:
            raise
    if ENDING.number is not None:  # Typer makes a status of it, too
        # Nothing is imported any more: what was interrupted may be the first import of a module, and NumPy allows one.
        print(f"diag: interrupted; {ENDING.what_is_kept}.", file=sys.stderr)
        status = ENDING.exit_status
    sys.exit(status)


if __name__ == "__main__":
    main()

"""Makes jobs hang and keeps what they leave behind: python -m diag.probes.faults.hang NAME... -o FOLDER

Without a name it lists the faults.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch._inductor  # noqa: F401  # once, before ranks are forked: a dump with frames takes 1 s to import it

from diag.errors import DiagError, UsageError
from diag.probes.faults.hang import table
from diag.probes.faults.hang.evidence import STACK_TOOLS, default_stack_tool
from diag.probes.faults.hang.experiment import run


def main(arguments: list[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    if not chosen.names:
        print(listing())
        return 0
    try:
        faults = list(table.FAULTS.values()) if chosen.names == ["all"] else [*map(table.find, chosen.names)]
        for fault in faults:
            into = chosen.output / fault.name
            if into.exists():
                raise UsageError(f"{into} exists already. Name another folder: -o")
            ran = run(fault, into, is_sick=not chosen.healthy, stacks=chosen.stacks or default_stack_tool())
            ended = ", ".join(f"{rank}: {code}" for rank, code in ran.exits.items()) or "none"
            print(f"{into}  {ran.took_s:.1f} s, ranks that ended (exit status): {ended}", flush=True)
    except DiagError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def listing() -> str:
    """One line for each fault."""
    return "\n".join(
        f"{fault.name:19} {fault.world_size} ranks, {fault.cause}: {fault.idea}" for fault in table.FAULTS.values()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m diag.probes.faults.hang", description="Make a small job hang.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the faults, or 'all'; without a name: list them")
    parser.add_argument("-o", dest="output", type=Path, default=Path("hangs"), help="default: hangs, a folder a fault")
    parser.add_argument("--healthy", action="store_true", help="run their healthy twins, which end by themselves")
    parser.add_argument("--stacks", choices=STACK_TOOLS, help="default: py-spy where it is installed")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Runs one fault and prints, as JSON, what it injected: python -m diag.probes.faults NAME --dose 0.3 --seed 7"""

from __future__ import annotations

import argparse
import json
import random
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from diag.errors import DiagError, UsageError
from diag.probes.faults import table
from diag.probes.faults.fault import Device
from diag.probes.faults.loop import run
from diag.probes.faults.profiled import profiled


def main(arguments: list[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        if chosen.list:
            print(listing())
            return 0
        if chosen.name is None:
            raise UsageError("Name a fault. List them with: python -m diag.probes.faults --list")
        device: Device = chosen.device or ("cuda" if torch.cuda.is_available() else "cpu")
        injected = run(
            table.find(chosen.name),
            dose=chosen.dose,
            seed=chosen.seed,
            steps=chosen.steps,
            device=device,
            around=profiled(chosen.trace) if chosen.trace else None,
        )
    except DiagError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    print(json.dumps({**asdict(injected), "share": injected.share}))
    return 0


def listing() -> str:
    """One line for each fault: what it is, and which rule must find it under which capture."""
    lines = []
    for fault in table.FAULTS.values():
        where = [("cpu", fault.on_cpu), ("gpu", fault.on_gpu)]
        rules = [f"{on} {tool}: {', '.join(rules)}" for on, by in where for tool, rules in by.items()]
        lines.append(f"{fault.name:16} {fault.idea}\n{'':17}{' · '.join(rules)}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m diag.probes.faults", description="Run a loop with one fault.")
    parser.add_argument("name", nargs="?", help="the fault (--list)")
    parser.add_argument("--list", action="store_true", help="list the faults and the rules that must find them")
    parser.add_argument("--dose", type=float, default=0.3, help="share of the loop that the fault takes; 0: healthy")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="draws places, sizes and names")
    parser.add_argument("--steps", type=int, default=40, help="steps of the loop (default: 40)")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where PyTorch sees one")
    parser.add_argument("--trace", type=Path, help="record the loop with torch.profiler to this file (.json.gz)")
    return parser


if __name__ == "__main__":
    sys.exit(main())

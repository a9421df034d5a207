"""Jobs that stand still, each made in a process of its own: ranks are forked from one that has only one thread.

Jobs are told apart by their cases, which are numbers: whoever looks at processes does not read there what is wrong.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from diag.errors import DiagError

NAMES = (
    "skipped",
    "swapped-order",
    "wrong-shape",
    "dies",
    "sleeps",
    "holds-gil",
    "recv-cycle",
    "mismatched-group",
    "wrong-world-size",
)
"""Of `diag.probes.faults.hang`."""

LONGEST_S = 300
"""For all jobs of one process; each has a deadline of its own, which is shorter."""


def hang(names: Sequence[str], folder: Path, *, is_sick: bool = True, timeouts: bool = False) -> Mapping[str, Path]:
    """By name the folder of what each job left; `timeouts` lets one more give up (`diag.learn.giving_up`).

    Raises DiagError where a job went another way.
    """
    cases = [NAMES.index(name) for name in names]
    command = [sys.executable, "-m", "diag.learn.stuck", str(folder), *map(str, cases)]
    options = [*([] if is_sick else ["--healthy"]), *(["--timeouts"] if timeouts else [])]
    try:
        ran = subprocess.run([*command, *options], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise DiagError(f"The job neither hung nor ended within {LONGEST_S} s. Try it where less else runs.") from error
    if ran.returncode:
        raise DiagError(f"The job did not come to hang. {ran.stderr.strip()[-2000:]}")
    return {name: folder / f"job-{case}" for name, case in zip(names, cases, strict=True)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", type=int, nargs="*")
    parser.add_argument("--healthy", action="store_true")
    parser.add_argument("--timeouts", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.timeouts:
            from diag.learn.giving_up import give_up

            give_up(chosen.folder)
        for case in chosen.cases:
            _run(NAMES[case], chosen.folder / f"job-{case}", is_sick=not chosen.healthy)
    except DiagError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def _run(name: str, into: Path, *, is_sick: bool) -> None:
    import torch._inductor  # noqa: F401  # once, before ranks are forked: a dump with frames takes 1 s to import it

    from diag.learn.disguise import disguised
    from diag.probes.faults.hang import experiment, recorder, table

    recorder.dump_function()  # raises ToolMissing here, not in the logs of ranks
    fault = table.find(name)
    with disguised(sys.modules[fault.program.__module__]):
        experiment.run(fault, into, is_sick=is_sick, stacks="faulthandler")
    experiment.truth_of(into).unlink()  # which says what the reader is to find


if __name__ == "__main__":
    sys.exit(main())

"""The command line of `ncu`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FEW_LAUNCHES = 20
"""Each launch is run again for every group of counters, some 40 times with the full set."""


@dataclass(frozen=True)
class NcuOptions:
    kernel: str | None = None
    """Regular expression that a kernel's function name must contain."""
    launch_skip: int = 0
    launch_count: int = FEW_LAUNCHES
    section_set: str | None = None
    sections: Sequence[str] = ()
    clock_control: str | None = None
    """'base' or 'none'; None: as ncu does by itself, which is base."""
    cache_control: str | None = None
    """'all' or 'none'; None: as ncu does by itself, which is to flush all."""


def ncu_command(
    ncu: Path, options: NcuOptions, output: Path, log: Path, workload: Sequence[str | Path]
) -> list[str | Path]:
    """The arguments that profile `workload` into `output`, to whose name ncu adds .ncu-rep; it talks to `log` alone.

    Option by option: Nsight Compute CLI, "Command Line Options".
    """
    section_set = options.section_set or (None if options.sections else "full")
    wanted = {
        "--kernel-name": f"regex:{options.kernel}" if options.kernel else None,
        "--launch-skip": options.launch_skip or None,
        "--launch-count": options.launch_count,
        "--set": section_set,
        "--clock-control": options.clock_control,
        "--cache-control": options.cache_control,
        "--target-processes": "all",  # what a launcher or shell starts, too
        "--log-file": log,
        "--export": output,
    }
    given = [word for name, value in wanted.items() if value is not None for word in (name, str(value))]
    sections = [word for section in options.sections for word in ("--section", section)]
    return [ncu, *given, *sections, "--force-overwrite", *workload]


def exactly(functions: Sequence[str]) -> str:
    """A pattern for kernels of these function names and no others.

    >>> exactly(["gemm", "copy<int>"])
    '^(gemm|copy<int>)$'
    """
    return f"^({'|'.join(map(re.escape, functions))})$"

"""A loop of equal steps, recorded so that `diag compare` can tell two of them apart."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from diag.learn.lesson import Lab

if TYPE_CHECKING:
    from diag.kernels.operator import DType
    from diag.probes.probe import Setup, Workload
    from diag.probes.runs import Run

SIDES = {"tiny": 64, "small": 512, "full": 512}
"""Rows and columns of the matrices."""

RUNS = {"tiny": 1, "small": 3, "full": 3}
"""Recordings of each loop: they take turns, as what disturbs a machine comes and goes."""


@dataclass(frozen=True)
class Loop:
    """Products of matrices, the same in each step, and how it is recorded."""

    products: int = 4
    smaller: int = 1
    """By which the rows and columns of SIDES are divided."""
    dtype: DType = "fp32"
    n_steps: int = 20
    stacks: bool = False
    """Whether calls of Python are recorded, too, which costs time."""


def record_in_turn(lab: Lab, loops: Mapping[str, Loop], runs: int) -> None:
    """So many traces of each loop, in a folder of its name."""
    from diag.probes.traced import record

    for name in loops:
        (lab.folder / name).mkdir()
    for number in range(1, 1 + runs):
        for name, loop in loops.items():
            lab.progress(f"recording {name}, {number} of {runs}")
            trace = lab.folder / name / f"{number}.pt.trace.json.gz"
            record(run_of_loop(lab, loop), trace, loop.n_steps, stacks=loop.stacks)


def run_of_loop(lab: Lab, loop: Loop) -> Run:
    from diag.learn.probing import run_of

    side = SIDES[lab.scale] // loop.smaller
    run = run_of(lab, "gemm", "matmul" if lab.device == "cpu" else "pipelined", dict.fromkeys("MNK", side))

    def make(setup: Setup, _: str) -> Workload:
        return _workload(setup, loop.products)

    return replace(run, variant="loop", setup=replace(run.setup, dtype=loop.dtype), probe=replace(run.probe, make=make))


def _workload(setup: Setup, products: int) -> Workload:
    import torch

    from diag.probes import tensors
    from diag.probes.probe import Workload

    a, b = tensors.random(setup, (setup["M"], setup["K"]), (setup["K"], setup["N"]))
    out = torch.empty(setup["M"], setup["N"], dtype=a.dtype, device=a.device)

    def step() -> None:
        for _ in range(products):
            torch.mm(a, b, out=out)

    return Workload(steps=[step])


# ---- a disturbance of our own --------------------------------------------------------------------------------------

_BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Ends with the process that started it, however that ends."""


@contextmanager
def one_core_taken() -> Iterator[None]:
    """A process that does nothing has one of our cores, as much of it as the system gives it."""
    process = subprocess.Popen([sys.executable, "-S", "-c", _BURN])
    try:
        with suppress(AttributeError, OSError):  # not every system lets us choose
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        yield
    finally:
        process.kill()
        process.wait()

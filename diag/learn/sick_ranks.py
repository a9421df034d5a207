"""One rank of a job that has one thing wrong with it; `run` starts all of them.

Each step of the healthy job computes a little and then averages a buffer over the ranks. The sick ones are told apart
by their cases, which are numbers: whoever looks at processes or files does not read the answer there.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from diag.errors import DiagError
from diag.probes.collective import world
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.launch import together
from diag.probes.collective.primitives import ELEMENT_BYTES
from diag.probes.collective.world import World
from diag.probes.probe import Checked, Shape, Step

SIDE = 256
"""Of the matrices that a step multiplies."""
BUFFER_BYTES = 1 << 20
LATE_MS = 20.0
STEPS = 64
"""More than are traced."""
LEAST_BYTES, MOST_BYTES = 1 << 10, 1 << 24
"""Of the benchmark."""
PIECE_BYTES = 1 << 15
"""In which a buffer is averaged, a call for each."""


def run(names: Sequence[str], n_ranks: int, folder: Path, seed: int) -> Mapping[str, Path]:
    """What each leaves behind: a folder of traces, a file for each rank, or one of a benchmark. Raises DiagError."""
    cases = [list(CASES).index(name) for name in names]
    for case in cases:
        (folder / f"job-{case}").mkdir()
    command = [sys.executable, "-m", "diag.learn.sick_ranks", *map(str, cases), "--folder", str(folder)]
    for _ in together([*command, "--seed", str(seed)], n_ranks):
        pass
    return {name: folder / f"job-{case}" for name, case in zip(names, cases, strict=True)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=int, nargs="+")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rendezvous", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        place = world.Place.of_environment(os.environ)
        with world.opened(place, "cpu", chosen.rendezvous) as ranks:
            for case in chosen.cases:
                list(CASES.values())[case](ranks, chosen.folder / f"job-{case}", Random(chosen.seed))
    except DiagError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


# ---- jobs that are traced ------------------------------------------------------------------------------------------


def healthy(ranks: World, folder: Path, _: Random) -> None:
    _traced(ranks, folder, lambda _: 0.0)


def late_rank(ranks: World, folder: Path, draw: Random) -> None:
    late = draw.randrange(ranks.n_ranks)
    _traced(ranks, folder, lambda _: LATE_MS if ranks.rank == late else 0.0)


def now_one_now_another(ranks: World, folder: Path, draw: Random) -> None:
    late = [number % ranks.n_ranks for number in range(STEPS)]
    draw.shuffle(late)
    _traced(ranks, folder, lambda step: LATE_MS if late[step] == ranks.rank else 0.0)


def _traced(ranks: World, folder: Path, late_ms: Callable[[int], float]) -> None:
    from diag.probes.collective.traced import record

    exercise = Exercise(_step(ranks, late_ms), _unchecked, [])
    record(ranks, exercise, "training", "steps", folder, None)


def _step(ranks: World, late_ms: Callable[[int], float]) -> Step:
    import torch
    import torch.distributed as dist

    weights = torch.ones(SIDE, SIDE)
    gradients = ranks.zeros(BUFFER_BYTES // ELEMENT_BYTES)
    done = 0

    def step() -> None:
        nonlocal done
        for _ in range(4):
            torch.mm(weights, weights)
        if waits_ms := late_ms(done):
            time.sleep(waits_ms / 1e3)
        dist.all_reduce(gradients)
        done += 1

    return step


def _unchecked() -> Checked:
    return Checked(0.0, 0.0, 0.0)


# ---- a job that is measured ----------------------------------------------------------------------------------------


def benchmark(ranks: World, folder: Path, _: Random) -> None:
    _measured(ranks, folder, lambda probe: probe)


def narrow_sum(ranks: World, folder: Path, _: Random) -> None:
    """It goes over the wire in BF16, and what comes back is FP32 again."""
    import torch.distributed as dist

    def call(buffer: Any) -> None:
        narrow = buffer.bfloat16()
        dist.all_reduce(narrow)
        buffer.copy_(narrow)

    _measured(ranks, folder, lambda probe: replace(probe, make=_made(call)))


def small_pieces(ranks: World, folder: Path, _: Random) -> None:
    """The same bytes, by a call for each piece."""
    import torch.distributed as dist

    def call(buffer: Any) -> None:
        for piece in buffer.split(PIECE_BYTES // ELEMENT_BYTES):
            dist.all_reduce(piece)

    _measured(ranks, folder, lambda probe: replace(probe, make=_made(call)))


def _measured(ranks: World, folder: Path, changed: Callable[[CollectiveProbe], CollectiveProbe]) -> None:
    from diag.model.benchmark import encoded
    from diag.probes.collective.catalogue import named
    from diag.probes.collective.measured import measured
    from diag.probes.collective.request import Request

    request = Request(["all_reduce"], "tiny", shape={"least": LEAST_BYTES, "most": MOST_BYTES})
    probes = [changed(each) for each in named(request.names)]
    results = measured(ranks, probes, request, lambda _: None)
    if ranks.rank == 0:
        (folder / "ranks.benchmark.json").write_bytes(encoded(results.benchmark(ranks)))


def _made(call: Callable[[Any], None]) -> Callable[[World, Shape, str], Exercise]:
    """An all-reduce of which only the call is another one."""

    def make(ranks: World, shape: Shape, _: str) -> Exercise:
        from diag.model.collective import Primitive
        from diag.probes.collective import primitives

        n = primitives.n_elements(shape["bytes"], ranks.n_ranks)
        buffer = ranks.zeros(n)

        def check() -> Checked:
            buffer.copy_(primitives.numbers(ranks, n, ranks.rank))
            call(buffer)
            expected: Any = sum(primitives.numbers(ranks, n, rank) for rank in range(ranks.n_ranks))
            n_wrong = ranks.total(int((buffer != expected).sum()))
            buffer.zero_()
            return Checked(n_wrong, n_wrong, 0.0)

        right = primitives.make(ranks, Primitive.ALL_REDUCE, shape["bytes"])
        return replace(right, step=lambda: call(buffer), check=check)

    return make


CASES: Mapping[str, Callable[[World, Path, Random], None]] = {
    each.__name__: each for each in (healthy, late_rank, now_one_now_another, benchmark, narrow_sum, small_pieces)
}


if __name__ == "__main__":
    world.leave(main())

"""One rank that counts what it writes to its sockets in an all-reduce of Gloo; `sent_bytes` starts all of them.

Linux counts what a process hands to write calls (`wchar` of /proc/PID/io, proc(5)), and Gloo writes to its sockets by
them; headers of TCP are not in it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from diag.errors import DiagError
from diag.probes.collective import world
from diag.probes.collective.launch import together

CALLS = 3
ELEMENT_BYTES = 4


def sent_bytes(n_ranks: int, size_bytes: int) -> float:
    """By rank 0 in one call, mean of CALLS. Raises DiagError where a rank fails."""
    command = [sys.executable, "-m", "diag.learn.wire", "--bytes", str(size_bytes)]
    *_, said = together(command, n_ranks)
    return int(said) / CALLS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--rendezvous", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        place = world.Place.of_environment(os.environ)
        with world.opened(place, "cpu", chosen.rendezvous) as ranks:
            told = _counted(ranks, chosen.bytes // ELEMENT_BYTES)
            if ranks.rank == 0:
                print(told, flush=True)
    except DiagError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def _counted(ranks: world.World, n: int) -> int:
    """In CALLS calls, after one that connects."""
    import torch.distributed as dist

    buffer = ranks.zeros(n)
    dist.all_reduce(buffer)
    ranks.barrier()
    before = _written()
    for _ in range(CALLS):
        dist.all_reduce(buffer)
    after = _written()
    ranks.barrier()
    return after - before


def _written() -> int:
    for line in Path("/proc/self/io").read_text("ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "wchar":
            return int(value)
    raise DiagError("/proc/self/io does not say what a process writes. Use a Linux with task I/O accounting.")


if __name__ == "__main__":
    world.leave(main())

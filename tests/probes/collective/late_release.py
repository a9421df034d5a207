"""Run as each rank of one job: it leaves while a thread of Gloo still lets go of a tensor. Rank 0 says when."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import torch
import torch.distributed as dist

from diag.probes.collective.world import Place, leave, opened

begun = threading.Event()


class LateRelease:
    """Kept by a tensor, so that the thread which drops the tensor's last reference waits here, without the GIL."""

    def __del__(self) -> None:
        begun.set()
        threading.Event().wait(2)


def main() -> None:
    place = Place.of_environment(os.environ)
    with opened(place, "cpu", Path(sys.argv[sys.argv.index("--rendezvous") + 1])):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))  # keeps Gloo's threads alive
        model(torch.ones(1, 2)).sum().backward()
        tensor = torch.ones(1 << 20)
        tensor.kept = LateRelease()
        dist.all_reduce(tensor, async_op=True)
        del tensor
        begun.wait()
    if place.rank == 0:
        print("left")
    leave(0)


if __name__ == "__main__":
    main()

"""The processes of one job as one of them sees it: who it is, how it waits for the others, what they agree on.

NCCL where ranks have GPUs, each bound by its local rank; Gloo on CPUs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NoReturn

from diag.errors import DiagError, UsageError
from diag.probes.probe import Device

Backend = Literal["nccl", "gloo"]

PATIENCE = timedelta(seconds=120)
"""For the others, in one call: short, as a rank that ended would else keep them for half an hour."""


@dataclass(frozen=True)
class Place:
    """Where a process stands among the others, in the words of torchrun."""

    rank: int
    n_ranks: int
    local_rank: int
    n_local: int

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Place:
        """Raises UsageError where nobody said it."""
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        try:
            place = cls(*(int(environment[name]) for name in names))
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"{' '.join(names)} must say which rank this process is. Start it with: torchrun --nproc-per-node 2 -m "
                "diag.probes.collective NAME; or let diag start the ranks: diag probe run NAME --ranks 2"
            ) from error
        if not (0 <= place.rank < place.n_ranks and 0 <= place.local_rank < place.n_local <= place.n_ranks):
            raise UsageError(f"No job has such a place: {place}. Start ranks with torchrun.")
        if place.n_ranks < 2:
            raise UsageError("One rank has nobody to talk to. Start two or more: torchrun --nproc-per-node 2")
        return place

    @property
    def n_hosts(self) -> int:
        return -(-self.n_ranks // self.n_local)


@dataclass(frozen=True)
class World:
    """An initialised process group of all ranks."""

    place: Place
    device: Device

    @property
    def rank(self) -> int:
        return self.place.rank

    @property
    def n_ranks(self) -> int:
        return self.place.n_ranks

    @property
    def backend(self) -> Backend:
        return "nccl" if self.device == "cuda" else "gloo"

    def barrier(self) -> None:
        """Returns when every rank has come, and what this one's device had to do before is done."""
        import torch.distributed as dist

        self.synchronize()
        dist.barrier()
        self.synchronize()

    def synchronize(self) -> None:
        """Waits for the device of this rank."""
        if self.device == "cuda":
            import torch

            torch.cuda.synchronize()

    def largest(self, value: float) -> float:
        """Over all ranks, so that they take the same decisions by it."""
        return self._agreed(value, "MAX")

    def total(self, value: float) -> float:
        return self._agreed(value, "SUM")

    def _agreed(self, value: float, operation: str) -> float:
        import torch
        import torch.distributed as dist

        held = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.all_reduce(held, op=getattr(dist.ReduceOp, operation))
        return float(held.item())

    def zeros(self, *shape: int) -> Any:
        import torch

        return torch.zeros(*shape, device=self.device)


@contextmanager
def opened(place: Place, device: Device, rendezvous: Path | None) -> Iterator[World]:
    """All ranks find each other, by a file that is not there yet, or by the environment that torchrun sets."""
    import torch
    import torch.distributed as dist

    world = World(place, device)
    if device == "cuda":
        torch.cuda.set_device(place.local_rank)
    else:
        # Threads of all ranks together are no more than cores: they would else wait for each other in every step.
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // place.n_local))
    try:
        dist.init_process_group(
            world.backend,
            init_method="env://" if rendezvous is None else rendezvous.absolute().as_uri(),
            rank=place.rank,
            world_size=place.n_ranks,
            timeout=PATIENCE,
            device_id=torch.device("cuda", place.local_rank) if device == "cuda" else None,
        )
    except (dist.DistError, ValueError) as error:  # ValueError: MASTER_ADDR or MASTER_PORT is not set
        raise DiagError(
            f"The ranks did not find each other: {_first_sentence(error)}. Choose another port (torchrun "
            f"--master-port), and start all {place.n_ranks} ranks within {PATIENCE.seconds} s."
        ) from error
    try:
        yield world
    finally:
        dist.destroy_process_group()


def leave(status: int) -> NoReturn:
    """Ends this process without the interpreter's own end.

    DistributedDataParallel and the profiler keep Gloo's threads alive after the group is destroyed, and one that lets
    go of a tensor while the interpreter ends is ended by C++ with the whole process: "terminate called", SIGABRT
    (PyTorch 2.13).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _first_sentence(error: Exception) -> str:
    """Without PyTorch's C++ frames, which follow on further lines."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def default_ranks(wanted: str) -> int:
    """One for each GPU of this machine where there are several, else two. Raises ToolMissing."""
    return max(2, _n_gpus() if wanted != "cpu" else 0)


def _n_gpus() -> int:
    from diag.probes.machine import check_torch

    check_torch()
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device_of(wanted: str, n_local: int) -> Device:
    """Of 'auto', 'cpu' and 'cuda', for so many ranks on this machine. Raises ToolMissing and UsageError."""
    n_gpus = _n_gpus()
    if wanted == "cuda" and n_gpus < n_local:
        raise UsageError(
            f"{n_local} ranks need as many GPUs, and PyTorch sees {n_gpus} here. Choose fewer --ranks, or --device cpu."
        )
    return "cuda" if wanted != "cpu" and n_gpus >= n_local else "cpu"

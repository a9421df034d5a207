"""A job whose process group has a timeout: one rank never comes, and the others give up, each by its own clock."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

from diag.child import end_with_parent

TIMEOUT_S = 2.0
LATE_S = 1.0
"""By which rank LATE calls after rank FIRST."""
FIRST, ABSENT, LATE = range(3)
WORLD_SIZE = 3
ELEMENTS = 64


@dataclass(frozen=True)
class GaveUp:
    """One rank that waited in vain."""

    called_s: float
    """On the clock that all processes of a machine share, as is `gave_up_s`."""
    gave_up_s: float
    cpu_s: float
    """Of the process, while it waited."""
    said: str


def give_up(folder: Path) -> None:
    """Leaves a file for each rank that has given up. Raises DidNotHappen where none has after a minute."""
    from diag.probes.faults.hang.ranks import started
    from diag.probes.faults.hang.standing import wait_until

    waiting = [_file(folder, rank) for rank in (FIRST, LATE)]
    with (
        tempfile.TemporaryDirectory(prefix="diag-learn-") as live,
        started(WORLD_SIZE, lambda rank: _be_rank(rank, Path(live, "store"), folder)),
    ):
        wait_until(lambda: all(file.exists() for file in waiting), "some ranks still waited in an all_reduce")


def gave_up(folder: Path) -> Mapping[int, GaveUp]:
    """By rank; one that is not there has reported nothing."""
    files = {rank: _file(folder, rank) for rank in range(WORLD_SIZE)}
    return {rank: GaveUp(**json.loads(file.read_text())) for rank, file in files.items() if file.exists()}


def _file(folder: Path, rank: int) -> Path:
    return folder / f"gave-up-{rank}.json"


def _be_rank(rank: int, store: Path, folder: Path) -> NoReturn:
    import torch
    import torch.distributed as dist

    end_with_parent()
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(str(store), WORLD_SIZE),
        rank=rank,
        world_size=WORLD_SIZE,
        timeout=timedelta(seconds=TIMEOUT_S),
    )
    dist.all_reduce(torch.ones(ELEMENTS))
    if rank == ABSENT:
        signal.pause()
    if rank == LATE:
        time.sleep(LATE_S)
    told = json.dumps(asdict(_waited_in_vain()))
    passing = folder / f"gave-up-{rank}.new"
    passing.write_text(told)
    os.replace(passing, _file(folder, rank))
    signal.pause()  # the links of a rank that ends would break, and tell the others
    os._exit(0)


def _waited_in_vain() -> GaveUp:
    import torch
    import torch.distributed as dist

    called_s, cpu_s = time.monotonic(), time.process_time()
    said = ""
    try:
        dist.all_reduce(torch.ones(ELEMENTS))
    except RuntimeError as error:
        said = str(error)
    return GaveUp(called_s, time.monotonic(), time.process_time() - cpu_s, said)

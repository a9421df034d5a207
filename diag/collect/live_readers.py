"""Where the readings of a live view come from on this machine: NVML, /proc and py-spy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from diag.collect.host import read_host
from diag.collect.nvml import Nvml
from diag.collect.proc import ProcessTree
from diag.collect.stacks import dump, is_python
from diag.collect.watching import Readers
from diag.model.live import GpuReading, ProcessReading, Untold


@contextmanager
def live_readers(pid: int | None) -> Iterator[Readers]:
    """Of the process and all that descends from it; None: of those that hold memory of a GPU."""
    followed: _Tree | _Holders = _Holders() if pid is None else _Tree(pid)
    with Nvml() as nvml:
        yield Readers(
            host=lambda: read_host(pid),
            gpus=nvml.read,
            processes=followed.read,
            stacks=dump,
            is_python=is_python,
            untold=lambda: {**nvml.untold, **followed.untold},
        )


class _Tree:
    def __init__(self, pid: int) -> None:
        self._tree = ProcessTree(pid)

    def read(self, _: Sequence[GpuReading]) -> Sequence[ProcessReading]:
        return self._tree.read()

    @property
    def untold(self) -> Untold:
        return self._tree.untold


class _Holders:
    """Each with its descendants, which need not hold memory themselves: workers of a data loader, say."""

    def __init__(self) -> None:
        self._trees: dict[int, ProcessTree] = {}
        self.untold: Untold = {}

    def read(self, gpus: Sequence[GpuReading]) -> Sequence[ProcessReading]:
        pids = sorted({each.pid for gpu in gpus for each in gpu.processes or () if each.state != "gone"})
        trees = [self._trees.get(pid) or ProcessTree(pid) for pid in pids]
        read = [(tree, tree.read()) for tree in trees]
        # A tree of which nothing is left is begun anew: its number may be that of another process by now.
        self._trees = {tree.pid: tree for tree, readings in read if readings}
        self.untold = next((tree.untold for tree, _ in read if tree.untold), {})
        return list({each.pid: each for _, readings in read for each in readings}.values())

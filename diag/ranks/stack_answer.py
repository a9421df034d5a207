"""What stacks alone say of a job that stands still: who waits for others, and who is somewhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.live import Frame
from diag.model.live_stacks import is_library
from diag.ranks.stack_clusters import StackCluster, clusters
from diag.ranks.thread_stacks import RankThread, gil_holders

_WAITING = ("torch/distributed/", "torch/nn/parallel/distributed", "libnccl", "libgloo", "libmpi")
_ON_DEVICE = ("synchronize", "_engine_run_backward", "item", "wait_tensor")
"""Calls of PyTorch that return once the device is done, or once the autograd engine is: it may wait for collectives."""


@dataclass(frozen=True)
class StackAnswer:
    """`waiting`: in a collective, or for the device. `elsewhere`: in other calls, or stopped. Each with
    the smallest cluster first.

    `holders`: threads that held the GIL in one call in every dump.
    """

    waiting: Sequence[StackCluster]
    elsewhere: Sequence[StackCluster]
    holders: Sequence[RankThread]

    @property
    def is_telling(self) -> bool:
        """Whether some wait while others do not: then they wait for those."""
        return bool(self.waiting and self.elsewhere)


def stack_answer(threads: Sequence[RankThread]) -> StackAnswer:
    with_frames = [each for each in clusters(threads) if each.frames]
    waiting = [each for each in with_frames if waits(each.frames) and not each.is_stopped]
    elsewhere = [each for each in with_frames if each not in waiting]
    return StackAnswer(waiting, elsewhere, gil_holders(threads))


def waits(frames: Sequence[Frame]) -> bool:
    """Whether a thread stands in a collective or waits for the device: by what its own code called, leaf first.

    >>> train = Frame("step", "train.py", 30)
    >>> waits([Frame("all_reduce", "torch/distributed/distributed_c10d.py", 3007), train])
    True
    >>> waits([train, Frame("launch", "torch/distributed/run.py", 900)])
    False
    """
    called = []
    for frame in frames:
        if not is_library(frame.file):
            break
        called.append(frame)
    is_torch = any("torch" in frame.file for frame in called)
    return any(_is_waiting(frame) or (is_torch and frame.function in _ON_DEVICE) for frame in called)


def _is_waiting(frame: Frame) -> bool:
    return any(part in frame.file for part in _WAITING)

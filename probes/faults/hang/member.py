"""A rank of the job, as the programs see it: its steps, where it tells its phases, and the gate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from diag.collect.heartbeat import Heartbeat
from diag.probes.faults.hang.recorder import Recorder

STEPS = 4
WRONG_STEP = 2
"""The first step in which something is wrong: there are healthy calls before it, and one step after it."""
TIMEOUT = timedelta(minutes=10)
"""Of the process group: no rank gives up while it is looked at."""
GATE_POLL_S = 0.01


@dataclass(frozen=True)
class Member:
    """`world_size` is what this rank was told."""

    rank: int
    world_size: int
    is_faulty: bool
    store: Any  # torch.distributed.Store
    gate: Path
    beat: Heartbeat
    recorder: Recorder

    def join(self) -> None:
        self.enter("initialise")
        dist.init_process_group("gloo", store=self.store, rank=self.rank, world_size=self.world_size, timeout=TIMEOUT)

    def leave(self) -> None:
        """Ends the process group when all ranks have come so far: a peer that still receives would lose a link."""
        self.enter("leave")
        self.store.set(f"left {self.rank}", "")
        self.store.wait([f"left {rank}" for rank in range(self.world_size)], TIMEOUT)
        dist.destroy_process_group()

    def steps(self) -> Iterator[bool]:
        """Of each step, whether it is the one in which this rank goes wrong."""
        for step in range(STEPS):
            self.enter("load batch", step)
            yield self.is_faulty and step == WRONG_STEP

    def enter(self, phase: str, step: int | None = None) -> None:
        self.beat(step=step, phase=phase)

    def pass_gate(self) -> None:
        """Waits until the job has been looked at; a healthy one goes through."""
        while not self.gate.exists():
            time.sleep(GATE_POLL_S)

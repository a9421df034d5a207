"""What `diag hang PID` keeps of a live rank: `diag.stacks/1`, its stacks at several moments and what /proc says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model.heartbeat import Number, Words
from diag.model.live import StackDump

SCHEMA: Literal["diag.stacks/1"] = "diag.stacks/1"
SUFFIX = ".stacks.json"


@dataclass(frozen=True)
class StackFile:
    """`dumps` in the order of their time; `states`, `waits_in`: by the number of a thread, at the last of them."""

    schema: Literal["diag.stacks/1"]
    pid: Number
    host: Words
    dumps: Sequence[StackDump]
    rank: Number | None = None
    local_rank: Number | None = None
    world_size: Number | None = None
    states: dict[int, Words] | None = None
    waits_in: dict[int, Words] | None = None

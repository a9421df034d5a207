"""PyTorch traces of the ranks of one job, made up: clocks, late ranks and times of collectives are known in closed
form.

In each step every rank loads its data on the host, computes in some kernels, and takes part in each collective of the
step. A collective ends on all ranks α + k·M/B after the last of them has begun it. Each file shows the true times on
the clock of its rank: offset + (1 + drift) · t. Every file says that it is synthetic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from diag.model.collective import Primitive, time_ns

BASE_NS = 1_700_000_000_000_000_000
MS = 1_000_000
LAUNCH_NS = 10_000
"""From a call to the start of what it launches on an idle device."""
COMPUTE, TALK = 7, 20
"""Streams."""
N_KERNELS = 4
"""Of a step, each of a name of its own."""

_KERNEL_OF = {"all_reduce": "AllReduce", "all_to_all": "SendRecv", "all_gather": "AllGather", "broadcast": "Broadcast"}
_NAME_OF = {
    "all_reduce": "allreduce",
    "all_to_all": "all_to_allv",
    "all_gather": "_allgather_base",
    "broadcast": "broadcast",
}
ELEMENT_BYTES = 4

ByRank = Callable[[int, int], int]
"""Of a rank and a step, ns."""


@dataclass(frozen=True)
class Call:
    """A collective of every step."""

    op: str = "all_reduce"
    size_bytes: int = 64 << 20
    received: Mapping[int, int] = field(default_factory=dict)  # bytes that a rank gets; others get `size_bytes`
    members: Sequence[int] | None = None  # ranks of the group; None: all
    bus_bytes_per_s: float | None = None  # where its link is another than that of the job


@dataclass(frozen=True)
class RankJob:
    n_ranks: int = 4
    n_steps: int = 20
    load_ns: ByRank = lambda rank, step: 200_000
    compute_ns: ByRank = lambda rank, step: 4 * MS
    calls: Sequence[Call] = (Call(),)
    alpha_ns: float = 30_000
    bus_bytes_per_s: float = 100e9
    offset_ns: Mapping[int, int] = field(default_factory=dict)
    drift: Mapping[int, float] = field(default_factory=dict)
    end_noise_ns: float = 0.0
    seed: int = 1
    is_numbered: bool = True  # whether calls carry their sequence number and the name of their group
    has_sizes: bool = True
    is_told: bool = True  # whether a file says which rank it is, and of how many
    backend: Literal["nccl", "gloo"] = "nccl"  # of Gloo the work is the host's, and there are no kernels
    device_name: str = "NVIDIA H100"
    host: Callable[[int], str] = lambda rank: f"host{rank // 2}"
    recorded: Sequence[int] | None = None  # ranks that left a file; None: all
    missing_steps: Mapping[int, int] = field(default_factory=dict)  # by which the capture of a rank began later
    is_reversed: bool = False

    def backwards(self) -> Self:
        return replace(self, is_reversed=True)

    def write(self, folder: Path) -> Path:
        folder.mkdir()
        for rank in self.recorded if self.recorded is not None else range(self.n_ranks):
            self.write_rank(rank, folder / f"rank{rank}.json")
        return folder

    def write_rank(self, rank: int, path: Path) -> Path:
        events = list(self._events(rank))
        if self.is_reversed:
            events.reverse()
        about = {
            "schemaVersion": 1,
            "synthetic": "made by tests/builders/rank_job.py; it was never run",
            "host_name": self.host(rank),
            "baseTimeNanoseconds": BASE_NS,
            "deviceProperties": [{"id": 0, "name": self.device_name}] if self.backend == "nccl" else [],
        }
        if self.is_told:
            about["distributedInfo"] = {"backend": self.backend, "rank": rank, "world_size": self.n_ranks}
        path.write_text(json.dumps({**about, "traceEvents": events}), encoding="utf-8")
        return path

    # ---- the truth ------------------------------------------------------------------------------------------------

    def members(self, call: Call) -> Sequence[int]:
        return call.members if call.members is not None else range(self.n_ranks)

    def latency_ns(self, call: Call) -> int:
        """α + k·M/B."""
        bus = call.bus_bytes_per_s or self.bus_bytes_per_s
        return round(time_ns(Primitive(call.op), call.size_bytes, len(self.members(call)), bus, self.alpha_ns))

    def steps(self) -> Iterator[tuple[int, int, list[tuple[dict[int, int], int]]]]:
        """Of each step its true start and end, and of each call the starts on its ranks and the one end."""
        begin_ns = MS
        for step in range(self.n_steps):
            ready = {
                rank: begin_ns + self.load_ns(rank, step) + LAUNCH_NS + self.compute_ns(rank, step)
                for rank in range(self.n_ranks)
            }
            found = []
            for call in self.calls:
                starts = {rank: ready[rank] for rank in self.members(call)}
                end_ns = max(starts.values()) + self.latency_ns(call)
                found.append((starts, end_ns))
                ready |= dict.fromkeys(starts, end_ns + 1_000)
            end_ns = max(ready.values()) + 10_000
            yield begin_ns, end_ns, found
            begin_ns = end_ns + 10_000

    # ---- what is recorded -----------------------------------------------------------------------------------------

    def _events(self, rank: int) -> Iterator[dict[str, Any]]:
        noise = np.random.default_rng((self.seed, rank))
        correlation = 0
        for step, (begin_ns, end_ns, found) in enumerate(self.steps()):
            if step < self.missing_steps.get(rank, 0):
                continue
            host_ns = begin_ns + self.load_ns(rank, step)
            yield self._host(rank, "user_annotation", f"ProfilerStep#{step}", begin_ns, end_ns)
            yield self._host(rank, "user_annotation", "dataloader next", begin_ns, host_ns)
            for name, stream, start_ns, stop_ns, args in self._work(rank, step, host_ns, found):
                is_talk = stream == TALK
                late_ns = round(noise.normal(0, self.end_noise_ns)) if is_talk and self.end_noise_ns else 0
                if self.backend == "gloo":
                    if is_talk:
                        kind = f"gloo:{args['Collective name']}"
                        yield self._event(rank, "user_annotation", kind, 100 + rank, 900, start_ns, stop_ns + late_ns)
                    continue
                correlation += 1
                call_ns = host_ns + correlation % 20 * 100
                yield self._host(
                    rank, "cuda_runtime", "cudaLaunchKernel", call_ns, call_ns + 50, correlation=correlation
                )
                place = {"device": 0, "context": 1, "stream": stream, "correlation": correlation}
                yield self._event(rank, "kernel", name, 0, stream, start_ns, stop_ns + late_ns, **place, **args)

    def _work(
        self, rank: int, step: int, host_ns: int, found: Sequence[tuple[dict[int, int], int]]
    ) -> Iterator[tuple[str, int, int, int, dict[str, Any]]]:
        edges = np.linspace(0, self.compute_ns(rank, step), N_KERNELS + 1).astype(int) + host_ns + LAUNCH_NS
        for number in range(N_KERNELS):
            yield f"gemm_{number}", COMPUTE, int(edges[number]), int(edges[number + 1]), {}
        for at, (call, (starts, end_ns)) in enumerate(zip(self.calls, found, strict=True)):
            if rank in starts:
                yield (
                    f"ncclDevKernel_{_KERNEL_OF[call.op]}",
                    TALK,
                    starts[rank],
                    end_ns,
                    self._about(rank, call, step, at),
                )

    def _about(self, rank: int, call: Call, step: int, at: int) -> dict[str, Any]:
        members = list(self.members(call))
        of_group = [place for place, other in enumerate(self.calls) if list(self.members(other)) == members]
        args = {"Collective name": _NAME_OF[call.op], "dtype": "Float", "Group size": len(members)}
        if self.has_sizes:
            sent = call.size_bytes // len(members) if call.op == "all_gather" else call.size_bytes
            args["In msg nelems"] = sent // ELEMENT_BYTES
            args["Out msg nelems"] = call.received.get(rank, call.size_bytes) // ELEMENT_BYTES
        if not self.is_numbered:
            return args
        number = step * len(of_group) + of_group.index(at)
        return args | {"Process Group Name": str(of_group[0]), "Process Group Ranks": str(members), "Seq": number}

    def _host(self, rank: int, category: str, name: str, start_ns: int, end_ns: int, **args: Any) -> dict[str, Any]:
        return self._event(rank, category, name, 100 + rank, 100 + rank, start_ns, end_ns, **args)

    def _event(
        self, rank: int, category: str, name: str, pid: int, tid: int, start_ns: int, end_ns: int, **args: Any
    ) -> dict[str, Any]:
        start, end = self.on_clock(rank, start_ns), self.on_clock(rank, end_ns)
        times = {"ts": start / 1000, "dur": (end - start) / 1000}
        return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, **times, "args": args}

    def on_clock(self, rank: int, true_ns: int) -> int:
        return self.offset_ns.get(rank, 0) + round(true_ns * (1 + self.drift.get(rank, 0.0)))

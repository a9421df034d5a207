"""Output as nccl-tests prints it, with figures that a test chooses; it says that it is synthetic. By the source of
nccl-tests (src/util.cu): a row is printed in three pieces, between which a log of NCCL may write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diag.model.collective import Primitive, algorithm_bytes_per_s, bus_bytes_per_s, time_ns

GPU = "NVIDIA H100 80GB HBM3"
SIZES = tuple(1 << power for power in range(10, 33))

PROGRAMS = {
    Primitive.ALL_TO_ALL: "alltoall",
    Primitive.SEND_RECV: "sendrecv",
}

Times = Callable[[int], float]
"""Of a call of this size, in ns."""


def on_line(bus_bytes_per_s: float, latency_ns: float, op: Primitive = Primitive.ALL_REDUCE, n_ranks: int = 8) -> Times:
    return lambda size: time_ns(op, size, n_ranks, bus_bytes_per_s, latency_ns)


@dataclass(frozen=True)
class NcclTests:
    """One run. `times` are those of either place; in place is 1 % faster."""

    times: Times
    op: Primitive = Primitive.ALL_REDUCE
    n_ranks: int = 8
    n_hosts: int = 1
    sizes: Sequence[int] = SIZES
    gpu: str = GPU
    is_old: bool = False  # before 2022: without root, an error instead of wrong elements, no name of the program
    names_program: bool = True
    log_host: str | None = None  # whose NCCL writes into the rows
    prefix: str = ""
    n_wrong: int = 0

    @property
    def program(self) -> str:
        return f"{PROGRAMS.get(self.op, self.op.value)}_perf"

    def write(self, path: Path) -> Path:
        path.write_text(self.text)
        return path

    def backwards(self) -> NcclTests:
        return replace(self, sizes=self.sizes[::-1])

    @property
    def text(self) -> str:
        return "".join(f"{self.prefix}{line}\n" for line in self._lines())

    def _lines(self) -> list[str]:
        starting = [f"# Collective test starting: {self.program}"] if self.names_program and not self.is_old else []
        return [
            "This output is synthetic: no GPU measured it.",
            *starting,
            "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4294967296 step: 2(factor) warmup iters: 5 iters: 20 "
            + ("validation: 1" if self.is_old else "agg iters: 1 validation: 1 graph: 0"),
            "#",
            "# Using devices",
            *(self._rank(rank) for rank in range(self.n_ranks)),
            "#",
            *self._header(),
            *(line for size in self.sizes for line in self._row(size)),
            "# Out of bounds values : 0 OK",
            "# Avg bus bandwidth    : 100.0 ",
            "#",
            *([f"# Collective test concluded: {self.program}"] if starting else []),
        ]

    def _rank(self, rank: int) -> str:
        per_host = self.n_ranks // self.n_hosts
        group = "" if self.is_old else " Group  0"
        host, device = rank // per_host, rank % per_host
        where = f"on {self._host(host):>10s} device {device:2d} [0x{device:02x}] {self.gpu}"
        return f"#  Rank {rank:2d}{group} Pid {4000 + rank:6d} {where}"

    def _host(self, number: int) -> str:
        return self.log_host or f"node{number}"

    def _header(self) -> list[str]:
        root, wrong = ("", "error") if self.is_old else ("    root", "#wrong")
        place = f"    time   algbw   busbw  {wrong}"
        return [
            "#                                           out-of-place                       in-place",
            f"#       size         count      type   redop{root}{place}{place}",
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)",
        ]

    def _row(self, size: int) -> list[str]:
        reduces = self.op in (Primitive.ALL_REDUCE, Primitive.REDUCE_SCATTER, Primitive.REDUCE)
        has_root = self.op in (Primitive.BROADCAST, Primitive.REDUCE, Primitive.GATHER, Primitive.SCATTER)
        root = "" if self.is_old else f"  {0 if has_root else -1:6d}"
        head = f"{size:12d}  {size // 4:12d}  {'float':>8s}  {'sum' if reduces else 'none':>6s}{root}"
        places = [self._place(size, self.times(size) * share) for share in (1.0, 0.99)]
        if self.log_host is None:
            return [head + "".join(places)]
        log = f"{self.log_host}:4000:4001 [0] NCCL INFO AllReduce: {size} Bytes -> Algo RING proto SIMPLE"
        return [head + log, log, places[0] + log, log, places[1]]

    def _place(self, size: int, ns: float) -> str:
        algorithm = algorithm_bytes_per_s(size, ns) / 1e9
        bus = bus_bytes_per_s(self.op, size, self.n_ranks, ns) / 1e9
        wrong = "  1e-06" if self.is_old else f"  {self.n_wrong:6d}"
        return f"  {ns / 1e3:7.2f}  {algorithm:6.2f}  {bus:6.2f}{wrong}"


def written(run: NcclTests) -> str:
    """The JSON that nccl-tests would write of a run: one device of each process, numbers as text where it does so."""

    def place(ns: float) -> dict[str, object]:
        return {"time": ns / 1e3, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": 0.0}

    return json.dumps(
        {
            "version": 2,
            "start_time": "2026-01-01 00:00:00",
            "args": [f"/opt/synthetic/{run.program}", "-g", "1"],
            "env": ["SECRET_TOKEN=do not keep"],
            "nccl_version": 22807,
            "config": {
                "nthreads": 1,
                "ngpus": 1,
                "iterations": 20,
                "devices": [
                    {"rank": rank, "hostname": f"node{rank // 8}", "device": rank % 8, "device_info": run.gpu}
                    for rank in range(run.n_ranks)
                ],
            },
            "results": [
                {
                    "size": size,
                    "count": size // 4,
                    "type": "float",
                    "redop": "sum",
                    "root": "    -1",
                    "out_of_place": place(run.times(size)),
                    "in_place": place(run.times(size) * 0.99),
                }
                for size in run.sizes
            ],
        }
    )

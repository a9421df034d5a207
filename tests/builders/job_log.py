"""Logs of distributed jobs, made up: the lines are in the form that NCCL, PyTorch, torchrun and Slurm print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

SYNTHETIC = "this log is synthetic: made by tests/builders/job_log.py, no job ever printed it"


@dataclass
class JobLog:
    """The output of several processes, one after the other, in one file. They may stand there in any order."""

    parts: list[str] = field(default_factory=list)

    def add(self, *lines: str) -> Self:
        self.parts.append("".join(f"{line}\n" for line in lines))
        return self

    def write(self, path: Path) -> Path:
        path.write_text(f"{SYNTHETIC}\n{''.join(self.parts)}", encoding="utf-8")
        return path

    def backwards(self) -> JobLog:
        return JobLog(self.parts[::-1])


@dataclass
class Whole:
    """A text whose lines have an order: a status of RAS."""

    text: str

    def write(self, path: Path) -> Path:
        path.write_text(self.text, encoding="utf-8")
        return path

    def backwards(self) -> Whole:
        return self


Via = Callable[[int, int], str]


def direct(_: int, __: int) -> str:
    return "P2P/CUMEM/read"


@dataclass(frozen=True)
class Rank:
    """One process of a communicator, as NCCL 2.27 shows it with NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH."""

    rank: int
    n_ranks: int = 2
    host: str = "n0"
    local: int | None = None
    comm_id: str = "0xabc1"
    channels: int = 16
    via: Via = direct
    version: str = "2.27.7"
    network: str = "IB"
    n_hosts: int = 1
    variables: Mapping[str, str] = field(default_factory=dict)
    nvlink: tuple[float, float] | None = (240.0, 240.0)  # GB/s between GPU 17000 and GPU 65000, there and back
    more: Sequence[str] = ()
    prefix: str = ""
    ends: bool = True
    process: int | None = None  # number of the process in the job, where `rank` is that in a smaller communicator

    @property
    def device(self) -> int:
        return self.rank if self.local is None else self.local

    @property
    def pid(self) -> int:
        return 1000 + (self.rank if self.process is None else self.process)

    def line(self, said: str, level: str = "INFO", file: str = "") -> str:
        where = f" {file}" if file else ""
        return f"{self.prefix}{self.host}:{self.pid}:{self.pid + 500} [{self.device}]{where} NCCL {level} {said}"

    def lines(self) -> list[str]:
        bus = f"{0x17000 + 0x4E000 * self.device:x}"
        comm = (
            f"comm 0x55{self.pid:x} rank {self.rank} nranks {self.n_ranks} cudaDev {self.device} nvmlDev {self.device}"
        )
        init = f"ncclCommInitRankConfig {comm} busId {bus} commId {self.comm_id}"
        said = [
            f"NCCL version {self.version}+cuda13.0",
            *(f"{name} set by environment to {value}" for name, value in self.variables.items()),
            f"Using network {self.network}",
            f"{init} - Init START",
            *self._topology(),
            f"{comm[: comm.index(' nranks')]} nRanks {self.n_ranks} nNodes {self.n_hosts} localRanks 2 localRank 0",
            f"{self.channels} coll channels, 0 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels",
            *(self._connection(channel) for channel in range(2)),
            f"{init} - Init COMPLETE",
            *self.more,
            *([f"{comm} busId {bus} - Destroy COMPLETE"] if self.ends else []),
        ]
        return [self.line(each) for each in said]

    def _topology(self) -> list[str]:
        if self.nvlink is None:
            return []
        there, back = self.nvlink
        own = "(0/5000.0/LOC)"
        return [
            f"GPU/0-17000 :GPU/0-17000 {own} GPU/0-65000 (1/{there}/NVL) CPU/0-0 (1/24.0/PHB) ",
            f"GPU/0-65000 :GPU/0-17000 (1/{back}/NVL) GPU/0-65000 {own} CPU/0-0 (1/24.0/PHB) ",
        ]

    def _connection(self, channel: int) -> str:
        to = (self.rank + 1) % self.n_ranks
        via = self.via(self.rank, to)
        direction = " [send]" if via.startswith("NET") else ""
        return f"Channel {channel:02d}/0 : {self.rank}[{self.device}] -> {to}[{to}]{direction} via {via}"


def nccl_log(*ranks: Rank) -> JobLog:
    log = JobLog()
    for rank in ranks:
        log.add(*rank.lines())
    return log


# ---- PyTorch, torchrun, Slurm --------------------------------------------------------------------------------------


def timed_out(
    rank: int, sequence: int, *, op: str = "ALLREDUCE", second: int = 21, enqueued: int | None = None
) -> list[str]:
    """What the watchdog of one rank prints when a collective of the default group takes longer than ten minutes."""
    head = f"[rank{rank}]:[E1218 20:27:{second:02d}.426415540 ProcessGroupNCCL.cpp"
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    work = f"WorkNCCL(SeqNum={sequence}, OpType={op}, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000)"
    return [
        f"{head}:629] [Rank {rank}] Watchdog caught collective operation timeout: {work} ran for 600081 milliseconds "
        "before timing out.",
        f"{head}:2168] {group}  failure detected by watchdog at work sequence id: {sequence} PG status: "
        f"last enqueued work: {sequence if enqueued is None else enqueued}, last completed work: {sequence - 1}",
    ]


def asked_to_dump(rank: int, by: int, enqueued: int) -> str:
    """What a rank prints that did not time out itself."""
    return (
        f"[rank{rank}]:[E1218 20:27:22.112142364 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
        f" Received a dump signal due to a collective timeout from  rank {by} and we will try our best to dump the "
        f"debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: {enqueued}.This is most likely"
    )


def elastic_report(rank: int, *, exitcode: int = -9, signal: str | None = "Signal 9 (SIGKILL)") -> list[str]:
    """How torchrun ends when one process failed."""
    traceback = (
        f"{signal} received by PID {208585 + rank}" if signal else "To enable traceback see: https://pytorch.org"
    )
    return [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=======================================================",
        "train.py FAILED",
        "-------------------------------------------------------",
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-------------------------------------------------------",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2023-08-01_01:06:47",
        "  host      : n0",
        f"  rank      : {rank} (local_rank: {rank})",
        f"  exitcode  : {exitcode} (pid: {208585 + rank})",
        "  error_file: <N/A>",
        f"  traceback : {traceback}",
        "=======================================================",
    ]


def traceback_of(label: str, exception: str) -> list[str]:
    return [
        f"{label}Traceback (most recent call last):",
        f'{label}  File "train.py", line 7, in <module>',
        f"{label}    step()",
        f"{label}{exception}",
    ]


CANCELLED = "slurmstepd: error: *** JOB 4711 ON n0 CANCELLED AT 2024-04-03T09:40:00 DUE TO TIME LIMIT ***"


# ---- RAS -----------------------------------------------------------------------------------------------------------

RAS_HEAD = """\
NCCL version 2.28.3 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
"""


def ras_text(row: str, errors: str = "", warnings: str = "") -> Whole:
    """A status as `ncclras -v` prints it, synthetic."""
    return Whole(f"{RAS_HEAD}{row}\n\nErrors\n======\n\n{errors}\nWarnings\n========\n\n{warnings}")


RAS_WELL = ras_text("    0         1         4         8        32        32   RUNNING      OK")
RAS_BEHIND = ras_text(
    "    0         1         4         8        32        32   RUNNING  MISMATCH",
    warnings="""\
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  30 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210

""",
)
RAS_DEAD = ras_text(
    "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE",
    errors="""\
DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213

""",
)

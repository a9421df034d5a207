"""Lines of PyTorch, torchrun, Slurm and the kernel."""

from __future__ import annotations

import pytest

from tests.builders.job_log import CANCELLED, asked_to_dump, elastic_report, timed_out, traceback_of
from tests.ingest.job_log.reading import events, only, said


def test_a_timeout_and_what_its_rank_had_enqueued() -> None:
    timeout, last = events(*timed_out(9, 167, enqueued=168))
    assert timeout.kind == "watchdog.timeout"
    assert timeout.place.rank == 9
    assert timeout.fields == {
        "group_rank": 9, "sequence": 167, "op": "ALLREDUCE", "numel_in": 1024, "numel_out": 1024,
        "timeout_ms": 600000, "ran_ms": 600081, "moment": "12-18T20:27:21.426415540",
    }  # fmt: skip
    assert last.kind == "watchdog.last"
    assert {name: last.fields[name] for name in ("sequence", "enqueued", "completed", "description")} == {
        "sequence": 167, "enqueued": 168, "completed": 166, "description": "default_pg",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "kind", "fields"),
    [
        (
            "[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=469508, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802212 milliseconds before",
            "watchdog.timeout",
            {"group_rank": 1, "sequence": 469508, "op": "ALLREDUCE", "timeout_ms": 1800000, "ran_ms": 1802212},
        ),
        (
            "[rank0]:[E321 02:07:08.465150152 ProcessGroupNCCL.cpp:1664] [PG 1 Rank 0] Exception (either an error or "
            "timeout) detected by watchdog at work: 1580, last enqueued NCCL work: 1582, "
            "last completed NCCL work: 1579.",
            "watchdog.last",
            {"sequence": 1580, "enqueued": 1582, "completed": 1579, "group": "1", "group_rank": 0,
             "moment": "03-21T02:07:08.465150152"},
        ),
        (
            "[rank3]:[E1 01:02:03 ProcessGroupNCCL.cpp:1] [PG ID 0 PG GUID 0(default_pg) Rank 3] ProcessGroupNCCL's "
            "watchdog got stuck for 480 seconds without making progress",
            "watchdog.heartbeat",
            {"stuck_s": 480, "group_id": 0, "group": "0", "description": "default_pg", "group_rank": 3},
        ),
        ("[rank3]:[E1] ProcessGroupNCCL Could not acquire GIL within 300 ms on exit", "watchdog.gil", {}),
        (
            "[rank0]: Finished writing Flight Recorder debug info to /dumps/nccl_trace_rank_0",
            "watchdog.recorder",
            {"state": "Finished writing", "file": "/dumps/nccl_trace_rank_0"},
        ),
        (
            "E0813 08:21:22.980000 1245483 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: -6) "
            "local_rank: 6 (pid: 1246013) of binary: /usr/bin/python3",
            "launcher.failed",
            {"exitcode": -6, "moment": "08-13T08:21:22.980000000"},
        ),
        (
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection has failed.",
            "launcher.rendezvous",
            {"error": "RendezvousConnectionError", "said": "The connection has failed."},
        ),
        (CANCELLED, "slurm.time_limit", {"what": "JOB", "job": "4711"}),
        (
            "slurmstepd: error: Detected 3 oom-kill event(s) in step 1007.batch cgroup. Some of your processes",
            "slurm.oom",
            {"events": 3, "step": "1007.batch"},
        ),
        (
            "srun: error: frontier07210: tasks 8-10,14: Aborted (core dumped)",
            "slurm.exit",
            {"tasks": "8-10,14", "how": "Aborted (core dumped)", "ranks": [8, 9, 10, 14]},
        ),
        (
            "Oct 06 17:59:27 balrog kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus.",
            "xid",
            {"pci": "PCI:0000:01:00", "xid": 79, "said": ", GPU has fallen off the bus."},
        ),
    ],
)  # fmt: skip
def test_what_programs_say(line: str, kind: str, fields: dict[str, object]) -> None:
    assert said(line) == [(kind, fields)]


def test_a_rank_that_was_asked_to_dump() -> None:
    event = only(asked_to_dump(2, 10, 166))
    assert (event.kind, event.place.rank) == ("watchdog.last", 2)
    assert (event.fields["signal"], event.fields["enqueued"], event.fields["completed"]) == ("rank 10", 166, 166)


def test_the_first_failure_that_torchrun_saw() -> None:
    ended, signal = events(*elastic_report(4))
    assert (ended.kind, ended.fields) == ("launcher.exit", {"exitcode": -9, "is_first_observed": True})
    assert signal.fields == {"signal": "SIGKILL", "number": 9, "is_first_observed": True}
    assert {event.place.rank for event in (ended, signal)} == {4}
    assert {event.place.host for event in (ended, signal)} == {"n0"}
    assert ended.time_ns == 1_690_852_007_000_000_000


def test_exceptions_of_mixed_ranks() -> None:
    first, second = traceback_of("[rank0]: ", "ValueError: a"), traceback_of("[rank1]: ", "my.CustomError: b")
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    found = [(event.place.rank, event.fields["type"], event.fields["said"]) for event in events(*mixed)]
    assert found == [(0, "ValueError", "a"), (1, "my.CustomError", "b")]


def test_an_error_without_a_traceback_is_no_exception() -> None:
    assert events("ValueError: printed by a logger") == []


def test_a_progress_bar_in_the_same_line() -> None:
    bar = "\rEpoch 1:  50%|####     |\r"
    assert [kind for kind, _ in said(bar + timed_out(0, 7)[0])] == ["watchdog.timeout"]


def test_torchrun_tells_which_ranks_it_starts_each_time_that_it_does() -> None:
    start = [
        "I0321 02:07:08.408000 11 torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete for "
        "workers. Result:",
        "0:   restart_count=0",
        "0:   role_ranks=[8, 9]",
        "0:   global_ranks=[8, 9]",
    ]
    found = [event for event in events(*start, *start) if event.kind == "launcher.workers"]
    assert [event.fields["ranks"] for event in found] == [[8, 9]] * len(found)
    assert sum(event.fields.get("times", 1) for event in found) == 2

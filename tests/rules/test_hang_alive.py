"""Why a job stands still, by stacks or heartbeats alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from diag.model.live import Frame, StackDump, ThreadStack
from diag.model.stack_file import SCHEMA, SUFFIX, StackFile
from diag.rules.finding import CannotTell
from tests.builders.job_log import JobLog
from tests.rules import hanging
from tests.rules.asking import Ask, ThreeCases, only_finding

S = 1_000_000_000
TORCH = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
IN_ALL_REDUCE = [("all_reduce", TORCH, 2800), ("reduce_gradients", "/home/me/train.py", 30)]
IN_ALL_GATHER = [("all_gather", TORCH, 3300), ("gather_parameters", "/home/me/train.py", 20)]
LOADS = [("read", "/home/me/data.py", 14), ("reduce_gradients", "/home/me/train.py", 29)]
VANISHED = "vanished without a word: killed, crashed, or left with os._exit"
BROKEN = "RuntimeError: Connection closed by peer [10.0.0.1]:5057"


@dataclass(frozen=True)
class Files:
    """Files by name, in one folder."""

    texts: Mapping[str, str]

    def write(self, path: Path) -> Path:
        path.mkdir()
        for name, text in self.texts.items():
            (path / name).write_text(text, encoding="utf-8")
        return path

    def backwards(self) -> Self:
        return self


def stacks(*ranks: Sequence[tuple[str, str, int]]) -> Files:
    """As `py-spy dump` prints them, one file a rank."""
    return Files({f"rank{rank}.stack": _py_spy(100 + rank, frames) for rank, frames in enumerate(ranks)})


def _py_spy(pid: int, frames: Sequence[tuple[str, str, int]]) -> str:
    lines = [f"    {function} ({file}:{line})" for function, file, line in frames]
    return "\n".join([f"Process {pid}: python train.py", "Python v3.11.7 (/usr/bin/python3.11)", "",
                      f'Thread {pid} (idle): "MainThread"', *lines, ""])  # fmt: skip


def beats(*ended: str | None, silent_s: float = 0) -> Files:
    """`silent_s`: since rank 1 ran Python."""
    return Files({f"rank{rank}.heartbeat.json": _beat(rank, end, silent_s if rank == 1 else 0)
                  for rank, end in enumerate(ended)})  # fmt: skip


def _beat(rank: int, ended: str | None, silent_s: float) -> str:
    about = {"schema": "diag.heartbeat/1", "rank": rank, "world_size": 3, "local_rank": rank, "device": None}
    times = {"time_ns": int((100 - silent_s) * S), "written_ns": 100 * S, "beat_ns": 90 * S}
    last = {"state": "S", "step": 7, "phase": "forward", "ended": ended}
    return json.dumps({**about, "host": "n0", "pid": 100 + rank, **times, **last})


CASES = {
    "hang.stacks": ThreeCases(
        lambda: stacks(IN_ALL_REDUCE, LOADS, IN_ALL_REDUCE),
        lambda: stacks(LOADS, LOADS, LOADS),
        lambda: stacks(IN_ALL_REDUCE, IN_ALL_GATHER, IN_ALL_REDUCE),
    ),
    "hang.heartbeats": ThreeCases(
        lambda: beats(None, "KeyError: 'x'", None),
        lambda: beats(None, None, None),
        lambda: beats(VANISHED, VANISHED, VANISHED),
    ),
}


def test_the_rank_that_stands_elsewhere_is_named(ask: Ask) -> None:
    finding = only_finding(ask("hang.stacks", stacks(IN_ALL_REDUCE, LOADS, IN_ALL_REDUCE)))
    assert finding.title == "Rank 1 stands in read (/home/me/data.py:14); 2 ranks wait for the others"
    assert (finding.subject.ranks, finding.severity) == ((1,), "warning")
    assert "One dump does not show" in finding.claim


def test_a_rank_that_stays_elsewhere_is_critical(ask: Ask) -> None:
    twice = {name: f"{text}\n{text}" for name, text in stacks(IN_ALL_REDUCE, LOADS, IN_ALL_REDUCE).texts.items()}
    assert only_finding(ask("hang.stacks", Files(twice))).severity == "critical"


def test_who_holds_the_gil_in_every_dump_is_named(ask: Ask) -> None:
    once = _py_spy(100, LOADS).replace("(idle)", "(active+gil)")
    finding = only_finding(ask("hang.stacks", Files({"rank0.stack": once + "\n" + once})))
    assert finding.title == "Rank 0 holds the GIL in read (/home/me/data.py:14)"


def test_one_stack_tells_nothing(ask: Ask) -> None:
    (answer,) = ask("hang.stacks", stacks(LOADS))
    assert isinstance(answer, CannotTell)


def test_who_lost_its_connection_is_not_accused(ask: Ask) -> None:
    finding = only_finding(ask("hang.heartbeats", beats(BROKEN, VANISHED, BROKEN)))
    assert finding.title == "Rank 1 vanished without a word, and 2 ranks ended with it"
    assert (finding.subject.ranks, finding.confidence) == ((1,), "low")
    assert "may be right, and another one wrong" in finding.claim


def test_connections_that_broke_on_all_name_nobody(ask: Ask) -> None:
    (answer,) = ask("hang.heartbeats", beats(BROKEN, BROKEN, None))
    assert isinstance(answer, CannotTell)


def test_who_runs_no_python_is_named(ask: Ask) -> None:
    finding = only_finding(ask("hang.heartbeats", beats(None, None, None, silent_s=60)))
    assert finding.subject.ranks == (1,)
    assert "a call holds the GIL" in finding.claim


def test_who_left_early_is_named_and_a_job_that_is_over_is_not(ask: Ask) -> None:
    assert only_finding(ask("hang.heartbeats", beats(None, "finished", None))).subject.ranks == (1,)
    assert not any(hasattr(answer, "title") for answer in ask("hang.heartbeats", beats(*["finished"] * 3)))


def test_gloo_tells_that_sizes_differ_and_not_whose_is_wrong(ask: Ask) -> None:
    said = (
        "  what():  [enforce fail at gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 88 vs 44. "
        "Received data size doesn't match expected size."
    )
    log = JobLog().add(f"[rank0]: {said}")
    finding = only_finding(ask("hang.mismatch", log))
    assert "was sent 88 bytes where its own tensor takes 44" in finding.claim
    assert finding.title == "Ranks do not agree on the sizes of a collective"


def test_a_stopped_process_waits_for_nobody(ask: Ask) -> None:
    finding = only_finding(ask("hang.stacks", looked_at("S", "T", "S")))
    assert finding.title.startswith("Rank 1 stands stopped by a signal (state T), in all_reduce")
    assert finding.next[0] == "Find out who stopped it; it goes on with: kill -CONT 101"


def looked_at(*states: str) -> Files:
    """What is kept of live ranks, all of them in an all-reduce, by the kernel's state of each."""
    frames = [Frame(*frame) for frame in IN_ALL_REDUCE]
    files = {}
    for rank, state in enumerate(states):
        pid = 100 + rank
        stack = ThreadStack(pid, pid, "MainThread", frames, holds_gil=False, is_running=False)
        kept = StackFile(SCHEMA, pid, "a", [StackDump(pid, S, [stack], 1)], rank, states={pid: state})
        files[f"rank{rank}{SUFFIX}"] = msgspec.json.encode(kept).decode()
    return Files(files)


@dataclass(frozen=True)
class RestartedAlone:
    """Ranks 0 and 2 left dumps; of rank 1 two heartbeats tell: a process that ended, and another one that runs."""

    def write(self, path: Path) -> Path:
        hanging.absent_host([0, 2]).write(path)
        for name, beat in (("before", _beat(1, VANISHED, 0)), ("now", _beat(1, None, 0).replace("101", "901"))):
            (path / f"rank1.{name}.heartbeat.json").write_text(beat, encoding="utf-8")
        for rank in (0, 2):
            (path / f"rank{rank}.heartbeat.json").write_text(_beat(rank, None, 0), encoding="utf-8")
        return path

    def backwards(self) -> Self:
        return self


def test_a_rank_that_was_restarted_alone_is_named_as_that(ask: Ask) -> None:
    finding = only_finding(ask("hang.blocked", RestartedAlone()))
    assert finding.subject.ranks == (1,)
    assert finding.title == "Rank 1 is not the process any more that the others wait for: restarted alone"
    assert "Rank 1 began anew" in finding.claim
    assert "and process 901 runs" in finding.claim

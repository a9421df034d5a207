"""Hang faults: each hangs as it says, its twin does not, and what is kept shows it. All of it is made by real jobs."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diag.collect.heartbeat_writer import VANISHED
from diag.collect.py_spy import find_py_spy
from diag.probes.faults.hang import __main__ as program
from diag.probes.faults.hang import table
from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.ranks import started
from diag.probes.faults.hang.wrong_shape import SEGMENT, SEGMENTS_PER_RANK
from tests import interruptible
from tests.builders import hang_faults
from tests.builders.hang_faults import Call, Evidence

FAULTS = pytest.mark.parametrize("fault", table.FAULTS.values(), ids=list(table.FAULTS))
TENSOR = SEGMENTS_PER_RANK * 3 * SEGMENT


def reduced(sequence: int, size: int = 64, group: str = "0") -> Call:
    return Call(group, sequence, "all_reduce", (size,), False)


def reduces(sequence: int, size: int = 64, group: str = "0") -> Call:
    return replace(reduced(sequence, size, group), is_outstanding=True)


def gathers(sequence: int) -> Call:
    return Call("0", sequence, "all_gather", (1,), True)


RANK_1_NEVER_CAME = {0: [reduces(3)], 1: [reduced(2)], 2: [reduces(3)]}
LAST_CALLS: Mapping[str, Mapping[int, Sequence[Call]]] = {
    "swapped-order": {
        0: [reduces(5), gathers(6)],
        1: [gathers(5), reduces(6)],
        2: [reduces(5), gathers(6)],
    },
    "wrong-shape": {
        0: [reduced(3, TENSOR), reduces(4, TENSOR)],
        1: [reduced(2, TENSOR), reduces(3, 2 * TENSOR)],
        2: [reduced(3, TENSOR), reduces(4, TENSOR)],
    },
    "wrong-shape-aborts": {0: [reduced(2)], 1: [reduced(2)], 2: [reduced(2)]},
    "skipped": {0: [reduced(3), reduces(4)], 1: [reduced(3)], 2: [reduced(3), reduces(4)]},
    "dies": RANK_1_NEVER_CAME,
    "sleeps": RANK_1_NEVER_CAME,
    "holds-gil": RANK_1_NEVER_CAME,
    "recv-without-send": RANK_1_NEVER_CAME,
    "recv-cycle": {0: [reduced(2)], 1: [reduced(2)], 2: [reduces(3)]},
    "mismatched-group": {
        0: [reduced(1, group="1"), reduces(1)],
        1: [reduced(1, group="1"), reduces(1)],
        2: [],
        3: [],
    },
    "wrong-world-size": {1: []},
}
"""Of each rank, the end of what its recorder holds, or, where that is empty, all; of the others it is chance."""

STANDS_IN: Mapping[str, Mapping[int, str]] = {
    "swapped-order": {0: "program", 1: "program", 2: "program"},
    "wrong-shape": {0: "reduce_gradients", 1: "reduce_gradients"},
    "skipped": {0: "reduce_gradients", 1: "wait_for_checkpoint"},
    "sleeps": {0: "reduce_gradients", 1: "load_slowly"},
    "holds-gil": {0: "reduce_gradients", 1: "decode_batch"},
    "recv-without-send": {0: "reduce_gradients", 1: "receive_activations"},
    "recv-cycle": {0: "exchange_activations", 1: "exchange_activations", 2: "reduce_gradients"},
    "mismatched-group": {0: "reduce_gradients", 1: "reduce_gradients", 2: "make_groups", 3: "make_groups"},
    "wrong-world-size": {1: "init_process_group"},
}
"""A function that is in the stack of a rank and of no rank that stands elsewhere."""


@FAULTS
def test_dumps_show_who_called_what(fault: HangFault, hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / fault.name)
    for rank, last in LAST_CALLS[fault.name].items():
        calls = evidence.calls(rank)
        assert calls[-len(last) :] == last if last else calls == []
        assert all(not call.is_outstanding for call in calls[: -len(last)])
        assert all(entry["state"] == "scheduled" for entry in evidence.dump(rank).get("entries", []))


@FAULTS
def test_dumps_name_the_lines_of_the_program(fault: HangFault, hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / fault.name)
    entries = [entry for rank in range(fault.world_size) for entry in evidence.dump(rank).get("entries", [])]
    for entry in entries:
        assert {"reduce_gradients", "start_reducing_gradients", "start_gathering_metrics"} & {
            frame["name"] for frame in entry["frames"]
        }


@FAULTS
def test_stacks_show_where_ranks_stand(fault: HangFault, hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / fault.name)
    if fault.fails:
        assert evidence.files("stacks") == []  # nobody is left to be asked
        return
    assert len(evidence.files("stacks")) == fault.world_size
    functions = STANDS_IN[fault.name]
    for rank, function in functions.items():
        said = evidence.text("stacks", rank)
        assert _names(said, function), said
        assert not any(_names(said, other) for other in set(functions.values()) - {function, "program"})


def _names(stacks: str, function: str) -> bool:
    return re.search(rf'"name": "{function}"| in {function}\n', stacks) is not None


@FAULTS
def test_heartbeats_show_who_lives_and_where(fault: HangFault, hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / fault.name)
    for rank in range(fault.world_size):
        beat = evidence.heartbeat(rank)
        assert beat["rank"] == rank
        assert beat["world_size"] == fault.told_world_size.get(rank, fault.world_size)
        assert (beat["step"], beat["phase"]) in fault.stands_at[rank] or fault.fails
        is_silent = beat["written_ns"] - beat["time_ns"] > 4e9
        assert is_silent == (rank in fault.holds_gil)
        assert (beat["ended"] is not None) == fault.fails


def test_a_rank_that_is_killed_vanishes_and_takes_the_others_with_it(hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / "dies")
    assert evidence.truth["exits"] == {"0": 1, "1": -signal.SIGKILL, "2": 1}
    assert evidence.heartbeat(1)["ended"] == VANISHED
    for rank in (0, 2):
        assert evidence.heartbeat(rank)["ended"].startswith("RuntimeError")
        assert f"[rank{rank}]: RuntimeError" in evidence.text("logs", rank)


def test_who_receives_a_wrong_shape_aborts_and_says_the_sizes(hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / "wrong-shape-aborts")
    assert evidence.truth["exits"] == {"0": -signal.SIGABRT, "1": 1, "2": 1}
    assert evidence.heartbeat(0)["ended"] == VANISHED
    assert re.search(r"op\.preamble\.length <= op\.nbytes\. \d+ vs \d+", evidence.text("logs", 0))


def test_sends_and_receives_are_not_recorded_but_counted(hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / "recv-cycle")
    assert {call.op for rank in range(3) for call in evidence.calls(rank)} == {"all_reduce"}
    assert evidence.dump(0)["pg_status"]["0"]["last_enqueued_collective"] > evidence.calls(0)[-1].sequence


def test_a_group_overwrites_what_is_said_of_the_job(hang_evidence: Path) -> None:
    evidence = Evidence(hang_evidence / "mismatched-group")
    said = [next(iter(evidence.dump(rank)["pg_config"].values()))["ranks"] for rank in range(4)]
    assert said == ["[]", "[]", "[0, 1, 2, 3]", "[0, 1, 2, 3]"]


@FAULTS
def test_the_truth_says_what_was_put_there(fault: HangFault, hang_evidence: Path) -> None:
    truth = Evidence(hang_evidence / fault.name).truth
    assert truth["is_sick"] is True
    assert (tuple(truth["faulty"]), truth["cause"]) == (fault.faulty, fault.cause)
    assert bool(truth["exits"]) == fault.fails


@pytest.mark.slow  # for a minute on a busy machine
def test_outcomes_are_the_same_three_times_in_a_row_and_no_process_is_left(hang_evidence: Path, tmp_path: Path) -> None:
    folders = [hang_evidence, tmp_path / "second", tmp_path / "third"]
    for process in [hang_faults.start(folder, "all") for folder in folders[1:]]:
        hang_faults.finish(process)
    for fault in table.FAULTS.values():
        runs = [Evidence(folder / fault.name) for folder in folders]
        outcomes = [_outcome(run, LAST_CALLS[fault.name]) for run in runs]
        assert outcomes[1:] == outcomes[:-1], fault.name
        pids = [run.heartbeat(rank)["pid"] for run in runs for rank in range(fault.world_size)]
        assert [pid for pid in pids if not interruptible.ended(pid)] == []


def _outcome(run: Evidence, ranks: Mapping[int, object]) -> Any:
    """Of ranks whose outcome is not chance."""
    beats = {rank: run.heartbeat(rank) for rank in ranks}
    return (
        run.truth["exits"],
        {rank: run.calls(rank) for rank in ranks},
        {rank: (beat["step"], beat["phase"], _kind(beat["ended"])) for rank, beat in beats.items()},
    )


def _kind(ended: str | None) -> str | None:
    return ended and ended.partition(":")[0]


def test_healthy_twins_end_by_themselves(tmp_path: Path) -> None:
    hang_faults.finish(hang_faults.start(tmp_path, "all", "--healthy"))
    for fault in table.FAULTS.values():
        evidence = Evidence(tmp_path / fault.name)
        everybody = range(fault.world_size)
        assert evidence.truth["exits"] == {str(rank): 0 for rank in everybody}
        assert evidence.truth["faulty"] == []
        assert [evidence.heartbeat(rank)["ended"] for rank in everybody] == ["finished"] * fault.world_size
        assert all(calls and not any(call.is_outstanding for call in calls) for calls in map(evidence.calls, everybody))
        assert evidence.files("stacks", "logs") == []


def test_where_py_spy_is_not_the_ranks_tell_their_stacks_even_with_the_gil_held(tmp_path: Path) -> None:
    hang_faults.finish(hang_faults.start(tmp_path, "holds-gil", "--stacks", "faulthandler"))
    said = Evidence(tmp_path / "holds-gil").text("stacks", 1)
    assert "in decode_batch" in said
    assert said.count("most recent call first") == 3  # of the main thread, the recorder and the heartbeat


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_it_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    """Of the GIL holder: the one that waits longest for its evidence, and heeds no signal that Python handles."""
    command: list[str] = [*hang_faults.PROGRAM, "holds-gil", "-o", str(tmp_path / "hangs")]
    process = interruptible.start(command, {**os.environ, "TMPDIR": str(tmp_path)})
    ranks: list[int] = []

    def runs() -> bool:
        ranks[:] = _children(process.pid)
        return len(ranks) == 3 and len(list(tmp_path.glob("diag-hang-*/ranks/*.heartbeat.json"))) == 3

    interruptible.wait_until(runs, process)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert all(interruptible.ended(pid) for pid in ranks)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(number) for number in text.split()]


def test_ranks_are_ended_when_what_looks_at_them_fails() -> None:
    seen: list[int] = []

    def wait_for_ever(_: int) -> Any:
        time.sleep(600)

    def look() -> None:
        with started(2, wait_for_ever) as ranks:
            seen.extend(ranks.pids)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  # it has no message
        look()
    assert len(seen) == 2
    assert all(interruptible.ended(pid) for pid in seen)


def test_the_list_has_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([]) == 0
    listed = capsys.readouterr().out
    assert all(fault.name in listed and fault.cause in listed for fault in table.FAULTS.values())


def test_what_cannot_be_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dies").mkdir()
    assert program.main(["sleps"]) == 2
    assert "Did you mean sleeps?" in capsys.readouterr().err
    assert program.main(["dies", "-o", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_py_spy_is_what_stacks_are_taken_with_where_it_is(hang_evidence: Path) -> None:
    suffix = ".json" if find_py_spy() else ".txt"
    assert {file.suffix for file in Evidence(hang_evidence / "sleeps").files("stacks")} == {suffix}

"""`diag hang` as its users run it. The stacks are synthetic, in the words of py-spy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from diag.render.layout import cells
from tests.cli.conftest import Command
from tests.collect.watched import running
from tests.terminal import DIAG, Terminal, needs_tmux

WAITS = """\
Process {pid}: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread {pid} (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:3007)
    wrapper (torch/distributed/c10d_logger.py:83)
    train_step (train.py:30)
    <module> (train.py:50)
"""
LOADS = WAITS.replace(
    "    all_reduce (torch/distributed/distributed_c10d.py:3007)\n    wrapper (torch/distributed/c10d_logger.py:83)\n"
    "    train_step (train.py:30)\n",
    "    load_batch (data.py:14)\n",
)
HEADLINE = "Rank 9 stands in load_batch (data.py:14); 15 ranks wait for the others"


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    folder = tmp_path / "stacks"
    folder.mkdir()
    for rank in range(16):
        text = (LOADS if rank == 9 else WAITS).format(pid=100 + rank)
        (folder / f"rank{rank}.stack").write_text(text)
    return folder


def test_the_answer_is_the_first_line(diag: Command, stacks: Path) -> None:
    outcome = diag("hang", stacks)
    assert (outcome.status, outcome.err) == (0, f"diag: {stacks}: reading 16 stack dumps.\n")
    assert outcome.out.splitlines()[0] == HEADLINE
    assert "Ranks 0–8, 10–15 in all_reduce ← train_step (train.py:30)." in outcome.out
    assert max(map(cells, outcome.out.splitlines())) <= 80
    assert "\x1b" not in outcome.out


def test_files_and_folders_together(diag: Command, stacks: Path) -> None:
    beat = {
        "schema": "diag.heartbeat/1", "rank": 9, "world_size": 16, "pid": 109, "host": "a", "time_ns": 10**18,
        "written_ns": 10**18 + 60 * 10**9, "state": "S", "step": 3, "phase": "load batch",
    }  # fmt: skip
    file = stacks.parent / "rank9.heartbeat.json"
    file.write_text(json.dumps(beat))
    outcome = diag("hang", stacks, file)
    assert "Rank 9 has run no Python for 60.0 s while its process lives" in outcome.out


def test_json_and_markdown(diag: Command, stacks: Path) -> None:
    told = json.loads(diag("hang", "--format", "json", stacks).out)
    assert (told["schema"], told["hang"]["headline"]) == ("diag.report/1", HEADLINE)
    assert told["hang"]["stacks"][0]["ranks"] == [9]
    assert diag("hang", "-f", "markdown", stacks).out.startswith("## Rank 9 stands in load\\_batch (data.py:14)")


def test_the_case_is_kept_and_told_again(diag: Command, stacks: Path, tmp_path: Path) -> None:
    first = diag("hang", stacks, "-o", tmp_path / "night.diag")
    again = diag("hang", tmp_path / "night.diag")
    assert again.out == first.out


def test_a_reader_that_has_seen_enough_is_no_error(stacks: Path) -> None:
    shell = f"{DIAG} hang {stacks} | head -1"
    ended = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout == HEADLINE + "\n"
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["no/such/file"], 3, "no/such/file does not exist"),
        (["4194304999"], 3, "There is no process 4194304999"),
        (["0"], 3, "There is no process 0"),
        (["--top", "0", "."], 2, "--top"),
        (["--wait", "-1", "."], 2, "--wait"),
        (["--format", "html", "."], 2, "'html' is not one of"),
        (["--evidence", "folder", "."], 2, "--evidence keeps what is learnt from processes"),
    ],
)
def test_what_cannot_be_is_a_sentence(diag: Command, words: list[str], status: int, said: str) -> None:
    assert said in diag("hang", *words).is_one_sentence(status)


def test_a_folder_without_evidence_is_a_sentence(diag: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "without anything to read" in diag("hang", tmp_path / "empty").is_one_sentence(3)


def test_a_process_that_is_gone_is_a_sentence(diag: Command) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert f"There is no process {process.pid}" in diag("hang", str(process.pid)).is_one_sentence(3)


@pytest.fixture
def not_python() -> Iterator[int]:
    code = "import os; print(flush=True); os.execv('/bin/sleep', ['sleep', '60'])"
    with running(code) as process:
        yield process.pid


def test_what_tells_nothing_is_a_sentence(diag: Command, not_python: int) -> None:
    said = diag("hang", "--wait", "0", str(not_python)).is_one_sentence(3)
    assert "does not run Python" in said or "may not be traced" in said or "py-spy is not installed" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every process")
def test_the_process_of_another_user_is_a_sentence(diag: Command) -> None:
    assert "belongs to user 0" in diag("hang", "1").is_one_sentence(3)


def test_evidence_of_a_process_is_kept_where_the_user_wants_it(diag: Command, tmp_path: Path) -> None:
    with running("print(flush=True); input()", env={"RANK": "2", "WORLD_SIZE": "4"}) as process:
        outcome = diag("hang", "--wait", "0", "--evidence", tmp_path / "night", str(process.pid))
        if outcome.status == 3:
            pytest.skip(outcome.err)
    assert [file.name for file in (tmp_path / "night").iterdir()] == [f"rank2-pid{process.pid}.stacks.json"]
    assert "No dump was asked of rank 2: the recorder has no pipe" in " ".join(outcome.out.split())
    assert "Rank 2 in" in diag("hang", tmp_path / "night").out


@needs_tmux
def test_in_a_terminal_of_80_columns(stacks: Path, tmp_path: Path) -> None:
    with Terminal.opened(tmp_path, size=(80, 50)) as terminal:
        terminal.run(DIAG, "hang", str(stacks), "|", "head", "-20", ";", DIAG, "hang", "-h", "|", "tail", "-3")
        terminal.wait_for("See also:")
        assert HEADLINE in terminal.screen

"""The pipe of PyTorch's flight recorder: asked where it is one, and never waited for.

PyTorch makes the pipe with NCCL only, so a program stands in for a rank here that follows the same contract.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.collect.recorder_pipe import Recorder, new_dumps, recorder_of, trigger, version
from tests.collect.watched import as_nobody, running, wait_for

LISTENS = """
import os, select, sys
stem, dump, rank = sys.argv[1:]
os.mkfifo(f"{stem}{rank}.pipe", 0o666)
pipe = os.open(f"{stem}{rank}.pipe", os.O_RDONLY | os.O_NONBLOCK)
print("listening", flush=True)
while not select.select([pipe], [], [], 60)[0] or not os.read(pipe, 128):
    pass
with open(f"{dump}{rank}", "wb") as file:
    file.write(b"half ")
    file.flush()
    sys.stdin.readline()
    file.write(b"whole.")
print("dumped", flush=True)
sys.stdin.readline()
"""
RANK = 3


def recorder(pipe: Path | None) -> Recorder:
    return Recorder(RANK, os.getpid(), pipe, [])


def test_where_a_rank_listens_and_dumps(tmp_path: Path) -> None:
    environment = {
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{tmp_path}/pipe_", "TORCH_FR_DUMP_TEMP_FILE": f"{tmp_path}/dump_",
        "SECRET": "x",
    }  # fmt: skip
    with running("print(flush=True); input()", env=environment) as process:
        found = recorder_of(process.pid, RANK)
        assert found.pipe == Path(f"/proc/{process.pid}/root{tmp_path}/pipe_3.pipe")
        assert found.dumps == [Path(f"/proc/{process.pid}/root{tmp_path}/dump_3")]


def test_without_settings_there_is_no_pipe_and_dumps_are_where_pytorch_puts_them(tmp_path: Path) -> None:
    names = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
    command = ["env", *(word for name in names for word in ("-u", name)), f"XDG_CACHE_HOME={tmp_path}"]
    with running("print(flush=True); input()", prefix=command) as process:
        found = recorder_of(process.pid, RANK)
        assert found.pipe is None
        assert [str(path).partition("/root")[2] for path in found.dumps] == [
            f"{tmp_path}/torch/comm_lib_trace_rank_3",
            "/tmp/nccl_trace_rank_3",
        ]
        assert "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" in (trigger(found) or "")


def test_a_dump_is_asked_for_and_awaited_until_it_is_whole(tmp_path: Path) -> None:
    with running(LISTENS, f"{tmp_path}/pipe_", f"{tmp_path}/dump_", str(RANK)) as process:
        dump = tmp_path / "dump_3"
        elsewhere = tmp_path / "older_3"  # where another release would put it
        before = [{elsewhere: None, dump: version(dump)}]
        assert trigger(Recorder(RANK, process.pid, tmp_path / "pipe_3.pipe", [dump])) is None
        wait_for(dump.exists)
        assert new_dumps(before, wait_s=0.6) == []  # it is still written
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        assert new_dumps(before, wait_s=30) == [dump]
        assert new_dumps([{dump: version(dump)}], wait_s=0.2) == []  # an old one is no answer


def test_a_path_that_no_kernel_takes_is_a_sentence() -> None:
    environment = {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "/" + "x/" * 2_500, "TORCH_FR_DUMP_TEMP_FILE": "/" + "y" * 5_000}
    with running("print(flush=True); input()", env=environment) as process:
        found = recorder_of(process.pid, RANK)
    assert "cannot be written: File name too long" in (trigger(recorder(found.pipe)) or "")
    assert [version(path) for path in found.dumps] == [None]


def test_nothing_but_a_pipe_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to pipe").symlink_to(tmp_path / "pipe")
    for place in ("file", "link", "link to pipe"):
        assert "is none" in (trigger(recorder(tmp_path / place)) or "")
    assert file.read_text() == "mine"
    assert "is not there" in (trigger(recorder(tmp_path / "nothing")) or "")


def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "cannot be written" in (trigger(recorder(tmp_path / "pipe")) or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become another user")
def test_the_pipe_of_another_user_is_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    os.chown(pipe, 65534, 65534)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert "another user" in (trigger(recorder(pipe)) or "")
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become another user")
def test_the_environment_of_another_user_is_not_read() -> None:
    def ask() -> str:
        try:
            recorder_of(os.getppid(), RANK)
        except PermissionError:
            return "refused"
        return "read"

    assert as_nobody(ask) == "refused"

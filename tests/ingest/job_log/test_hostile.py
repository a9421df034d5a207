"""Logs are untrusted, and may be large."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.job_log import store
from diag.ingest.job_log.lines import BLOCK_BYTES
from diag.ingest.job_log.reader import read_lines
from diag.ingest.job_log.secrets import without_secrets
from tests.builders.job_log import CANCELLED, Rank, nccl_log, timed_out
from tests.builders.server_log import OOM, SGLANG_START, VLLM_START, sglang_decode, vllm_stats
from tests.ingest.job_log.reading import events, only

HEAD = "n0:1:2 [0] NCCL INFO"
SPACES, DIGITS, LETTERS = " " * 1_000_000, "1" * 1_000_000, "a" * 1_000_000


@pytest.mark.parametrize(
    "line",
    [
        f"{LETTERS} NCCL INFO Using network IB",
        f"n0:1:2 [0] NCCL INFO{SPACES}Using network IB",
        f"{HEAD} Channel 00/24 :{' 1' * 500_000}x",
        f"{HEAD} NCCL_X set by environment to {SPACES}x",
        f"{HEAD} Channel 00 : {DIGITS} -> 1 via P2P",
        f"{HEAD} AllReduce: opCount {LETTERS}comm 0x1",
        f"{HEAD} GPU/0-1 :GPU/0-1 (0/5000.0/LOC) " + "GPU/0-2 (1/20.0/NVL) " * 50_000,
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=" + LETTERS,
        "[PG " * 250_000 + "detected by watchdog at work",
        "Traceback (most recent call last)" + LETTERS + "Error",
        "a." * 500_000 + "Error: x",
        "slurmstepd: error: *** JOB " * 40_000 + "DUE TO TIME LIMIT",
        "srun: error: n0: tasks " + "1-9999999," * 100_000 + ": Killed",
        "NCCL INFO via " * 70_000,
        "Rank 1 " * 140_000 + "-- GPU managed by process ",
        "token=" * 160_000 + " NCCL version 2.27.7",
        "kernel: oom-kill:" + ",task" * 200_000,
        "CUDA out of memory. Tried to allocate " + DIGITS,
        "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; " + "1.00 GiB total " * 70_000,
        "Load weight end." + " avail mem=" * 90_000,
        "server_args=ServerArgs(" + "tp_size=" * 120_000,
        "LLM engine (v1) " + "model='" * 140_000,
        "throughput: " * 80_000 + "Preemptions: x",
        "Sequence group 1 is preempted by X mode" + "total_" * 160_000,
    ],
    ids=lambda line: line[:24].strip(),
)
def test_a_line_of_a_million_characters_takes_no_time(line: str) -> None:
    before = time.process_time()
    read_lines(io.BytesIO(f"{line}\n{HEAD} Using network IB\n".encode()))
    assert time.process_time() - before < 2


def test_a_line_without_end_is_cut_and_the_next_one_read() -> None:
    stream = io.BytesIO(b"x" * (3 * BLOCK_BYTES) + b"\n" + f"{HEAD} Using network IB\n".encode())
    (event,) = read_lines(stream).events
    assert event.fields == {"network": "IB"}


def test_lines_are_numbered_across_blocks() -> None:
    text = b"nothing\n" * (BLOCK_BYTES // 4) + f"{HEAD} Using network IB\n".encode()
    (event,) = read_lines(io.BytesIO(text)).events
    assert event.line == BLOCK_BYTES // 4 + 1


def test_so_many_connections_are_kept_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_TRANSPORTS", 10)
    lines = "".join(f"{HEAD} Channel 00/0 : {peer}[0] -> 0[0] via P2P/IPC\n" for peer in range(1, 31))
    found = read_lines(io.BytesIO(f"{lines}{HEAD} Using network IB\n".encode()))
    assert [event.kind for event in found.events].count("nccl.transport") == 10
    assert found.passed_over == {"nccl.transport": 20}
    assert found.events[-1].kind == "nccl.net"
    assert store.notes_of(found.passed_over) == ["20 lines of nccl.transport were counted and not kept"]


@pytest.mark.parametrize(
    "secret",
    [
        "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz",
        "password: hunter2hunter2",
        "Authorization: Bearer abc.def.ghi",
        "https://me:hunter2@example.org/x",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefg",
        "0123456789abcdef0123456789abcdef01234567",
        "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG",
        "redis://:hunter2@host",
        "https://me:hunter@two@host",
        "--password hunter2",
        "-u me:hunter2",
        'PASSWORD = "hunter2"',
        "AIzaSyA-abcdefghijklmnopqrstuvwxyz0123456",
        "-----BEGIN RSA PRIVATE KEY-----MIIEpAIBAAKCAQEA",
    ],
)
def test_no_secret_enters_the_case(secret: str, tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text(f"[rank0]: Traceback (most recent call last):\n[rank0]: ValueError: {secret} was refused\n")
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (row,) = case.rows("SELECT fields, text FROM log_event")
    value = secret.rpartition("=")[2].rpartition(" ")[2].rpartition("://")[2].partition("@")[0].rpartition("-----")[2]
    assert value not in row["text"]
    assert value not in row["fields"]
    assert "(hidden)" in row["text"]


@pytest.mark.parametrize("name", ["NCCL_PASSWORD", "TORCH_HUB_TOKEN", "NCCL_AWS_SECRET_ACCESS_KEY"])
def test_a_variable_that_is_named_as_a_secret_has_no_value(name: str) -> None:
    event = only(f"{HEAD} {name} set by environment to hunter2")
    assert event.fields["value"] == "(hidden)"
    assert "hunter2" not in event.text


def test_what_is_no_secret_stays() -> None:
    text = "NCCL_IB_HCA=mlx5_0 commId 0x54fe282d32a87d85 number of tokens 512"
    assert without_secrets(text) == text


def test_bytes_that_are_no_text() -> None:
    assert read_lines(io.BytesIO(b"\xff\xfe " + HEAD.encode() + b" Using network \xff\n")).events == []


# ---- what is a log -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        vllm_stats(1),
        sglang_decode(1),
        "\n".join(VLLM_START),
        "\n".join(SGLANG_START),
        OOM,
        "\n".join(timed_out(0, 7)),
        CANCELLED,
        "NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus.",
        "some words\n" * 400_000 + f"{HEAD} Using network IB",
        f"{HEAD} Using network IB",
        f"\x1b[36m[rank0]:\x1b[0m \x1b[1m{HEAD} Using network IB\x1b[0m",
        f"{{'lr': 0.1}}\n{HEAD} Using network IB",
        f"<html>503 from a proxy</html>\n{HEAD} Using network IB",
        f"{HEAD} Using network IB\n" + 4096 * "\0" + f"{HEAD} Using network IB",
    ],
    ids=[
        "vllm",
        "sglang",
        "vllm starts",
        "sglang starts",
        "memory",
        "watchdog",
        "slurm",
        "kernel",
        "late",
        "nccl",
        "coloured",
        "after a record",
        "after a page",
        "with a hole",
    ],
)
def test_logs(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.out"
    path.write_text(text + "\n")
    assert detect(path) == "job-log"


@pytest.mark.parametrize(
    "text",
    [
        "Dear diary,\nNCCL INFO is a level.\n",
        f"# How to read logs\n\n```\n{HEAD} Using network IB\n```\n",
        f"Title\n=====\n\n.. code::\n\n  {HEAD} Using network IB\n",
        f"import re\nPATTERN = '{HEAD} Using network IB'\n",
        "a,b\n1,2\n",
        f'{{"log": "{HEAD} Using network IB"}}\n',
        f"# How to read logs\n\n    {HEAD} Using network IB\n",
        f'time,message\n1,"{HEAD} Using network IB"\n',
        f'const char* line = "{HEAD} Using network IB";\n',
        f"// {HEAD} Using network IB\nint main() {{}}\n",
        f"# What a server says\n\n    {vllm_stats(1)}\n",
        f"> {OOM}\n",
        f'{{"log": "{OOM}"}}\n',
        f"```\n{sglang_decode(1)}\n```\n",
    ],
    ids=[
        "prose",
        "markdown",
        "rst",
        "python",
        "csv",
        "json",
        "literal block",
        "csv with it",
        "c",
        "comment",
        "server quoted",
        "memory quoted",
        "memory in json",
        "server fenced",
    ],
)
def test_other_texts(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(InputError):
        detect(path)


def test_a_binary_file_with_such_a_phrase_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(b"\0\1\2" + f"{HEAD} Using network IB\n".encode())
    with pytest.raises(InputError):
        detect(path)


def test_colours_are_no_part_of_what_is_said() -> None:
    event = only(f"\x1b[36m[rank3]:\x1b[0m {HEAD} Using network IB\x1b[0m")
    assert (event.place.rank, event.fields) == (3, {"network": "IB"})
    assert "\x1b" not in event.text


def test_windows_line_ends() -> None:
    assert only(f"{HEAD} Using network IB\r").fields == {"network": "IB"}
    assert len(events(*(f"{line}\r" for line in Rank(0).lines()))) == len(events(*Rank(0).lines()))


def test_a_source_of_one_rank_says_so(tmp_path: Path) -> None:
    path = nccl_log(Rank(1)).write(tmp_path / "rank1.log")
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (source,) = case.sources
    assert (source.rank, source.rank_origin, source.world_size, source.host) == (1, "content", 2, "n0")
    assert not source.has_timeline

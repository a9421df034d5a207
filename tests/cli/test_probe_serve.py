"""`diag probe serve`, as its users type it, against a server of the test's own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from diag.model.serving_log import Header, Record, RequestRecord, StepRecord
from tests.cli.conftest import Command
from tests.interruptible import wait_until
from tests.probes.serve.server import Reply, Server, answer, in_turn

SMALL = ("--requests", "6", "--prompt-tokens", "uniform:3-9", "--output-tokens", "4")


def records(file: Path) -> list[Record]:
    decoder = msgspec.json.Decoder(Record)
    return [decoder.decode(line) for line in file.read_bytes().splitlines()]


def test_a_load_is_shown_and_kept(diag: Command, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    with Server() as server:
        words = ("--url", server.url, "--rate", "200", "--warmup", "2", "--slo", "ttft=10s", "-o", log)
        shown = diag("probe", "serve", *words, *SMALL).is_quiet_success()
    assert "Open loop, 200 requests/s (poisson): 6 requests, 6 completed" in shown
    assert "goodput" in shown
    assert shown.endswith(f"Next: diag report {log}\n")
    header, *requests = records(log)
    assert isinstance(header, Header)
    assert (header.model, header.backend, header.load.rate_per_s) == ("tiny", "vllm", 200)
    assert [each.phase for each in requests if isinstance(each, RequestRecord)] == (
        ["engine_warmup"] * 2 + ["measured"] * 6
    )
    assert os.listdir(tmp_path) == ["run.jsonl"]


def test_a_sweep_is_one_file(diag: Command, tmp_path: Path) -> None:
    log = tmp_path / "sweep.jsonl"
    with Server() as server:
        words = ("--url", server.url, "--concurrency", "1", "--concurrency", "3", "-o", log)
        shown = diag("probe", "serve", *words, *SMALL).is_quiet_success()
    assert "Closed loop, 1 in flight: 6 requests" in shown
    assert "Closed loop, 3 in flight: 6 requests" in shown
    kinds = [type(each) for each in records(log)]
    assert kinds == [Header, *[RequestRecord] * 6] * 2
    prompts = [each["prompt"] for each in server.asked]
    assert sorted(prompts[:6]) == sorted(prompts[6:]), "the same at each concurrency"


def test_nothing_is_kept_unless_it_is_asked_for(diag: Command, tmp_path: Path) -> None:
    with Server() as server:
        shown = diag("probe", "serve", "--url", server.url, "--rate", "500", *SMALL, cwd=tmp_path).is_quiet_success()
    assert shown.endswith("Keep the log with -o FILE, for: diag report FILE\n")
    assert os.listdir(tmp_path) == []


async def refused(reply: Reply) -> None:
    await reply.say(503, "no room")


def test_without_a_completed_request_nothing_can_be_told(diag: Command, tmp_path: Path) -> None:
    with Server(refused) as server:
        words = ("--url", server.url, "--concurrency", "2", "-o", tmp_path / "run.jsonl")
        ended = diag("probe", "serve", *words, *SMALL)
    assert ended.status == 4
    assert "6 requests, 0 completed, 6 rejected" in ended.out
    assert "6 requests: status 503: no room" in ended.out
    assert ended.err == "diag: No request completed; above stands why.\n"
    assert len(records(tmp_path / "run.jsonl")) == 7


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_ended_and_cancels_what_did_not(
    number: signal.Signals, diag: Command, tmp_path: Path
) -> None:
    log = tmp_path / "run.jsonl"

    async def hangs(reply: Reply) -> None:
        await reply.head()
        await asyncio.Event().wait()

    with Server(in_turn(answer, hangs)) as server:
        words = ("--url", server.url, "--concurrency", "2", "--output-tokens", "4", "-o", log)
        process = diag.start("probe", "serve", *words)
        wait_until(lambda: len(server.asked) >= 4, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert server.is_left_alone()
    assert (process.returncode, out) == (128 + number, b"")
    assert err.decode() == f"diag: interrupted; what had ended by then is in {log}.\n"
    outcomes = [each.outcome for each in records(log) if isinstance(each, RequestRecord)]
    assert sorted(outcomes) == ["cancelled"] * 2 + ["completed"] * (len(outcomes) - 2)
    assert len(outcomes) == len(server.asked)
    assert os.listdir(tmp_path) == ["run.jsonl"]


def test_a_run_that_is_killed_leaves_what_was_flushed(diag: Command, tmp_path: Path) -> None:
    log, part = tmp_path / "run.jsonl", tmp_path / "run.jsonl.part"
    with Server() as server:
        words = ("--url", server.url, "--rate", "50", "--requests", "100000", "--output-tokens", "2", "-o", log)
        process = diag.start("probe", "serve", *words)
        wait_until(lambda: part.exists() and part.stat().st_size > 0, process)
        process.kill()
        process.communicate(timeout=20)
        assert len(records(part)) > 1
        again = diag("probe", "serve", *words)
    assert f"{part} is of a run that goes on or was killed" in again.is_one_sentence(2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--url", "http://127.0.0.1:1"], "--rate 4 for an open loop"),
        (["--url", "http://127.0.0.1:1", "--rate", "1", "--slo", "itl=3"], "--slo: 'itl=3' is no objective"),
        (["--url", "http://127.0.0.1:1", "--rate", "1", "--token-ids", "9", "--api", "chat"], "--token-ids is for"),
    ],
)
def test_wrong_words_are_wrong_usage(words: list[str], said: str, diag: Command) -> None:
    assert said in diag("probe", "serve", *words).is_one_sentence(2)


def test_a_server_that_is_not_there_is_one_sentence(diag: Command, tmp_path: Path) -> None:
    with Server() as server:
        url = server.url
    said = diag("probe", "serve", "--url", url, "--rate", "1", "-o", tmp_path / "run.jsonl").is_one_sentence(3)
    assert "does not answer" in said
    assert "running?" in said
    assert os.listdir(tmp_path) == []


def test_help_has_examples(diag: Command) -> None:
    assert "\nExamples:\n  diag probe serve --url" in diag("probe", "serve", "-h").is_quiet_success()


# ---- the mini-engine -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_without_an_address_the_mini_engine_is_put_under_load(diag: Command, tmp_path: Path) -> None:
    log = tmp_path / "engine.jsonl"
    words = ("--engine", "n_layers=1", "--engine", "block_tokens=8", "--concurrency", "3", "-o", log)
    shown = diag("probe", "serve", *words, *SMALL, env={"OMP_NUM_THREADS": "1"}).is_quiet_success()
    assert "6 requests, 6 completed" in shown
    assert "queue time" in shown
    header, *rest = records(log)
    assert isinstance(header, Header)
    assert header.engine is not None
    assert (header.backend, header.model, header.engine.block_tokens) == ("mini-engine", "tiny", 8)
    assert {type(each) for each in rest} == {RequestRecord, StepRecord}
    assert diag("report", log).status != 3, "it can be read"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "n_blocks=few"], "--engine n_blocks=few: Expected int"),
        (["--body", "{}"], "--body is for a server"),
        (["--url", "http://127.0.0.1:1", "--engine", "n_blocks=3"], "Leave one of them out"),
    ],
)
def test_what_is_of_the_other_is_wrong_usage(words: list[str], said: str, diag: Command) -> None:
    assert said in diag("probe", "serve", "--rate", "1", *words).is_one_sentence(2)


def test_the_page_about_it_names_options_that_there_are(diag: Command) -> None:
    page = (Path(__file__).parents[2] / "docs" / "load.md").read_text(encoding="utf-8")
    shown = diag("probe", "serve", "-h").out
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert named
    assert {option for option in named if option not in shown} == set()

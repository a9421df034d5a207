"""The client of OpenAI-compatible servers, against servers that keep no promise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from diag.errors import InputError, UsageError
from diag.model.serving_log import RequestRecord
from diag.model.token_lengths import Constant
from diag.probes.serve import openai_client
from diag.probes.serve.arrivals import ClosedLoop
from diag.probes.serve.endpoint import endpoint
from diag.probes.serve.load import Limits, Load
from diag.probes.serve.openai_client import OpenAiClient, first_model, parsed_body
from diag.probes.serve.running import new_clock
from diag.probes.serve.workload import Workload
from tests.probes.serve.server import Behaviour, Reply, Server, answer, in_turn, token, usage

THREE = Workload(loop=ClosedLoop(3), n_requests=6, prompt_lengths=Constant(5), output_lengths=Constant(4))
NO_LIMITS = Limits()
PAUSE_S = 0.1
"""Between events that must not arrive together, on a busy machine either."""
ONE = replace(THREE, loop=ClosedLoop(1), n_requests=1)


def served_by(
    server: Server, workload: Workload = THREE, limits: Limits = NO_LIMITS, **settings: object
) -> Sequence[RequestRecord]:
    """By number. What is left of the run is nothing: no task, no thread, no connection."""
    records: list[RequestRecord] = []
    threads = threading.active_count()
    at = openai_client.Server(endpoint(server.url, None), "tiny")
    client = OpenAiClient(replace(at, **settings))  # type: ignore[arg-type]

    async def main() -> None:
        await Load(workload, client, records.append, new_clock(), limits).run()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert server.is_left_alone()
    assert threading.active_count() == threads
    return sorted(records, key=lambda record: record.id)


def test_a_whole_answer() -> None:
    with Server() as server:
        records = served_by(server)
    assert [record.outcome for record in records] == ["completed"] * 6
    for record in records:
        assert (record.prompt_tokens, record.output_tokens, record.finish_reason) == (5, 4, "length")
        assert record.sent_ns is not None
        assert record.ended_ns is not None
        times = [record.sent_ns, *record.token_ns, record.ended_ns]
        assert times == sorted(times)
    asked = server.asked[0]
    assert (asked["model"], asked["max_tokens"], asked["stream"]) == ("tiny", 4, True)
    assert asked["stream_options"] == {"include_usage": True}
    assert "authorization" not in server.headers[0]


def test_tokens_have_the_times_at_which_they_came() -> None:
    async def slowly(reply: Reply) -> None:
        await answer(reply, every_s=0.02)

    with Server(slowly) as server:
        (record,) = served_by(server, ONE)
    assert record.output_tokens == 4
    assert record.token_ns[-1] - record.token_ns[0] > 20_000_000


async def _in_bursts(reply: Reply) -> None:
    await reply.head()
    await reply.events(token(), token())
    await asyncio.sleep(PAUSE_S)
    await reply.events(token(), token(finish="length"))
    await reply.end()


async def _counted(reply: Reply) -> None:
    """The server counts in each event, as with speculative decoding."""
    await reply.head()
    for n in (1, 4, 6):
        await reply.events({**token(finish="stop" if n == 6 else None), "usage": usage(5, n, cached=2)})
        await asyncio.sleep(PAUSE_S)
    await reply.end()


async def _with_logprobs(reply: Reply) -> None:
    await reply.head()
    for n in (1, 3):
        choice = {**token()["choices"][0], "logprobs": {"tokens": ["x"] * n}}
        await reply.events({"choices": [choice]})
        await asyncio.sleep(PAUSE_S)
    await reply.events(token("", finish="stop"))
    await reply.end()


async def _counted_at_the_end(reply: Reply) -> None:
    """Five tokens in two events, which nobody told until the last of them."""
    await reply.head()
    await reply.events(token())
    await asyncio.sleep(PAUSE_S)
    await reply.events({**token(finish="stop"), "usage": usage(5, 5)})
    await reply.end()


@pytest.mark.parametrize(
    ("behave", "counts", "n_outputs", "n_tokens"),
    [
        (_in_bursts, [2, 2], 2, 4),
        (_counted, [1, 3, 2], 3, 6),
        (_with_logprobs, [1, 3], 2, 4),
        (_counted_at_the_end, [], 2, 5),
    ],
)
def test_tokens_of_an_output_are_those_that_the_server_tells(
    behave: Behaviour, counts: Sequence[int], n_outputs: int, n_tokens: int
) -> None:
    with Server(behave) as server:
        (record,) = served_by(server, ONE)
    assert record.outcome == "completed"
    assert list(record.token_counts) == counts
    assert (len(record.token_ns), record.output_tokens) == (n_outputs, n_tokens)
    assert record.cached_tokens == (2 if behave is _counted else None)


# ---- what goes wrong -------------------------------------------------------------------------------------------------


async def _dropped(reply: Reply) -> None:
    await reply.head()
    await reply.events(token())
    reply.cut()


async def _ended_early(reply: Reply) -> None:
    await reply.head()
    await reply.events(token(), token())
    await reply.raw(b"")


async def _no_json(reply: Reply) -> None:
    await reply.head()
    await reply.raw(b'data: {"choices": [{"text": \n\n')
    await reply.end()


async def _other_json(reply: Reply) -> None:
    await reply.head()
    await reply.raw(b'data: {"choices": 3}\n\n')
    await reply.end()


async def _no_text(reply: Reply) -> None:
    await reply.head()
    await reply.raw(b"data: \xff\xfe\n\n")
    await reply.end()


async def _streamed_error(reply: Reply) -> None:
    await reply.head()
    await reply.events(token(), {"error": {"message": "out of memory"}})
    await reply.end()


async def _endless_line(reply: Reply) -> None:
    await reply.head()
    while True:
        await reply.raw(b"data: " + b"x" * 65_536)


async def _endless_stream(reply: Reply) -> None:
    await reply.head()
    while True:
        await reply.raw(b": still here\n" * 5_000)


async def _endless_headers(reply: Reply) -> None:
    reply.writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        reply.writer.write(b"x-more: " + b"y" * 10_000 + b"\r\n")
        await reply.writer.drain()


async def _stalled(reply: Reply) -> None:
    await reply.head()
    await reply.events(token())
    await asyncio.Event().wait()


async def _nothing(reply: Reply) -> None:
    reply.cut()


async def _no_http(reply: Reply) -> None:
    reply.writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    reply.cut()


async def _no_stream(reply: Reply) -> None:
    await reply.say(200, '{"choices": []}')


async def _empty(reply: Reply) -> None:
    await reply.head()
    await reply.end()


async def _compressed(reply: Reply) -> None:
    await reply.head(content_encoding="gzip")
    await reply.raw(b"\x1f\x8b\x08")
    await reply.raw(b"")


async def _redirected(reply: Reply) -> None:
    await reply.say(307, "", location="http://127.0.0.1:1/elsewhere")


async def _busy(reply: Reply) -> None:
    await reply.say(429, '{"error": "too many requests"}')


async def _overloaded(reply: Reply) -> None:
    await reply.say(503, "no room\n")


async def _broken(reply: Reply) -> None:
    await reply.say(500, "engine died " * 1000)


FAULTS: Sequence[tuple[Behaviour, str, str]] = [
    (_dropped, "failed", "the connection broke"),
    (_ended_early, "failed", "the stream ended unfinished, after 2 tokens"),
    (_no_json, "failed", 'the stream holds what is no event: {"choices": [{"text":'),
    (_other_json, "failed", 'what is no event: {"choices": 3}'),
    (_no_text, "failed", "what is no event"),
    (_streamed_error, "failed", 'the server broke off: {"error": {"message": "out of memory"}}'),
    (_endless_line, "failed", "a line of the stream is longer than 1,048,576 bytes"),
    (_endless_stream, "failed", "the answer is longer than 1,000,000 bytes"),
    (_endless_headers, "failed", "the connection broke"),
    (_stalled, "failed", "no byte for 0.5 s"),
    (_nothing, "failed", "the connection broke"),
    (_no_http, "failed", "the connection broke"),
    (_no_stream, "failed", "answered with application/json, not with a stream"),
    (_empty, "failed", "the stream finished without any output"),
    (_compressed, "failed", "the server compresses its stream"),
    (_redirected, "failed", "status 307, redirected to http://127.0.0.1:1/elsewhere: name that address with --url"),
    (_busy, "rejected", 'status 429: {"error": "too many requests"}'),
    (_overloaded, "rejected", "status 503: no room"),
    (_broken, "failed", "status 500: engine died engine died"),
]


@pytest.mark.parametrize(("fault", "outcome", "why"), FAULTS, ids=lambda of: getattr(of, "__name__", "")[1:] or None)
def test_a_fault_is_named_and_the_load_goes_on(
    fault: Behaviour, outcome: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second request meets the fault."""
    monkeypatch.setattr(openai_client, "MOST_BYTES", 1_000_000 if fault is _endless_stream else 1 << 26)
    with Server(in_turn(fault, answer)) as server:
        records = served_by(server, replace(THREE, loop=ClosedLoop(1)), silence_s=0.5)
    assert [record.outcome for record in records] == [outcome, "completed"] * 3
    for record in records[::2]:
        assert record.error is not None
        assert why in record.error
        assert len(record.error) < 500
        assert record.output_tokens == sum(record.token_counts or [1] * len(record.token_ns))


def test_half_of_the_streams_are_dropped() -> None:
    with Server(in_turn(_dropped, answer)) as server:
        records = served_by(server, replace(THREE, n_requests=40, loop=ClosedLoop(8)))
    assert sorted(record.outcome for record in records) == ["completed"] * 20 + ["failed"] * 20
    assert {record.output_tokens for record in records if record.outcome == "failed"} <= {0, 1}


def test_nobody_listens() -> None:
    with Server() as server:
        url = server.url
    at = openai_client.Server(endpoint(url, None), "tiny")
    records: list[RequestRecord] = []
    asyncio.run(Load(ONE, OpenAiClient(at), records.append, new_clock(), Limits()).run())
    assert records[0].outcome == "failed"
    assert str(records[0].error).startswith("cannot connect: ")


def test_an_answer_that_takes_too_long_expires() -> None:
    with Server(_stalled) as server:
        (record,) = served_by(server, ONE, Limits(timeout_s=0.2))
    assert (record.outcome, record.error, record.output_tokens) == ("expired", "no whole answer within 0.2 s", 1)


def test_a_connection_that_stays_open_after_all_is_done_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stays(reply: Reply) -> None:
        await reply.head()
        await reply.events(token(finish="stop"))
        await reply.raw(b"data: [DONE]\n\n")
        await asyncio.Event().wait()

    monkeypatch.setattr(openai_client, "LAST_BYTES_S", 0.5)
    with Server(stays) as server:
        (record,) = served_by(server, ONE)
    assert record.outcome == "completed"
    assert record.ended_ns is not None
    assert record.ended_ns - record.token_ns[-1] < 400_000_000


# ---- keys, forms, models ---------------------------------------------------------------------------------------------


def test_a_key_is_sent_and_never_told() -> None:
    async def repeats(reply: Reply) -> None:
        await reply.say(401, f"unknown key {reply.headers['authorization']}")

    with Server(repeats) as server:
        (record,) = served_by(server, ONE, api_key="sk-secret")
    assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert record.error == "status 401: unknown key Bearer (the API key)"
    assert "sk-secret" not in repr(openai_client.Server(endpoint(server.url, None), "tiny", "sk-secret"))


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with Server() as server:
        assert served_by(server, ONE)[0].outcome == "completed"


def test_a_chat_has_one_message() -> None:
    async def chats(reply: Reply) -> None:
        await reply.head()
        await reply.events({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        await reply.events({"choices": [{"delta": {"reasoning_content": "hm"}}]})
        await asyncio.sleep(PAUSE_S)
        await reply.events({"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]})
        await reply.end()

    with Server(chats) as server:
        at = endpoint(server.url + "/v1/chat/completions", None)
        (record,) = served_by(server, ONE, endpoint=at)
    assert (record.outcome, record.output_tokens, record.prompt_tokens) == ("completed", 2, None)
    (message,) = server.asked[0]["messages"]
    assert (message["role"], len(message["content"].split())) == ("user", 5)


def test_prompts_can_be_sent_as_tokens_and_fields_be_added_and_taken_away() -> None:
    with Server() as server:
        fields = parsed_body('{"ignore_eos": true, "temperature": null}')
        (record,) = served_by(server, ONE, sends_tokens=True, body=fields)
    assert server.asked[0]["prompt"] == list(next(ONE.measured()).prompt)
    assert server.asked[0]["ignore_eos"] is True
    assert "temperature" not in server.asked[0]
    assert record.outcome == "completed"


@pytest.mark.parametrize("text", ["{", "[1]", '{"stream": false}', "[" * 99_999])
def test_a_body_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--body"):
        parsed_body(text)


def test_the_first_model_is_taken() -> None:
    with Server() as server:
        assert asyncio.run(first_model(endpoint(server.url, None), None)) == ("tiny", "vllm")


@pytest.mark.parametrize(
    ("models", "why"),
    [("{", "in OpenAI's form"), ('{"data": []}', "lists no model"), ("[" * 9999, "in OpenAI's form"),
     ('{"data": [], "more": ' + "[" * 99_999, "in OpenAI's form")],
)  # fmt: skip
def test_a_server_without_models_is_an_error(models: str, why: str) -> None:
    with Server(models=models) as server, pytest.raises(InputError, match=f"{why}.*--model"):
        asyncio.run(first_model(endpoint(server.url, None), None))


# ---- connections and times -------------------------------------------------------------------------------------------


def test_a_connection_serves_one_request_after_another() -> None:
    ports: set[int] = set()

    async def notes(reply: Reply) -> None:
        ports.add(reply.writer.get_extra_info("peername")[1])
        await answer(reply)

    with Server(notes) as server:
        served_by(server, replace(THREE, n_requests=30))
    assert 1 <= len(ports) <= 3


def test_what_one_read_brought_has_one_time() -> None:
    """The four tokens are chunks of their own, in one packet."""

    async def together(reply: Reply) -> None:
        await reply.head()
        await asyncio.sleep(PAUSE_S)
        for _ in range(3):
            reply.chunk(token())
        reply.chunk(token(finish="stop"))
        await reply.end()

    with Server(together) as server:
        (record,) = served_by(server, ONE)
    assert (len(record.token_ns), list(record.token_counts)) == (1, [4])


def test_what_was_waited_for_has_a_new_time() -> None:
    async def main() -> None:
        now_ns = 0
        reads = openai_client.Reads(lambda: now_ns)
        assert reads.time_ns() == 0
        now_ns = 5
        assert reads.time_ns() == 0, "nothing was waited for"
        await asyncio.sleep(0)
        assert reads.time_ns() == 5

    asyncio.run(main())

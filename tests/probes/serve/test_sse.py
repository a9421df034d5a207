"""Events out of bytes, however these are cut."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.errors import UsageError
from diag.probes.serve.client import Answer
from diag.probes.serve.endpoint import Endpoint, api_key, endpoint
from diag.probes.serve.sse import EventStream, MalformedStream
from diag.probes.serve.stream import StreamReader

STREAM = b': hello\ndata: {"a": 1}\n\nevent: x\r\nid: 3\r\ndata:two\r\ndata: lines\r\n\r\n\n\ndata: [DONE]\n\ndata: cut'
NAMES = ["choices", "usage", "text", "delta", "content", "logprobs", "tokens", "finish_reason", "completion_tokens",
         "prompt_tokens", "prompt_tokens_details", "cached_tokens", "error", "object"]  # fmt: skip
"""Of the fields of events."""

EVENTS = [b'{"a": 1}', b"two\nlines", b"[DONE]"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_events_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    stream = EventStream()
    at = [0, *sorted(cuts), len(STREAM)]
    found = [event for a, b in itertools.pairwise(at) for event in stream.feed(STREAM[a:b])]
    assert found == EVENTS


@given(st.binary(max_size=300))
def test_any_bytes_are_events_or_malformed(data: bytes) -> None:
    stream = EventStream(longest_line=50)
    try:
        events = list(stream.feed(data))
    except MalformedStream:
        assert len(data) > 50
    else:
        assert all(len(event) <= 50 for event in events)


@pytest.mark.parametrize("endless", [b"x", b"data: yy\n", b"data:\n"])
def test_what_has_no_end_is_malformed_before_memory_is_full(endless: bytes) -> None:
    stream = EventStream(longest_line=1000)

    def feed_on() -> None:
        for _ in range(2000):
            list(stream.feed(endless))

    with pytest.raises(MalformedStream, match="longer than 1,000 bytes"):
        feed_on()


@pytest.mark.parametrize(
    ("url", "api", "sent_to"),
    [
        ("http://127.0.0.1:8000", None, "http://127.0.0.1:8000/v1/completions"),
        ("http://127.0.0.1:8000/", "chat", "http://127.0.0.1:8000/v1/chat/completions"),
        ("https://host/v1", None, "https://host/v1/completions"),
        ("https://host/api/v1/completions/", None, "https://host/api/v1/completions"),
        ("https://host/v1/chat/completions", "chat", "https://host/v1/chat/completions"),
    ],
)
def test_an_address_may_be_short_or_whole(url: str, api: str | None, sent_to: str) -> None:
    found: Endpoint = endpoint(url, api)  # type: ignore[arg-type]
    assert found.url == sent_to
    assert found.api == ("chat" if "chat" in sent_to else "completions")


@pytest.mark.parametrize(
    "url",
    ["", "host", "ftp://host", "file:///etc/passwd", "http://", "http://host:99999", "http://host:0", "http://a b", "http://h\n",
     "http://user:secret@host", "http://host/?key=secret", "http://host/#x", "http://[::1", "http://höst"],
)  # fmt: skip
def test_what_is_no_address_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="--url") as raised:
        endpoint(url, None)
    assert "user:secret" not in str(raised.value)


def test_an_address_and_its_kind_agree() -> None:
    with pytest.raises(UsageError, match="is the address of chat"):
        endpoint("http://host/v1/chat/completions", "completions")


def test_a_key_stands_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-1")
    assert api_key("MY_KEY") == "sk-1"
    assert api_key(None) is None
    for bad in ("", "two words", "line\nbreak"):
        monkeypatch.setenv("MY_KEY", bad)
        with pytest.raises(UsageError, match="export MY_KEY") as raised:
            api_key("MY_KEY")
        assert "two words" not in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda of: st.lists(of, max_size=3) | st.dictionaries(st.sampled_from(NAMES), of, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", ["error", "choices", "unknown"])
def test_an_event_that_is_nested_without_end_is_malformed(name: str) -> None:
    with pytest.raises(MalformedStream, match="what is no event"):
        StreamReader(Answer()).event(f'{{"{name}": '.encode() + b"[" * 99_999, 0)


@given(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=5), st.integers(0, 99))
def test_any_event_is_understood_or_malformed(event: dict[str, object], time_ns: int) -> None:
    answer, said = Answer(), ""
    try:
        StreamReader(answer).event(json.dumps(event).encode(), time_ns)
    except MalformedStream as error:
        said = str(error)
    assert len(said) < 500
    assert "\n" not in said
    assert all(count > 0 for count in answer.token_counts)
    assert len(answer.token_counts) == len(answer.token_ns) <= 1

"""Splitting a JSON list into typed chunks, whatever its events and wherever the blocks end."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diag.errors import InputError
from diag.ingest import json_stream
from diag.ingest.input_file import Bounds
from diag.ingest.json_stream import EventStream, FileBytes


class Item(msgspec.Struct):
    name: str = ""
    ts: int = 0


HOSTILE = st.sampled_from(["}, {", "} ]", '"', '\\"}]', "}\n,\n{", "[{", "é", "\u2028", "\\", ""])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3),
    max_leaves=8,
)
items = st.fixed_dictionaries({"name": HOSTILE | st.text(), "ts": st.integers(0, 9)}, optional={"args": values})
indents = st.sampled_from([None, 0, 2])


def split(text: bytes, size: int) -> Iterator[bytes]:
    return iter([text[at : at + size] for at in range(0, len(text), size)])


def streamed(text: bytes, size: int) -> tuple[list[Item], EventStream[Item], int]:
    stream = EventStream(split(text, size), Item, key="items", path=Path("x.json"))
    chunks = list(stream)
    return [item for chunk in chunks for item in chunk.events], stream, sum(chunk.wrong for chunk in chunks)


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK_BYTES", 64)
        yield


@example([], {"a": 0.0}, True, None, 1)
@given(st.lists(items), st.dictionaries(HOSTILE, values, max_size=3), st.booleans(), indents, st.integers(1, 99))
def test_every_event_arrives_once(
    events: list[dict[str, Any]], rest: dict[str, Any], first: bool, indent: int | None, size: int
) -> None:
    document = {**rest, "items": events} if first else {"items": events, **rest}
    found, stream, wrong = streamed(json.dumps(document, indent=indent, ensure_ascii=False).encode(), size)
    assert found == [Item(event["name"], event["ts"]) for event in events]
    assert stream.metadata == rest
    assert (stream.lost, wrong) == (None, 0)


@given(st.lists(items, min_size=1), st.data(), st.integers(1, 99))
def test_a_cut_takes_away_no_whole_event(events: list[dict[str, Any]], data: st.DataObject, size: int) -> None:
    texts = [json.dumps(event).encode() for event in events]
    text = b"[" + b", ".join(texts) + b"]"
    cut = data.draw(st.integers(1, len(text) - 1))
    found, stream, _ = streamed(text[:cut], size)
    ends = [len(b", ".join(texts[: n + 1])) + 1 for n in range(len(texts))]
    assert len(found) == sum(end <= cut for end in ends)
    assert stream.lost is not None


@given(st.binary(max_size=200), st.sampled_from([b"", b"[", b'{"items": [', b'[{"name": "']), st.integers(1, 99))
def test_no_text_raises_anything_but_an_input_error(text: bytes, start: bytes, size: int) -> None:
    with suppress(InputError):
        streamed(start + text, size)


def test_events_of_another_type_are_counted() -> None:
    text = json.dumps([{"name": "a"}, {"name": 1}, 7, [], {"ts": "x"}, {"name": "b"}]).encode()
    found, _, wrong = streamed(text, 20)
    assert ([item.name for item in found], wrong) == (["a", "b"], 4)


def test_text_that_is_not_utf8_is_replaced() -> None:
    found, _, wrong = streamed(b'[{"name": "a"}, {"name": "\xff\xfeb"}, {"name": "c"}]', 20)
    assert ([item.name for item in found], wrong) == (["a", "\ufffd\ufffdb", "c"], 0)


def test_line_breaks_in_strings_do_no_harm() -> None:
    found, _, wrong = streamed(b'[{"name": "a\nb"}, {"name": "c"}]', 20)
    assert len(found) + wrong == 2


def test_gzip_members_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"one") + gzip.compress(b"two") + b"\0" * 9)
    assert b"".join(FileBytes(path, Bounds())) == b"onetwo"


def test_a_cut_gzip_yields_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    text = json.dumps(list(range(10_000))).encode()
    path.write_bytes(gzip.compress(text)[:-4000])
    found = b"".join(FileBytes(path, Bounds()))
    assert found
    assert text.startswith(found)


def test_metadata_without_end_are_refused() -> None:
    text = b"{" + b", ".join(b'"%d": 1' % n for n in range(2000)) + b"}"
    with pytest.raises(InputError, match="more than 1000 keys"):
        streamed(text, 1 << 20)

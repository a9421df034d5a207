"""Reports that are cut, damaged, or claim what cannot be: what is whole is read, and the rest is said."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.ingest.messages import BYTES, Field, Message, message_class
from diag.ingest.nsys_rep.container import Container, Damaged
from tests.builders.nsys_report import MAGIC, Report, block, message, number, prefixed, text, varint

EVENTS = [{1: 59, 102: {1: 59, 2: n, 10: n + 1, 7: b"step"}} for n in range(250)]
WHOLE = Report(EVENTS, strings=[b"a", b"name"], events_in_block=100)
CONTENT = WHOLE.content()
_COUNTED = message_class(Message("Counted", {"events": Field(1, BYTES, repeated=True)}))


def written(folder: Path, content: bytes) -> Path:
    path = folder / "run.nsys-rep"
    path.write_bytes(content)
    return path


def read(path: Path) -> tuple[int, list[bytes], list[str]]:
    """Number of events, strings and losses of what can be read."""
    with Container(path) as container:
        n_events = 0
        with suppress(DecodeError):  # what is inside of a block is not the container's business
            for body in container.blocks():
                n_events += len(_COUNTED.FromString(body).events)
        return n_events, container.strings, container.losses


def test_a_whole_report(tmp_path: Path) -> None:
    path = written(tmp_path, CONTENT)
    assert read(path) == (250, [b"a", b"name"], [])
    with Container(path) as container:
        assert container.n_events == 250
        assert container.section("no such section") == b""


def test_cut_anywhere_it_keeps_the_blocks_that_are_whole(tmp_path: Path) -> None:
    before = 0
    for end in range(len(CONTENT)):
        path = written(tmp_path, CONTENT[:end])
        try:
            n_events, strings, losses = read(path)
        except Damaged:
            assert before == 0
            continue
        assert n_events >= before
        assert n_events in (0, 100, 200, 250)
        assert strings in ([], [b"a", b"name"])
        assert losses[0] == "its end is missing"
        assert bool(strings) == ("the names are lost" not in losses)
        before = n_events
    assert before == 250


def test_without_its_end_the_names_are_found_behind_the_last_event(tmp_path: Path) -> None:
    assert read(written(tmp_path, CONTENT[:-1])) == (250, [b"a", b"name"], ["its end is missing"])


def test_a_block_that_cannot_be_unpacked_ends_the_events_but_not_the_names(tmp_path: Path) -> None:
    second = CONTENT.index(block(message({1: EVENTS[100:200]})))
    content = bytearray(CONTENT)
    content[second + 10 : second + 40] = b"\xff" * 30
    n_events, strings, (loss,) = read(written(tmp_path, bytes(content)))
    assert (n_events, strings) == (100, [b"a", b"name"])
    assert "cannot be unpacked" in loss


@pytest.mark.parametrize("plain_bytes", [1 << 40, (1 << 64) - 1])
def test_a_block_that_claims_to_be_huge_is_not_unpacked(plain_bytes: int, tmp_path: Path) -> None:
    packed = b"0123456789"
    events = prefixed(b"") + prefixed(message({1: 10**9})) + varint(len(packed)) + varint(plain_bytes) + packed
    path = written(tmp_path, MAGIC + b"QDTEXT00" + events)
    n_events, strings, losses = read(path)
    assert (n_events, strings) == (0, [])
    assert any("larger than it can be" in loss for loss in losses)


def test_a_billion_declared_events_are_not_waited_for(tmp_path: Path) -> None:
    path = written(tmp_path, Report(EVENTS, declared=10**9).content())
    assert read(path)[0] == 250
    with Container(path) as container:
        assert container.n_events == 10**9


@pytest.mark.parametrize(
    ("start", "length"), [(0, 0), (0, 1 << 40), (1 << 63, 1), (len(CONTENT), 1), ((1 << 64) - 1, 2), (5, -1)]
)
def test_a_section_that_lies_elsewhere_than_it_can_is_not_there(start: int, length: int, tmp_path: Path) -> None:
    row = text(1, text(1, b"Raw Sampling Data") + number(2, start) + number(3, length % (1 << 64)))
    table_at = len(MAGIC)
    path = written(tmp_path, MAGIC + row + table_at.to_bytes(8, "little") + b"U3w[END]")
    with pytest.raises(Damaged, match="damaged, or cut short"):
        Container(path)


def test_a_table_of_sections_that_lists_itself(tmp_path: Path) -> None:
    table_at = len(MAGIC)
    row = text(1, text(1, b"Raw Sampling Data") + number(2, table_at) + number(3, 20))
    path = written(tmp_path, MAGIC + row + table_at.to_bytes(8, "little") + b"U3w[END]")
    with pytest.raises(Damaged):
        Container(path)


@settings(max_examples=300, deadline=2000)
@given(at=st.integers(0, len(CONTENT) - 1), put=st.binary(min_size=1, max_size=12))
def test_other_bytes_anywhere(at: int, put: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = written(tmp_path_factory.mktemp("other"), CONTENT[:at] + put + CONTENT[at + len(put) :])
    try:
        n_events, _, _ = read(path)
    except Damaged:
        return
    assert 0 <= n_events <= 10_000


def test_every_real_report_holds_as_many_events_as_it_declares(real_reports: list[Path]) -> None:
    for path in real_reports:
        with Container(path) as container:
            assert sum(len(_COUNTED.FromString(body).events) for body in container.blocks()) == container.n_events
            assert container.strings
            assert container.losses == []

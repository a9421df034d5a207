"""Decoding of events: to whom they go, and that nothing of them goes without being counted."""

from __future__ import annotations

from collections.abc import Iterator

from diag.ingest.messages import ABSENT, Field, Message, ints, optional_ints
from diag.ingest.nsys_rep.arrow import Columns
from diag.ingest.nsys_rep.events import EventDecoder, EventReader, Rows
from diag.ingest.nsys_rep.lockstep import MOST_UNDECLARED, Fields
from diag.ingest.nsys_rep.tables import table
from tests.builders.nsys_report import Value, message

SEEN = table("SEEN", start="INTEGER", size="INTEGER")


class Reader(EventReader):
    number = 102
    message = Message("Work", {**optional_ints(start=1), "part": Field(5, Message("Part", optional_ints(size=2)))})

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        yield SEEN, payloads.numbers(["start", "part.size"])

    def rest(self) -> Iterator[Rows]:
        yield SEEN, SEEN.by_column([(-1, -1)])


class Other(EventReader):
    number = 110
    message = Message("Other", ints(start=1))

    def rows(self, payloads: Fields) -> Iterator[Rows]:
        yield SEEN, {**payloads.numbers(["start"]), "size": [0] * len(payloads)}


def by_row(columns: Columns) -> list[tuple[int, ...]]:
    return list(zip(*columns.values(), strict=True))


def decoded(*events: dict[int, Value]) -> tuple[EventDecoder, list[tuple[int, ...]]]:
    decoder = EventDecoder([Reader(), Other()])
    return decoder, [row for _, columns in decoder.rows(message({1: list(events)})) for row in by_row(columns)]


def test_events_go_to_the_reader_of_their_class_in_order() -> None:
    decoder, rows = decoded(
        {1: 59, 102: {1: 10, 5: {2: 3}}}, {1: 49, 110: {1: 20}}, {1: 59, 102: {1: 30}}, {1: 49, 110: {1: 40}}
    )
    assert rows == [(10, 3), (30, ABSENT), (20, 0), (40, 0)]
    assert (decoder.n_events, decoder.n_read, dict(decoder.unread)) == (4, 4, {})
    assert [row for _, columns in decoder.rest() for row in by_row(columns)] == [(-1, -1)]


def test_what_nobody_understands_is_counted_by_its_field() -> None:
    unread = {1: 59, 102: {1: 1, 5: {2: 3, 9: 1, 4: [1, 2]}, 7: 0, 8: {1: 1}}}
    decoder, rows = decoded(
        unread, {1: 48, 108: {1: 1}}, unread, {1: 5}, {1: 48, 108: {1: 1}}, {200: {1: 1}}, {200: {}}
    )
    assert rows == [(1, 3), (1, 3)]
    assert (decoder.n_events, decoder.n_read) == (7, 2)
    assert decoder.unread == {"108": 2, "200": 2, "102.7": 2, "102.8": 2, "102.5.9": 2, "102.5.4": 2, "no class": 1}


def test_counts_grow_from_block_to_block() -> None:
    decoder, _ = decoded({102: {1: 1}}, {108: {}})
    list(decoder.rows(message({1: [{102: {3: 1}}, {108: {}}]})))
    assert (decoder.n_events, decoder.n_read, decoder.unread) == (4, 2, {"108": 2, "102.3": 1})


def test_what_lies_beside_the_events_goes_to_its_reader_or_is_counted() -> None:
    body = message({1: [{102: {1: 1}}], 2: [{1: 7}, {1: 8}], 110: [{1: 9}]})
    decoder = EventDecoder([Reader()], beside=[Other()])
    assert [row for _, columns in decoder.rows(body) for row in by_row(columns)] == [(1,), (9, 0)]
    assert (decoder.n_events, decoder.n_read, decoder.unread) == (2, 2, {"2": 2})


def test_what_cannot_be_decoded_is_a_loss_and_the_rest_is_read() -> None:
    decoder = EventDecoder([Reader(), Other()])
    assert list(decoder.rows(b"\x0a\x05abc")) == []
    assert (decoder.n_events, decoder.losses) == (0, ["a block of events cannot be decoded"])
    body = message({1: [{102: b"\x08"}, {110: {1: 9}}, {102: {1: 5}}]})
    assert [row for _, columns in decoder.rows(body) for row in by_row(columns)] == [(9, 0)]
    assert (decoder.n_events, decoder.n_read, decoder.n_damaged) == (3, 1, 2)
    list(decoder.rows(body))
    assert decoder.losses[1:] == ["some events of class 102 cannot be decoded"]


def test_fields_that_nobody_knows_cannot_be_told_apart_without_end() -> None:
    decoder, _ = decoded({102: {1: 1, **dict.fromkeys(range(300, 400), 0)}})
    assert len(decoder.unread) == MOST_UNDECLARED + 1
    assert decoder.unread["102.others"] == 1


def test_a_block_without_events() -> None:
    decoder = EventDecoder([Reader()])
    assert list(decoder.rows(b"")) == []
    assert (decoder.n_events, decoder.unread) == (0, {})

"""Messages decoded in lockstep hold what protobuf finds in each of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from diag.ingest.messages import (
    ABSENT,
    BYTES,
    NO_TEXT,
    Field,
    Message,
    ints,
    message_class,
    optional_doubles,
    optional_floats,
    optional_ints,
    optional_texts,
)
from diag.ingest.nsys_rep import lockstep
from diag.ingest.nsys_rep.lockstep import MOST_WAITS, decoded
from tests.builders.nsys_report import message, number, text, varint

PART = Message("Part", {**optional_ints(size=1), **optional_texts(name=2)})
THING = Message(
    "Thing",
    {
        **optional_ints(start=1, end=2, far=2000),
        **ints(count=3),
        **optional_texts(name=4),
        "raw": Field(5, BYTES),
        **optional_doubles(double=6),
        **optional_floats(float=7),
        "part": Field(8, PART),
        "parts": Field(9, PART, repeated=True),
        "lines": Field(10, BYTES, repeated=True),
    },
)
NUMBERS, TEXTS = ("start", "end", "far", "count", "double", "float"), ("name", "raw")
_THING = message_class(THING)


def fixed(field: int, value: float, code: str) -> bytes:
    wire_type = {"d": 1, "f": 5}[code]
    return varint(field << 3 | wire_type) + struct.pack(f"<{code}", value)


def things() -> st.SearchStrategy[bytes]:
    """Encoded things: fields in any order, some again, some unknown."""
    whole = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1), st.sampled_from([1 << 56, (1 << 56) - 1]))
    part = st.lists(
        st.one_of(st.builds(number, st.sampled_from([1, 6]), whole), st.builds(text, st.just(2), st.binary(max_size=9)))
    ).map(b"".join)
    field = st.one_of(
        st.builds(number, st.sampled_from([1, 2, 3, 11, 2000]), whole),
        st.builds(text, st.sampled_from([4, 5, 10, 12]), st.binary(max_size=300)),
        st.builds(fixed, st.just(6), st.floats(allow_nan=False), st.just("d")),
        st.builds(fixed, st.sampled_from([7, 13]), st.floats(width=32, allow_nan=False), st.just("f")),
        st.builds(text, st.sampled_from([8, 9]), part),
    )
    return st.lists(field, max_size=12).map(b"".join)


def as_protobuf(encoded: bytes) -> Any:
    return _THING.FromString(encoded)


@settings(max_examples=300, deadline=None)
@given(st.lists(things(), min_size=1, max_size=8))
def test_every_field_is_what_protobuf_reads(encoded: list[bytes]) -> None:
    fields, expected = decoded(encoded, THING), [as_protobuf(one) for one in encoded]
    assert len(fields) == len(encoded)
    for name in NUMBERS:
        found = fields[name].tolist()
        for value, thing in zip(found, expected, strict=True):
            assert value == getattr(thing, name) or (math.isnan(value) and not thing.HasField(name))
        assert (name in fields.numbers(NUMBERS)) == any(thing.HasField(name) for thing in expected)
    given = fields.texts(TEXTS)
    for name in TEXTS:
        values = given.get(name, [THING.fields[name].default or b""] * len(encoded))
        assert values == [getattr(thing, name) for thing in expected]
        assert fields.have(name).tolist() == [thing.HasField(name) for thing in expected]
    for run, thing in zip(fields.repeated("lines"), expected, strict=True):
        assert as_protobuf(run).lines == thing.lines


@settings(max_examples=300, deadline=None)
@given(st.lists(things(), min_size=1, max_size=8))
def test_nested_messages_lie_where_protobuf_finds_them(encoded: list[bytes]) -> None:
    fields, expected = decoded(encoded, THING), [as_protobuf(one) for one in encoded]
    owners, parts = fields.nested("parts")
    sizes = list(zip(owners.tolist(), parts["size"].tolist(), strict=True))
    assert sizes == [(at, part.size) for at, thing in enumerate(expected) for part in thing.parts]
    assert fields.have("part").tolist() == [thing.HasField("part") for thing in expected]


@settings(max_examples=300, deadline=None)
@given(st.lists(things(), min_size=2, max_size=8), st.data())
def test_some_of_the_messages_are_as_if_there_were_no_others(encoded: list[bytes], data: st.DataObject) -> None:
    at = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(encoded), max_size=len(encoded))))
    some, alone = decoded(encoded, THING).those(at), decoded([encoded[i] for i in at.tolist()], THING)
    assert len(some) == len(alone)
    for name in ("start", "count", "part.size"):
        assert some[name].tolist() == alone[name].tolist()
    assert some.have("name").tolist() == alone.have("name").tolist()
    assert some.repeated("lines") == alone.repeated("lines")
    (owners, parts), (expected_owners, expected) = some.nested("parts"), alone.nested("parts")
    assert owners.tolist() == expected_owners.tolist()
    assert parts["size"].tolist() == expected["size"].tolist()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(things(), st.binary(max_size=40)), min_size=1, max_size=5))
def test_any_bytes_are_read_or_refused(encoded: list[bytes]) -> None:
    try:
        fields = decoded(encoded, THING)
        fields.nested("parts")
    except DecodeError:
        return
    for name in NUMBERS:
        assert len(fields[name]) == len(encoded)
    for values in fields.texts(TEXTS).values():
        assert len(values) == len(encoded)


def listed(numbers: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in numbers.items()}


def test_defaults_and_fields_that_no_message_has() -> None:
    fields = decoded([message({1: 5}), message({4: b""})], THING)
    assert listed(fields.numbers(NUMBERS)) == {"start": [5, ABSENT]}
    assert fields.texts(TEXTS) == {"name": [NO_TEXT, b""]}
    assert fields["count"].tolist() == [0, 0]


def test_the_last_of_several_counts_unless_all_do() -> None:
    twice = message({1: [1, 2], 4: [b"a", b"b"], 8: [{1: 3}, {1: 4}], 9: [{1: 5}, {1: 6}]})
    fields = decoded([message({}), twice, message({9: {1: 7}})], THING)
    assert listed(fields.numbers(["start"])) == {"start": [ABSENT, 2, ABSENT]}
    assert fields.texts(["name"]) == {"name": [NO_TEXT, b"b", NO_TEXT]}
    assert listed(fields.numbers(["part.size"])) == {"size": [ABSENT, 4, ABSENT]}
    owners, parts = fields.nested("parts")
    assert (owners.tolist(), parts["size"].tolist()) == ([1, 1, 2], [5, 6, 7])


def test_a_repeated_text_lies_between_its_first_and_its_last() -> None:
    lines = message({10: [b"a", b"bc"]})
    fields = decoded([message({1: 2}) + lines, message({1: 3}), lines + message({1: 4, 10: b"d"})], THING)
    assert fields.repeated("lines") == [lines, b"", lines + message({1: 4, 10: b"d"})]


def test_messages_by_a_number_of_theirs() -> None:
    fields = decoded([message({1: at % 2, 2: at}) for at in range(5)], THING)
    assert [(start, those["end"].tolist()) for start, those in fields.grouped(fields["start"])] == [
        (0, [0, 2, 4]),
        (1, [1, 3]),
    ]
    assert list(fields.those(np.empty(0, np.intp)).grouped(np.empty(0, np.int64))) == []


def test_undeclared_fields_are_counted_once_for_each_message() -> None:
    fields = decoded(
        [message({50: [1, 2], 9: [{7: 1}, {7: 1}]}), message({50: 1, 8: {7: b""}}), message({1: b"no number"})], THING
    )
    assert fields.undeclared == {"50": 2, "1": 1, "8.7": 1}
    fields.nested("parts")
    assert fields.undeclared == {"50": 2, "1": 1, "8.7": 1, "9.7": 2}


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x08",  # no value
        b"\x08\x80",  # a number that does not end
        b"\x08" + b"\xff" * 10 + b"\x01",  # of more than 64 bits
        b"\x22\x05abc",  # a text that is longer than its message
        b"\x22" + varint((1 << 63) + 5),  # a length below zero
        b"\x22" + varint((1 << 63) - 1),
        b"\x31\x00",  # a cut double
        b"\x3d\x00",  # a cut float
        b"\x0b",  # a group
        b"\x0f",  # no wire type
    ],
)
def test_damaged_messages(damaged: bytes) -> None:
    for behind in (b"", message({1: 1, 4: b"text"})):
        with pytest.raises(DecodeError):
            decoded([message({1: 1}), damaged, behind], THING)


def test_messages_of_too_many_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "MOST_STEPS", 20)
    few = decoded([message({1: [1] * 20}), message({1: 1})], THING)
    assert few["start"].tolist() == [1, 1]
    with pytest.raises(DecodeError, match="more than 20"):
        decoded([message({1: [1] * 21}), message({1: 1})], THING)


def test_messages_that_each_have_their_fields_in_another_order() -> None:
    ordered, not_ordered = message({1: 1, 2: 2}), message({2: 2, 1: 1})
    assert decoded([ordered, not_ordered], THING)["end"].tolist() == [2, 2]
    waits = b"".join([not_ordered] * MOST_WAITS)
    with pytest.raises(DecodeError, match="orders"):
        decoded([waits, message({2000: 1})], THING)

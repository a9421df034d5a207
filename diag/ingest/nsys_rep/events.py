"""Events of a report by their class, and what of them nobody understands.

An event is a message with a type and, in a field whose number is its class, a payload. A reader turns the payloads of
one class into rows; classes without a reader, and fields that no reader declares, are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from diag.ingest.nsys_rep.messages import CHOICE, Field, Message, ints, message_class, unknown_fields
from diag.ingest.nsys_rep.tables import Table
from diag.store.bulk import ColumnValues

Rows = tuple[Table, ColumnValues]


class EventReader(Protocol):
    """Understands one class of events."""

    number: int
    """Of the event's field that holds the payload."""
    message: Message
    """What a payload looks like."""

    def rows(self, payloads: Sequence[Any]) -> Iterable[Rows]:
        """The rows that these payloads, some thousands at a time, are in the export."""

    def rest(self) -> Iterable[Rows]:
        """Rows that are known only when all payloads were seen."""


class EventDecoder:
    """Decodes blocks of events, hands each to the reader of its class, and counts: all, and what is not understood."""

    def __init__(self, readers: Sequence[EventReader]) -> None:
        self._readers = {reader.message.name: reader for reader in readers}
        payloads = {reader.message.name: Field(reader.number, reader.message) for reader in readers}
        self._event = Message("Event", {**ints(type=1), **payloads}, is_choice=True)
        self._block = message_class(Message("Block", {"events": Field(1, self._event, repeated=True)}))
        self.n_events = 0
        self.n_read = 0
        self.unread: Counter[str] = Counter()
        """How many events have a class, or a field, that is not understood."""

    def rows(self, body: bytes) -> Iterator[Rows]:
        """Rows of a block. Raises DecodeError when it is no message of events."""
        block = self._block.FromString(body)
        classes = [event.WhichOneof(CHOICE) for event in block.events] if self._readers else [None] * len(block.events)
        self.n_events += len(classes)
        for name, reader in self._readers.items():
            payloads = [
                getattr(event, name) for event, class_ in zip(block.events, classes, strict=True) if class_ == name
            ]
            if payloads:
                self.n_read += len(payloads)
                yield from reader.rows(payloads)
                self.unread += _count_unclear(payloads, reader.message, str(reader.number))
        if None in classes or _has_undeclared(block):
            self.unread += _count_undeclared(block.events, self._event)

    def rest(self) -> Iterator[Rows]:
        for reader in self._readers.values():
            yield from reader.rest()


def _count_unclear(payloads: Sequence[Any], message: Message, path: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for name, declared in message.fields.items():
        where = f"{path}.{declared.number}"
        if name in message.unclear:
            counted[where] = sum(payload.HasField(name) for payload in payloads)
        elif isinstance(declared.type, Message) and any(nested.unclear for nested in declared.type.nested()):
            counted += _count_unclear(list(_nested(payloads, name, declared)), declared.type, where)
    return counted


def _has_undeclared(block: Any) -> bool:
    n_bytes = block.ByteSize()
    declared = type(block)()
    declared.CopyFrom(block)
    declared.DiscardUnknownFields()
    return bool(declared.ByteSize() < n_bytes)


def _count_undeclared(payloads: Sequence[Any], message: Message, path: str = "") -> Counter[str]:
    counted = Counter(f"{path}{number}" for payload in payloads for number in unknown_fields(payload))
    for name, declared in message.fields.items():
        if isinstance(declared.type, Message):
            counted += _count_undeclared(
                list(_nested(payloads, name, declared)), declared.type, f"{path}{declared.number}."
            )
    return counted


def _nested(payloads: Sequence[Any], name: str, declared: Field) -> Iterator[Any]:
    if declared.repeated:
        return (nested for payload in payloads for nested in getattr(payload, name))
    return (getattr(payload, name) for payload in payloads if payload.HasField(name))

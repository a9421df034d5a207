"""Events of a report by their class, and what of them nobody understands.

A reader turns the payloads of one class into rows; classes without a reader, and fields that no reader declares, are
counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from google.protobuf.message import DecodeError

from diag.ingest.messages import BYTES, Field, Message, message_class, unknown_fields
from diag.ingest.nsys_rep.arrow import Columns
from diag.ingest.nsys_rep.lockstep import Fields, decoded
from diag.ingest.nsys_rep.tables import Table

Rows = tuple[Table, Columns]


class EventReader(Protocol):
    """Understands one class of events."""

    number: int
    """Of the event's field that holds the payload."""
    message: Message
    """What a payload looks like."""

    def rows(self, payloads: Fields) -> Iterable[Rows]:
        """The rows that these payloads, some thousands at a time, are in the export. Raises DecodeError when one of
        them is damaged.
        """

    def rest(self) -> Iterable[Rows]:
        """Rows that are known only when all payloads were seen."""
        return ()


class EventDecoder:
    """Decodes blocks of events, hands each to the reader of its class, and counts: all, and what is not understood.

    An event is a message with a type in field 1 and a payload in the field of its class. A block may hold messages
    `beside` its events, which the declared number of events counts, too; for their readers, `number` is the block's
    field that repeats them.
    """

    def __init__(self, readers: Sequence[EventReader], beside: Sequence[EventReader] = ()) -> None:
        self._readers = {reader.message.name: reader for reader in readers}
        self._beside = {reader.message.name: reader for reader in beside}
        payloads = {reader.message.name: Field(reader.number, reader.message, repeated=True) for reader in readers}
        self._event = Message("Event", {"type": Field(1), **payloads})
        encoded = {name: Field(reader.number, BYTES, repeated=True) for name, reader in self._beside.items()}
        self._block = message_class(Message("Block", {"events": Field(1, BYTES, repeated=True), **encoded}))
        self.n_events = 0
        self.n_read = 0
        self.n_damaged = 0
        self.unread: Counter[str] = Counter()
        """How many events have a class, or a field, that is not understood."""
        self.losses: list[str] = []

    def rows(self, body: bytes) -> Iterator[Rows]:
        """Rows of a block. What of it cannot be decoded is left out, and is one of the `losses`."""
        try:
            block = self._block.FromString(body)
            events = decoded(block.events, self._event)
        except DecodeError:
            self._lose("a block of events cannot be decoded")
            return
        beside = {name: getattr(block, name) for name in self._beside}
        self.n_events += len(events) + sum(map(len, beside.values()))
        for name, reader in self._readers.items():
            yield from self._rows_of(reader, events.n_nested(name), partial(_payloads, events, name))
        for name, reader in self._beside.items():
            yield from self._rows_of(reader, len(beside[name]), partial(decoded, beside[name], reader.message))
        self._count_unread(events)
        self.unread += Counter(map(str, unknown_fields(block)))

    def _rows_of(self, reader: EventReader, n_events: int, payloads: Callable[[], Fields]) -> Iterator[Rows]:
        if not n_events:
            return
        try:
            rows = list(reader.rows(payloads()))
        except DecodeError:
            self.n_damaged += n_events
            self._lose(f"some events of class {reader.number} cannot be decoded")
            return
        self.n_read += n_events
        yield from rows

    def _count_unread(self, events: Fields) -> None:
        understood = sum(map(events.n_nested, self._readers))
        unknown = sum(count for what, count in events.undeclared.items() if "." not in what)
        self.unread += events.undeclared
        self.unread += Counter({"no class": len(events) - understood - unknown})

    def _lose(self, phrase: str) -> None:
        if phrase not in self.losses:
            self.losses.append(phrase)

    def rest(self) -> Iterator[Rows]:
        for reader in (*self._readers.values(), *self._beside.values()):
            yield from reader.rest()


def _payloads(events: Fields, name: str) -> Fields:
    return events.nested(name)[1]

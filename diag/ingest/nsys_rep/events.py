"""Events of a report by their class, and what of them nobody understands.

A reader turns the payloads of one class into rows; classes without a reader, and fields that no reader declares, are
counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from diag.ingest.nsys_rep.lockstep import Fields, decoded
from diag.ingest.nsys_rep.messages import BYTES, Field, Message, message_class, unknown_fields
from diag.ingest.nsys_rep.tables import Table
from diag.store.bulk import ColumnValues

Rows = tuple[Table, ColumnValues]


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
        self.unread: Counter[str] = Counter()
        """How many events have a class, or a field, that is not understood."""

    def rows(self, body: bytes) -> Iterator[Rows]:
        """Rows of a block. Raises DecodeError when it is no message of events."""
        block = self._block.FromString(body)
        events = decoded(block.events, self._event)
        beside = [(reader, decoded(getattr(block, name), reader.message)) for name, reader in self._beside.items()]
        payloads = [(reader, events.nested(name)[1]) for name, reader in self._readers.items()]
        self.n_events += len(events) + sum(len(messages) for _, messages in beside)
        for reader, messages in (*payloads, *beside):
            if len(messages):
                self.n_read += len(messages)
                yield from reader.rows(messages)
        self.unread += events.undeclared
        self.unread += Counter(map(str, unknown_fields(block)))

    def rest(self) -> Iterator[Rows]:
        for reader in (*self._readers.values(), *self._beside.values()):
            yield from reader.rest()

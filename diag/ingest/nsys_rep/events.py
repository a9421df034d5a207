"""Events of a report by their class, and what of them nobody understands.

A reader turns the payloads of one class into rows; classes without a reader, and fields that no reader declares, are
counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from diag.ingest.nsys_rep.lockstep import Fields, decoded
from diag.ingest.nsys_rep.messages import BYTES, Field, Message, message_class, unknown_fields
from diag.ingest.nsys_rep.tables import Table
from diag.store.bulk import ColumnValues

Rows = tuple[Table, ColumnValues]

_CLASSES = range(100, 160)
"""nsys of 2022 knows 100 to 129. One behind them is counted as well, but that takes longer."""


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


class FieldReader(Protocol):
    """Understands one class of events that come by the million, from the fields of thousands at a time."""

    number: int
    message: Message

    def rows(self, events: Fields) -> Iterable[Rows]:
        """The rows that these events are in the export. Raises DecodeError when one of them is damaged."""


class EventDecoder:
    """Decodes blocks of events, hands each to the reader of its class, and counts: all, and what is not understood.

    An event is a message with a type in field 1 and a payload in the field of its class. Several, one behind the other,
    are in protobuf's encoding one message with all their types and payloads; decoded as such they need no object per
    event beside the payload, which saves a third of the time.

    A block may hold messages `beside` its events, which the declared number of events counts, too; for their readers,
    `number` is the block's field that repeats them.
    """

    def __init__(
        self,
        readers: Sequence[EventReader],
        beside: Sequence[EventReader] = (),
        in_lockstep: Sequence[FieldReader] = (),
    ) -> None:
        self._readers = {reader.message.name: reader for reader in readers}
        self._in_lockstep = {reader.message.name: reader for reader in in_lockstep}
        self._beside = {reader.message.name: reader for reader in beside}
        taken = {reader.number for reader in readers} | {reader.number for reader in in_lockstep}
        self._others = {f"class_{number}": number for number in _CLASSES if number not in taken}
        encoded = self._others | {name: reader.number for name, reader in self._in_lockstep.items()}
        kept = {name: Field(number, BYTES, repeated=True) for name, number in encoded.items()}
        self._joined = message_class(
            Message("Joined", {"types": Field(1, repeated=True), **_repeated(readers), **kept})
        )
        block = Message("Block", {"events": Field(1, BYTES, repeated=True), **_repeated(beside)})
        self._block = message_class(block)
        self.n_events = 0
        self.n_read = 0
        self.unread: Counter[str] = Counter()
        """How many events have a class, or a field, that is not understood."""

    def rows(self, body: bytes) -> Iterator[Rows]:
        """Rows of a block. Raises DecodeError when it is no message of events."""
        block = self._block.FromString(body)
        content = b"".join(block.events)
        joined = self._joined.FromString(content)
        self.n_events += len(block.events)
        for name, reader in self._readers.items():
            if payloads := list(getattr(joined, name)):
                self.n_read += len(payloads)
                yield from reader.rows(payloads)
                self.unread += _count_unclear(payloads, reader.message, str(reader.number))
        for name, in_lockstep in self._in_lockstep.items():
            if encoded := list(getattr(joined, name)):
                self.n_read += len(encoded)
                fields = decoded(encoded, in_lockstep.message)
                yield from in_lockstep.rows(fields)
                self.unread += Counter({f"{in_lockstep.number}.{path}": n for path, n in fields.undeclared.items()})
        for name, reader in self._beside.items():
            if messages := list(getattr(block, name)):
                self.n_events += len(messages)
                self.n_read += len(messages)
                yield from reader.rows(messages)
        self.unread += Counter({str(number): len(getattr(joined, name)) for name, number in self._others.items()})
        self.unread += Counter(map(str, unknown_fields(block)))
        joined.DiscardUnknownFields()
        if joined.ByteSize() < len(content):
            self.unread += self._count_undeclared(self._joined.FromString(content))

    def rest(self) -> Iterator[Rows]:
        for reader in (*self._readers.values(), *self._beside.values()):
            yield from reader.rest()

    def _count_undeclared(self, joined: Any) -> Counter[str]:
        counted = Counter(map(str, unknown_fields(joined)))
        for name, reader in self._readers.items():
            counted += _count_undeclared(getattr(joined, name), reader.message, f"{reader.number}.")
        return counted


def _repeated(readers: Sequence[EventReader]) -> dict[str, Field]:
    return {reader.message.name: Field(reader.number, reader.message, repeated=True) for reader in readers}


def _count_unclear(payloads: Sequence[Any], message: Message, path: str) -> Counter[str]:
    counted: Counter[str] = Counter()
    for name, declared in message.fields.items():
        where = f"{path}.{declared.number}"
        if name in message.unclear:
            counted[where] = sum(payload.HasField(name) for payload in payloads)
        elif isinstance(declared.type, Message) and any(nested.unclear for nested in declared.type.nested()):
            counted += _count_unclear(list(_nested(payloads, name, declared)), declared.type, where)
    return counted


def _count_undeclared(payloads: Sequence[Any], message: Message, path: str) -> Counter[str]:
    counted = Counter(f"{path}{number}" for payload in payloads for number in set(unknown_fields(payload)))
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

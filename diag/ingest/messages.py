"""Declares protobuf messages in Python, for `lockstep`, which decodes events, and for protobuf itself.

What is known of a format stands in the modules of its reader. A `Message` names the fields that are understood; all
others are passed over and can be counted.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.unknown_fields import UnknownFieldSet

_Declared = descriptor_pb2.FieldDescriptorProto


class Scalar(enum.IntEnum):
    """Types of fields. Varints are signed unless a format is known to mean them otherwise."""

    INT = _Declared.TYPE_INT64
    UINT = _Declared.TYPE_UINT64
    UINT32 = _Declared.TYPE_UINT32
    BYTES = _Declared.TYPE_BYTES  # texts, too: not every one is UTF-8
    DOUBLE = _Declared.TYPE_DOUBLE
    FLOAT = _Declared.TYPE_FLOAT


INT, UINT, UINT32, BYTES = Scalar.INT, Scalar.UINT, Scalar.UINT32, Scalar.BYTES
DOUBLE, FLOAT = Scalar.DOUBLE, Scalar.FLOAT


@dataclass(frozen=True)
class Field:
    number: int
    type: Scalar | Message = INT
    repeated: bool = False
    default: float | bytes | None = None
    """What it reads as where it is not there; None: as protobuf says, 0 or no bytes."""


@dataclass(frozen=True)
class Message:
    """A message by its fields."""

    name: str
    fields: Mapping[str, Field]
    is_choice: bool = False
    """At most one of its fields is there, and `message.WhichOneof("choice")` says which."""

    def nested(self) -> Iterator[Message]:
        """This message and those inside, each once, inner ones first."""
        found: dict[str, Message] = {}
        for declared in self.fields.values():
            if isinstance(declared.type, Message):
                found |= {message.name: message for message in declared.type.nested()}
        yield from {**found, self.name: self}.values()


def ints(**numbers: int) -> dict[str, Field]:
    """Fields that hold one number each, by name."""
    return {name: Field(number) for name, number in numbers.items()}


ABSENT = -(1 << 63) + 0x5EED
"""What a number of `optional_ints` reads as where it is not there: no time, id or size is that.

So one column says what a number is and whether it is there. It is not the least of all numbers, because that is one
which programs do attach to a range.
"""
NO_TEXT = b"\0"
"""What a text of `optional_texts` reads as where it is not there: a text of C is never that."""


def optional_ints(**numbers: int) -> dict[str, Field]:
    """Fields that hold one number each, by name, or none: that is not the same as 0."""
    return {name: Field(number, default=ABSENT) for name, number in numbers.items()}


def optional_texts(**numbers: int) -> dict[str, Field]:
    """Fields that hold one text each, by name, or none."""
    return {name: Field(number, BYTES, default=NO_TEXT) for name, number in numbers.items()}


def optional_floats(**numbers: int) -> dict[str, Field]:
    """Fields that hold one float each, by name, or none; NaN where it is not there."""
    return {name: Field(number, FLOAT, default=math.nan) for name, number in numbers.items()}


def optional_doubles(**numbers: int) -> dict[str, Field]:
    """As `optional_floats`, of 8 bytes."""
    return {name: Field(number, DOUBLE, default=math.nan) for name, number in numbers.items()}


def message_class(root: Message) -> Any:
    """A protobuf class for a declared message: `message_class(EVENT).FromString(data).kernel.gridX`."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{root.name}.proto", package=_PACKAGE, syntax="proto2")
    for message in root.nested():
        _describe(message, file.message_type.add(name=message.name))
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{root.name}"))


_PACKAGE = "declared"


def _describe(message: Message, described: descriptor_pb2.DescriptorProto) -> None:
    if message.is_choice:
        described.oneof_decl.add(name="choice")
    for name, declared in message.fields.items():
        label = _Declared.LABEL_REPEATED if declared.repeated else _Declared.LABEL_OPTIONAL
        added = described.field.add(name=name, number=declared.number, label=label)
        if message.is_choice:
            added.oneof_index = 0
        if declared.default is not None:
            added.default_value = _default_of(declared.default)
        if isinstance(declared.type, Message):
            added.type = _Declared.TYPE_MESSAGE
            added.type_name = f".{_PACKAGE}.{declared.type.name}"
        else:
            added.type = declared.type.value


def _default_of(value: float | bytes) -> str:
    """As descriptors spell a default: bytes are escaped as in C."""
    return "".join(f"\\{byte:03o}" for byte in value) if isinstance(value, bytes) else str(value)


def columns_of(messages: Sequence[Any], names: Iterable[str]) -> dict[str, list[Any]]:
    """The values that fields have in each of the messages, by name; read in C, 0.04 µs each."""
    return {name: list(map(attrgetter(name), messages)) for name in names}


def unknown_fields(message: Any) -> list[int]:
    """Numbers of the fields that a decoded message holds and that were not declared, as often as they are there."""
    unknown = UnknownFieldSet(message)
    return [unknown[index].field_number for index in range(len(unknown))]

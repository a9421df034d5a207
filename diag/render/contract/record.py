"""How a document of JSON is declared: records of named fields, whose types are those of the code that fills them."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

import msgspec

Type = Any
"""A type, as msgspec knows them. Made at run time, so that a row says once what its fields are."""


def record(name: str, /, *parts: Mapping[str, Type], **fields: Type) -> Type:
    """An object of JSON with the fields of all `parts` and `fields`. A field whose name is a keyword ends with `_`."""
    declared: dict[str, Type] = {}
    for part in (*parts, fields):
        declared.update(part)
    return msgspec.defstruct(name, list(declared.items()), rename=lambda field: field.rstrip("_"), kw_only=True)


def fields_of(row: type, *only: str, without: tuple[str, ...] = ()) -> Mapping[str, Type]:
    """Fields of a dataclass with their types: all, those named, or all but some. Raises KeyError for a wrong name."""
    declared = dict(typing.get_type_hints(row, include_extras=True))
    for name in without:
        del declared[name]
    return {name: declared[name] for name in only} if only else declared


def many(of: Type) -> Type:
    return types.GenericAlias(list, (of,))


def by_name(of: Type) -> Type:
    return types.GenericAlias(dict, (str, of))


def maybe_there(of: Type) -> Type:
    """Of a key that is left out where there is nothing to say."""
    return of | msgspec.UnsetType


class Either:
    """Of records, one of which an element is. msgspec tells objects of a union apart by a tag, and these have none."""

    of: tuple[Type, ...]


def either(*of: Type) -> Type:
    return type("Either", (Either,), {"of": of})


def refer(kind: type) -> dict[str, Any]:
    """The schema of an `Either`, for msgspec. Raises TypeError for any other type that msgspec does not know."""
    if not issubclass(kind, Either):
        raise TypeError(f"{kind} has no schema: declare the field that has it as a type of JSON")
    return {"anyOf": [{"$ref": f"#/$defs/{each.__name__}"} for each in kind.of]}

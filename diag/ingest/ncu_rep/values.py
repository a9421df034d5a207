"""Values of a report's metrics, which are of one of five types.

They are read by column, that is, one field of all of them after the other. Nearly always all values of a list are of
one type: it is looked up for the first, and for each of them where one has none of that type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from diag.ingest.launch_records import Instance, Metric, Value
from diag.ingest.ncu_rep.messages import ABSENT
from diag.ingest.ncu_rep.units import unit_of


def metrics_of(results: Sequence[Any], strings: Sequence[str]) -> list[Metric]:
    """The metrics of a launch, without those whose name the report does not hold."""
    named = [result for result in results if result.name < len(strings)]
    names = [strings[result.name] for result in named]
    return [
        Metric(name, unit_of(name), value_of(result.value), instances_of(result.elements))
        for name, result in zip(names, named, strict=True)
    ]


def instances_of(elements: Sequence[Any]) -> Sequence[Instance]:
    if not elements:
        return ()
    return list(map(Instance, _column(elements, "correlation"), _column(elements, "value")))


def value_of(message: Any) -> Value | None:
    """The one value that is there; None where none is."""
    type_ = message.WhichOneof("choice")
    if type_ is None:
        return None
    value: Value | bytes = getattr(message, type_)
    return text(value) if isinstance(value, bytes) else value


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _column(elements: Sequence[Any], field: str) -> Sequence[Value | None]:
    type_ = getattr(elements[0], field).WhichOneof("choice")
    if type_ is None:
        return [value_of(getattr(element, field)) for element in elements]
    column = list(map(_READ[field, type_], elements))
    if ABSENT[type_] in column:
        return [value_of(getattr(element, field)) for element in elements]
    return list(map(text, column)) if type_ == "string" else column


_READ: Mapping[tuple[str, str], attrgetter[Any]] = {
    (field, type_): attrgetter(f"{field}.{type_}") for field in ("correlation", "value") for type_ in ABSENT
}

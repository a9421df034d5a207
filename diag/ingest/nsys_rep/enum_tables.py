"""Tables of the enumerations that columns refer to. A report does not hold them, Nsight's exports do."""

from __future__ import annotations

from collections.abc import Iterator

from diag.ingest.nsys_enums import enumerations
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.tables import table


def enum_rows() -> Iterator[Rows]:
    for name, values in enumerations().items():
        enum = table(name, id="INTEGER", name="TEXT", label="TEXT")
        yield enum, enum.by_column((number, *value) for number, value in values.items())

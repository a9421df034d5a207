"""What Gloo says when it aborts a rank (gloo/transport/tcp/pair.cc): its process ends before Python could say why."""

from __future__ import annotations

from collections.abc import Iterator

from diag.ingest.job_log.event import Event, form, recognised, shown
from diag.ingest.job_log.lines import Line, Marks
from diag.ingest.job_log.prefix import date_of, labelled

SIZE = b"op.preamble.length <= op.nbytes"

MARKS = Marks(gates=(SIZE,), marks=(SIZE,))

_FORMS = (
    form(
        "gloo.size",
        "op.preamble.length",
        r"op\.preamble\.length <= op\.nbytes\. (?P<received>\d{1,18}) vs (?P<expected>\d{1,18})",
    ),
)


def read(line: Line) -> Iterator[Event]:
    found = labelled(line.text)
    for kind, fields in recognised(found.text, _FORMS):
        yield Event(line.number, kind, fields, shown(line.text), found.place, date_of(found.text))

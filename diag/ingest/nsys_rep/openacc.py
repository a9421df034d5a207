"""OpenACC directives, which are calls with a message of their own about what the directive did."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.ingest.messages import Field, Message, optional_ints
from diag.ingest.nsys_rep.columns import field_table, inside
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.lockstep import Fields

_LAUNCH = optional_ints(numGangs=1, numWorkers=2, vectorLength=3, kernelName=4)
_DATA = optional_ints(bytes=1, varName=4)
_DIRECTIVE = {
    **optional_ints(eventKind=1, DeviceType=5, lineNo=11, cuDeviceId=15, cuContextId=16, cuStreamId=17),
    **optional_ints(srcFile=20, funcName=21),
}
# Fields that are added here have no columns.
OPENACC = Message(
    "OpenAcc",
    {
        **_DIRECTIVE,
        **optional_ints(constructKind=2, version=3, implicit=4, deviceNumber=6, threadId=7, asyncQueue=8, asyncMap=9),
        **optional_ints(externalId=10, endLineNo=12, funcLineNo=13, funcEndLineNo=14),
        "launch": Field(101, Message("OpenAccLaunch", _LAUNCH)),
        "data": Field(102, Message("OpenAccData", {**_DATA, **optional_ints(hostPtr=2, devicePtr=3)})),
    },
)

_COLUMNS = ("start", "end", "nameId", "globalTid", *inside("openacc", _DIRECTIVE))
_LAUNCHES = field_table("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", *_COLUMNS, *inside("openacc.launch", _LAUNCH))
_DATA_MOVED = field_table("CUPTI_ACTIVITY_KIND_OPENACC_DATA", *_COLUMNS, *inside("openacc.data", _DATA))
_OTHERS = field_table("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", *_COLUMNS)


def openacc_rows(calls: Fields) -> Iterator[Rows]:
    """Rows of calls that hold an OpenACC directive."""
    launches, data = calls.have("openacc.launch"), calls.have("openacc.data")
    yield from _LAUNCHES.rows(calls.those(np.flatnonzero(launches)))
    yield from _DATA_MOVED.rows(calls.those(np.flatnonzero(data)))
    yield from _OTHERS.rows(calls.those(np.flatnonzero(~launches & ~data)))

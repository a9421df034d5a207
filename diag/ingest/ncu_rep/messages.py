"""The messages of a report, with the numbers of the fields that are read; `docs/formats/ncu-rep.md` lists the others.

Source of the numbers: extras/FileFormat of Nsight Compute 2022.3. Newer files have more fields; none was renumbered.
What 2022.3 does not know and newer files hold is marked, with what showed its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from diag.ingest.messages import BYTES, DOUBLE, FLOAT, UINT, UINT32, Field, Message, message_class

NO_NAME = (1 << 32) - 1
"""A metric without the number of its name."""


def _texts(**numbers: int) -> dict[str, Field]:
    return {name: Field(number, BYTES) for name, number in numbers.items()}


def _numbers(**numbers: int) -> dict[str, Field]:
    return {name: Field(number, UINT32) for name, number in numbers.items()}


ABSENT: Mapping[str, float | bytes] = {
    "string": b"\0",
    "float": -(2.0**-120),
    "double": -(2.0**-1000),
    "uint32": (1 << 32) - 0x5EED,
    "uint64": (1 << 64) - 0x5EED,
}
"""What a value of each type reads as where it is not there: nothing that anyone measures."""

VALUE = Message(
    "ProfileMetricValue",
    {
        name: Field(number, type_, default=ABSENT[name])
        for number, (name, type_) in enumerate(
            {"string": BYTES, "float": FLOAT, "double": DOUBLE, "uint32": UINT32, "uint64": UINT}.items(), 1
        )
    },
    is_choice=True,
)
_ELEMENT = Message("ProfileMetricListElement", {"correlation": Field(1, VALUE), "value": Field(2, VALUE)})
_METRIC = Message(
    "ProfileMetricResult",
    {
        "name": Field(1, UINT32, default=NO_NAME),
        "value": Field(2, VALUE),
        "elements": Field(3, _ELEMENT, repeated=True),
    },
)
_SIZE = Message("Uint64x3", {"x": Field(1, UINT), "y": Field(2, UINT), "z": Field(3, UINT)})

# ---- NVTX ----------------------------------------------------------------------------------------------------------

_PUSHED = Message("NvtxPushPopRange", _texts(name=1))
_STARTED = Message("NvtxStartEndRange", _texts(name=2))
_PUSH_DOMAIN = Message("NvtxPushPopDomain", {"id": Field(1, UINT), "stack": Field(3, _PUSHED, repeated=True)})
_START_DOMAIN = Message("NvtxStartEndDomain", {"id": Field(1, UINT), "ranges": Field(3, _STARTED, repeated=True)})
_DOMAIN = Message("NvtxDomainInfo", {"id": Field(1, UINT), **_texts(name=2)})
_NVTX_THREAD = Message("NvtxThread", {**_numbers(tid=1), "domains": Field(2, _PUSH_DOMAIN, repeated=True)})
_NVTX = Message(
    "NvtxState",
    {
        "domains": Field(1, _DOMAIN, repeated=True),
        "threads": Field(2, _NVTX_THREAD, repeated=True),
        "started": Field(3, _START_DOMAIN, repeated=True),
    },
)

# ---- NVIDIA's rules ------------------------------------------------------------------------------------------------

_RULE_MESSAGE = Message("RuleResultMessage", {**_texts(text=1, name=4), **_numbers(type=2)})
_FOCUS = Message(
    "RuleResultFocusMetric", {**_texts(metric=2, info=5), "value": Field(3, DOUBLE), **_numbers(severity=4)}
)
_SPEEDUP = Message("RuleResultSpeedup", {**_numbers(kind=1), "pct": Field(2, DOUBLE)})
_RULE_ITEM = Message(
    "RuleResultBodyItem",
    {
        "message": Field(1, _RULE_MESSAGE),
        "focus": Field(8, _FOCUS, repeated=True),
        "speedup": Field(10, _SPEEDUP),  # newer than 2022.3: equals what the official reader calls so
    },
)
_RULE_BODY = Message("RuleResultBody", {"items": Field(1, _RULE_ITEM, repeated=True)})
_RULE = Message("RuleResult", {**_texts(id=1, name=2, section=4), "body": Field(3, _RULE_BODY)})

# ---- machine code and sources --------------------------------------------------------------------------------------

_SOURCE_FILE = Message("SourceFile", _texts(name=1, content=2))
_SOURCE_FILES = Message("SourceFiles", {"files": Field(1, _SOURCE_FILE, repeated=True)})
SOURCE = Message(
    "SourceData",
    {"reference": Field(1, UINT), **_texts(cubin=4), **_numbers(revision=6), "sources": Field(8, _SOURCE_FILES)},
)
SourceData = message_class(SOURCE)

# ---- results -------------------------------------------------------------------------------------------------------

_CLOCK = Message("ProfilerClockStatusMessage", _numbers(requested=1, executed=2))
RESULT = Message(
    "ProfileResult",
    {
        **_numbers(thread=1, is_unsupported=20, context=22, stream=23),
        **_texts(mangled=5, function=6, demangled=7),
        "grid": Field(10, _SIZE),
        "block": Field(11, _SIZE),
        "metrics": Field(13, _METRIC, repeated=True),
        "source": Field(15, Message("SourceReference", {"reference": Field(1, UINT)})),
        "rules": Field(19, _RULE, repeated=True),
        "nvtx": Field(21, _NVTX),
        "clock": Field(25, _CLOCK),
    },
)
RANGE_RESULT = Message(
    "RangeResult",
    {
        **_numbers(thread=1, is_unsupported=9, context=11),
        "metrics": Field(4, _METRIC, repeated=True),
        "nvtx": Field(10, _NVTX),
        "clock": Field(12, _CLOCK),
    },
)
ProfileResult = message_class(RESULT)
RangeResult = message_class(RANGE_RESULT)

# ---- blocks --------------------------------------------------------------------------------------------------------

_VERSION = Message("VersionInfo", _texts(provider=1, version=2))
_ATTRIBUTE = Message("DeviceAttribute", {**_texts(name=1), "value": Field(2, VALUE)})
_DEVICE = Message(
    "DeviceAttributes", {**_numbers(id=1), **_texts(name=2), "attributes": Field(3, _ATTRIBUTE, repeated=True)}
)
_SYSTEM = Message("SystemInfo", _texts(host=5))
_SETTINGS = Message("ProfilerSettings", _texts(clock_control=8, replay=11))
_DETAILS = Message(
    "ReportDetails",
    {
        **_numbers(pid=1),
        "target": Field(4, _SYSTEM),
        "devices": Field(6, _DEVICE, repeated=True),
        "versions": Field(8, _VERSION, repeated=True),
        "settings": Field(10, _SETTINGS),
        **_texts(command_line=11),
    },
)
_STRINGS = Message("ProfilerStringTable", {"strings": Field(1, BYTES, repeated=True)})
_PROCESS = Message("ProcessInfo", {**_numbers(pid=1), **_texts(name=3)})
BLOCK = Message(
    "BlockHeader",
    {
        **_numbers(n_sources=1, n_results=2, payload_bytes=5, n_ranges=7),
        # Newer than 2022.3: the official reader takes as many messages of a range as such.
        **_numbers(n_command_lists=8, n_graphs=9),
        "details": Field(3, _DETAILS),
        "strings": Field(4, _STRINGS),
        "process": Field(6, _PROCESS),
    },
)
BlockHeader = message_class(BLOCK)
FileHeader = message_class(Message("FileHeader", _numbers(version=1)))

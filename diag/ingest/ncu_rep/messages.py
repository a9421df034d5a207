"""The messages of a report, with the numbers of the fields that are read.

Source of the numbers: extras/FileFormat of Nsight Compute 2022.3. Newer files have more fields; none was renumbered.
"""

from __future__ import annotations

from diag.ingest.messages import BYTES, DOUBLE, FLOAT, UINT, Field, Message, message_class


def _texts(**numbers: int) -> dict[str, Field]:
    return {name: Field(number, BYTES) for name, number in numbers.items()}


def _numbers(**numbers: int) -> dict[str, Field]:
    return {name: Field(number, UINT) for name, number in numbers.items()}


VALUE = Message(
    "ProfileMetricValue",
    {
        **_texts(string=1),
        "float": Field(2, FLOAT),
        "double": Field(3, DOUBLE),
        **_numbers(uint32=4, uint64=5),
    },
)
_ELEMENT = Message("ProfileMetricListElement", {"correlation": Field(1, VALUE), "value": Field(2, VALUE)})
_METRIC = Message(
    "ProfileMetricResult",
    {**_numbers(name=1), "value": Field(2, VALUE), "elements": Field(3, _ELEMENT, repeated=True)},
)
_SIZE = Message("Uint64x3", _numbers(x=1, y=2, z=3))

# ---- NVTX ----------------------------------------------------------------------------------------------------------

_PUSHED = Message("NvtxPushPopRange", _texts(name=1))
_STARTED = Message("NvtxStartEndRange", _texts(name=2))
_PUSH_DOMAIN = Message("NvtxPushPopDomain", {**_numbers(id=1), "stack": Field(3, _PUSHED, repeated=True)})
_START_DOMAIN = Message("NvtxStartEndDomain", {**_numbers(id=1), "ranges": Field(3, _STARTED, repeated=True)})
_DOMAIN = Message("NvtxDomainInfo", {**_numbers(id=1), **_texts(name=2)})
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

_RULE_MESSAGE = Message("RuleResultMessage", {**_texts(text=1, name=4), **_numbers(type=2, id=3)})
_RULE_ITEM = Message("RuleResultBodyItem", {"message": Field(1, _RULE_MESSAGE)})
_RULE_BODY = Message("RuleResultBody", {"items": Field(1, _RULE_ITEM, repeated=True)})
_RULE = Message("RuleResult", {**_texts(id=1, name=2, section=4), "body": Field(3, _RULE_BODY)})

# ---- results -------------------------------------------------------------------------------------------------------

_CLOCK = Message("ProfilerClockStatusMessage", _numbers(requested=1, executed=2))
_RESULT = Message(
    "ProfileResult",
    {
        **_numbers(thread=1, context=22, stream=23),
        **_texts(mangled=5, function=6, demangled=7),
        "grid": Field(10, _SIZE),
        "block": Field(11, _SIZE),
        "metrics": Field(13, _METRIC, repeated=True),
        "rules": Field(19, _RULE, repeated=True),
        "nvtx": Field(21, _NVTX),
        "clock": Field(25, _CLOCK),
    },
)
_RANGE_RESULT = Message(
    "RangeResult",
    {
        **_numbers(thread=1, context=11),
        "metrics": Field(4, _METRIC, repeated=True),
        "nvtx": Field(10, _NVTX),
        "clock": Field(12, _CLOCK),
    },
)
ProfileResult = message_class(_RESULT)
RangeResult = message_class(_RANGE_RESULT)

# ---- blocks --------------------------------------------------------------------------------------------------------

_VERSION = Message("VersionInfo", _texts(provider=1, version=2))
_ATTRIBUTE = Message("DeviceAttribute", {**_texts(name=1), "value": Field(2, VALUE)})
_DEVICE = Message(
    "DeviceAttributes", {**_numbers(id=1), **_texts(name=2), "attributes": Field(3, _ATTRIBUTE, repeated=True)}
)
_SYSTEM = Message("SystemInfo", _texts(host=5))
_SETTINGS = Message("ProfilerSettings", _texts(clock_control=8, replay=11))
_SESSION = Message(
    "ReportSessionDetails",
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
_PROCESS = Message("ProcessInfo", {**_numbers(pid=1), **_texts(host=2, name=3)})
_BLOCK = Message(
    "BlockHeader",
    {
        **_numbers(n_sources=1, n_results=2, payload_bytes=5, n_ranges=7),
        "details": Field(3, _SESSION),
        "strings": Field(4, _STRINGS),
        "process": Field(6, _PROCESS),
    },
)
BlockHeader = message_class(_BLOCK)
FileHeader = message_class(Message("FileHeader", _numbers(version=1)))

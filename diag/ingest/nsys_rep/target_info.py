"""The machine that was profiled: its properties, GPUs and network cards, and the CUDA contexts and streams in use.

Numbers of fields were found by writing reports in which each field has a value of its own, and by comparing real
reports with their exports; see `docs/formats/nsys-rep.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError

from diag.ingest.nsys_rep import properties
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep.tables import Table, table

Row = tuple[Any, ...]

SYSTEM_ENV = table(
    "TARGET_INFO_SYSTEM_ENV", globalVid="INTEGER", devStateName="TEXT", name="TEXT", nameEnum="INTEGER", value="TEXT"
)
NIC = table(
    "TARGET_INFO_NIC_INFO",
    GUID="INTEGER",
    stateName="TEXT",
    nicId="INTEGER",
    name="TEXT",
    deviceId="INTEGER",
    vendorId="INTEGER",
    linkLayer="INTEGER",
)


def _columns(fields: Mapping[str, Field]) -> dict[str, str]:
    """SQL types of the columns that fields of a message become, in the order of the columns."""
    return {name: "TEXT" if field.type is BYTES else "INTEGER" for name, field in fields.items()}


_GPU = {
    "id": Field(1),
    "name": Field(2, BYTES),
    "busLocation": Field(3, BYTES),
    **ints(isDiscrete=4, l2CacheSize=10, totalMemory=11, memoryBandwidth=12, clockRate=13, smCount=14, pwGpuId=9),
    "uuid": Field(5, BYTES),
    "luid": Field(6),
    "chipName": Field(7, BYTES),
    "cuDevice": Field(15),
    "ctxswDevPath": Field(16, BYTES),
    "ctrlDevPath": Field(17, BYTES),
    **ints(revision=21, nodeMask=22, constantMemory=23, maxIPC=24, maxRegistersPerBlock=25, maxShmemPerBlock=26),
    **ints(maxShmemPerBlockOptin=27, maxShmemPerSm=28, maxRegistersPerSm=29, threadsPerWarp=30, asyncEngines=31),
    **ints(maxWarpsPerSm=32, maxBlocksPerSm=33, maxThreadsPerBlock=34),
    **ints(maxBlockDimX=35, maxBlockDimY=36, maxBlockDimZ=37, maxGridDimX=38, maxGridDimY=39, maxGridDimZ=40),
    **ints(computeMajor=41, computeMinor=42, smMajor=43, smMinor=44),
}
GPU = Table("TARGET_INFO_GPU", {"vmId": "INTEGER", **_columns(_GPU)})

_STREAM = ints(streamId=1, hwId=2, vmId=3, processId=4, contextId=5, priority=6, flag=7)
STREAM = Table("TARGET_INFO_CUDA_STREAM", _columns(_STREAM))

# Until 2023 a context's description was the table of null streams; then two columns were added and it was renamed.
_NULL_STREAM = ints(streamId=1, hwId=2, vmId=3, processId=4, deviceId=5, contextId=6)
NULL_STREAM = Table("TARGET_INFO_CUDA_NULL_STREAM", _columns(_NULL_STREAM))
_ADDED = ints(added_7=7, added_8=8)
_CONTEXT_COLUMNS = ("nullStreamId", *[*_NULL_STREAM][1:], "parentContextId", "isGreenContext")
CONTEXT = Table("TARGET_INFO_CUDA_CONTEXT_INFO", dict.fromkeys(_CONTEXT_COLUMNS, "INTEGER"))

_NAMED_DEVICE = {"name": Field(1, BYTES), **ints(hwId=2, vmId=3, deviceId=5)}
_NAMED_CONTEXT = {"name": Field(1, BYTES), **ints(hwId=2, vmId=3, processId=4, deviceId=5, contextId=6)}
_NAMED_STREAM = {**_NAMED_CONTEXT, **ints(streamId=7)}
NAMED_DEVICE = Table("TARGET_INFO_NVTX_CUDA_DEVICE", _columns(_NAMED_DEVICE))
NAMED_CONTEXT = Table("TARGET_INFO_NVTX_CUDA_CONTEXT", _columns(_NAMED_CONTEXT))
NAMED_STREAM = Table("TARGET_INFO_NVTX_CUDA_STREAM", _columns(_NAMED_STREAM))


def _many(number: int, name: str, fields: Mapping[str, Field]) -> Field:
    return Field(number, Message(name, fields), repeated=True)


_PROPERTIES = Message("Properties", {"list": _many(1, "Property", {"number": Field(1), "value": Field(2, BYTES)})})
_STATE = {"name": Field(1, BYTES), "properties": Field(2, _PROPERTIES), "globalVid": Field(3)}
_HOST = message_class(Message("Host", {"states": _many(1, "DeviceState", _STATE)}))
_NIC = {"id": Field(1), "name": Field(2, BYTES), **ints(deviceId=3, vendorId=4, linkLayer=5, GUID=6)}
_NICS = message_class(Message("Nics", {"list": _many(1, "Nic", _NIC)}))
_HARDWARE = Message("Hardware", {"gpus": _many(7, "Gpu", _GPU)})
_DEVICES = message_class(
    Message(
        "Devices",
        {
            "machines": _many(1, "Machine", {"globalVid": Field(1), "hardware": Field(2, _HARDWARE)}),
            "named_devices": _many(11, "NamedDevice", _NAMED_DEVICE),
            "named_contexts": _many(12, "NamedContext", _NAMED_CONTEXT),
            "named_streams": _many(13, "NamedStream", _NAMED_STREAM),
            "contexts": _many(14, "Context", {**_NULL_STREAM, **_ADDED}),
            "streams": _many(15, "Stream", _STREAM),
        },
    )
)


def host_rows(description: bytes) -> Iterator[Rows]:
    """From the description of the host. Raises DecodeError when it is none."""
    states = _HOST.FromString(description).states
    if rows := [row for state in states for row in _property_rows(state)]:
        yield SYSTEM_ENV, SYSTEM_ENV.by_column(rows)
    if rows := [row for state in states for row in _nic_rows(state)]:
        yield NIC, NIC.by_column(rows)


def _property_rows(state: Any) -> Iterator[Row]:
    for item in state.properties.list:
        name = properties.NAMES.get(item.number)
        if name is not None and name not in properties.SECRET | properties.MESSAGES:
            yield state.globalVid, state.name, name, item.number, item.value


def _nic_rows(state: Any) -> Iterator[Row]:
    for item in state.properties.list:
        if item.number == properties.NICS:
            try:
                nics = _NICS.FromString(item.value).list
            except DecodeError:
                continue
            for nic in nics:
                yield nic.GUID, state.name, nic.id, nic.name, nic.deviceId, nic.vendorId, nic.linkLayer


def device_rows(message: bytes) -> Iterator[Rows]:
    """From the second message behind the table of strings. Raises DecodeError when it is something else."""
    devices = _DEVICES.FromString(message)
    described = (
        (GPU, [(m.globalVid, *_values(gpu, _GPU)) for m in devices.machines for gpu in m.hardware.gpus]),
        (NULL_STREAM, [_values(context, _NULL_STREAM) for context in devices.contexts if not _has_added(context)]),
        (CONTEXT, [_context_row(context) for context in devices.contexts if _has_added(context)]),
        (STREAM, [_values(stream, _STREAM) for stream in devices.streams]),
        (NAMED_DEVICE, [_values(device, _NAMED_DEVICE) for device in devices.named_devices]),
        (NAMED_CONTEXT, [_values(context, _NAMED_CONTEXT) for context in devices.named_contexts]),
        (NAMED_STREAM, [_values(stream, _NAMED_STREAM) for stream in devices.named_streams]),
    )
    yield from ((table, table.by_column(rows)) for table, rows in described if rows)


def _has_added(context: Any) -> bool:
    return any(context.HasField(name) for name in _ADDED)


def _context_row(context: Any) -> Row:
    # Which of the two is which is not known, for no report with a green context was at hand; for others both are 0.
    green = (None, None) if context.added_7 or context.added_8 else (0, 0)
    return (*_values(context, _NULL_STREAM), *green)


def _values(message: Any, fields: Mapping[str, Field]) -> Row:
    """The values of a message's fields; None for those that it does not have."""
    return tuple(getattr(message, name) if message.HasField(name) else None for name in fields)

"""GPUs of the machines that were profiled, the CUDA contexts and streams of their processes, and names given to them.

Which field is which column was found by having nsys export a report in which each field has a value of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep.tables import Table


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

# Up to 2023.1 contexts are the table of null streams; by 2024.6 they have two fields more and a table of their own.
_NULL_STREAM = ints(streamId=1, hwId=2, vmId=3, processId=4, deviceId=5, contextId=6)
NULL_STREAM = Table("TARGET_INFO_CUDA_NULL_STREAM", _columns(_NULL_STREAM))
_CONTEXT_COLUMNS = ("hwId", "vmId", "processId", "deviceId", "contextId", "parentContextId", "isGreenContext")
CONTEXT = Table("TARGET_INFO_CUDA_CONTEXT_INFO", dict.fromkeys(("nullStreamId", *_CONTEXT_COLUMNS), "INTEGER"))
_ADDED = ints(added_7=7, added_8=8)

_NAMED_DEVICE = {"name": Field(1, BYTES), **ints(hwId=2, vmId=3, deviceId=5)}
NAMED_DEVICE = Table("TARGET_INFO_NVTX_CUDA_DEVICE", _columns(_NAMED_DEVICE))
_NAMED_CONTEXT = {"name": Field(1, BYTES), **ints(hwId=2, vmId=3, processId=4, deviceId=5, contextId=6)}
NAMED_CONTEXT = Table("TARGET_INFO_NVTX_CUDA_CONTEXT", _columns(_NAMED_CONTEXT))
_NAMED_STREAM = {**_NAMED_CONTEXT, **ints(streamId=7)}
NAMED_STREAM = Table("TARGET_INFO_NVTX_CUDA_STREAM", _columns(_NAMED_STREAM))


def _many(number: int, name: str, fields: Mapping[str, Field]) -> Field:
    return Field(number, Message(name, fields), repeated=True)


_MACHINE = {"globalVid": Field(1), "hardware": Field(2, Message("Hardware", {"gpus": _many(7, "Gpu", _GPU)}))}
_DEVICES = message_class(
    Message(
        "Devices",
        {
            "machines": _many(1, "Machine", _MACHINE),
            "named_devices": _many(11, "NamedDevice", _NAMED_DEVICE),
            "named_contexts": _many(12, "NamedContext", _NAMED_CONTEXT),
            "named_streams": _many(13, "NamedStream", _NAMED_STREAM),
            "contexts": _many(14, "Context", {**_NULL_STREAM, **_ADDED}),
            "streams": _many(15, "Stream", _STREAM),
        },
    )
)


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


def _context_row(context: Any) -> tuple[Any, ...]:
    # Which of the two is which is not known, for no report with a green context was at hand; for others both are 0.
    green = (None, None) if context.added_7 or context.added_8 else (0, 0)
    return (*_values(context, _NULL_STREAM), *green)


def _values(message: Any, fields: Mapping[str, Field]) -> tuple[Any, ...]:
    """The values of a message's fields; None for those that it does not have."""
    return tuple(getattr(message, name) if message.HasField(name) else None for name in fields)

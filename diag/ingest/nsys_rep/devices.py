"""GPUs of the machines that were profiled, the CUDA contexts and streams of their processes, and names given to them.

Which field is which column was found by having nsys export a report in which each field has a value of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diag.ingest.messages import (
    BYTES,
    Field,
    Message,
    columns_of,
    ints,
    message_class,
    optional_ints,
    optional_texts,
)
from diag.ingest.nsys_rep.events import Rows
from diag.ingest.nsys_rep.tables import Table


def _columns(fields: Mapping[str, Field]) -> dict[str, str]:
    """SQL types of the columns that fields of a message become, in the order of the columns."""
    return {name: "TEXT" if field.type is BYTES else "INTEGER" for name, field in fields.items()}


_GPU = {
    **optional_ints(id=1),
    **optional_texts(name=2, busLocation=3),
    **optional_ints(isDiscrete=4, l2CacheSize=10, totalMemory=11, memoryBandwidth=12, clockRate=13, smCount=14),
    **optional_ints(pwGpuId=9),
    **optional_texts(uuid=5),
    **optional_ints(luid=6),
    **optional_texts(chipName=7),
    **optional_ints(cuDevice=15),
    **optional_texts(ctxswDevPath=16, ctrlDevPath=17),
    **optional_ints(revision=21, nodeMask=22, constantMemory=23, maxIPC=24, maxRegistersPerBlock=25),
    **optional_ints(maxShmemPerBlock=26, maxShmemPerBlockOptin=27, maxShmemPerSm=28, maxRegistersPerSm=29),
    **optional_ints(threadsPerWarp=30, asyncEngines=31, maxWarpsPerSm=32, maxBlocksPerSm=33, maxThreadsPerBlock=34),
    **optional_ints(maxBlockDimX=35, maxBlockDimY=36, maxBlockDimZ=37),
    **optional_ints(maxGridDimX=38, maxGridDimY=39, maxGridDimZ=40),
    **optional_ints(computeMajor=41, computeMinor=42, smMajor=43, smMinor=44),
}
GPU = Table("TARGET_INFO_GPU", {"vmId": "INTEGER", **_columns(_GPU)})

_STREAM = optional_ints(streamId=1, hwId=2, vmId=3, processId=4, contextId=5, priority=6, flag=7)
STREAM = Table("TARGET_INFO_CUDA_STREAM", _columns(_STREAM))

# Up to 2023.1 contexts are the table of null streams; by 2024.6 they have two fields more and a table of their own.
_NULL_STREAM = optional_ints(streamId=1, hwId=2, vmId=3, processId=4, deviceId=5, contextId=6)
NULL_STREAM = Table("TARGET_INFO_CUDA_NULL_STREAM", _columns(_NULL_STREAM))
_CONTEXT_COLUMNS = ("hwId", "vmId", "processId", "deviceId", "contextId", "parentContextId", "isGreenContext")
CONTEXT = Table("TARGET_INFO_CUDA_CONTEXT_INFO", dict.fromkeys(("nullStreamId", *_CONTEXT_COLUMNS), "INTEGER"))
_ADDED = ints(added_7=7, added_8=8)

_NAMED_DEVICE = {**optional_texts(name=1), **optional_ints(hwId=2, vmId=3, deviceId=5)}
NAMED_DEVICE = Table("TARGET_INFO_NVTX_CUDA_DEVICE", _columns(_NAMED_DEVICE))
_NAMED_CONTEXT = {**optional_texts(name=1), **optional_ints(hwId=2, vmId=3, processId=4, deviceId=5, contextId=6)}
NAMED_CONTEXT = Table("TARGET_INFO_NVTX_CUDA_CONTEXT", _columns(_NAMED_CONTEXT))
_NAMED_STREAM = {**_NAMED_CONTEXT, **optional_ints(streamId=7)}
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
    for machine in devices.machines:
        if gpus := machine.hardware.gpus:
            yield GPU, {"vmId": [machine.globalVid] * len(gpus), **columns_of(gpus, _GPU)}
    yield from _context_rows(devices.contexts)
    for table, listed in (
        (STREAM, devices.streams),
        (NAMED_DEVICE, devices.named_devices),
        (NAMED_CONTEXT, devices.named_contexts),
        (NAMED_STREAM, devices.named_streams),
    ):
        if listed:
            yield table, columns_of(listed, table.columns)


def _context_rows(contexts: Sequence[Any]) -> Iterator[Rows]:
    old = [context for context in contexts if not any(map(context.HasField, _ADDED))]
    new = [context for context in contexts if any(map(context.HasField, _ADDED))]
    if old:
        yield NULL_STREAM, columns_of(old, NULL_STREAM.columns)
    if new:
        values = columns_of(new, _NULL_STREAM)
        # Which of the two is which is not known, for no report with a green context was at hand; else both are 0.
        green = [None if context.added_7 or context.added_8 else 0 for context in new]
        yield CONTEXT, dict(zip(CONTEXT.columns, [*values.values(), green, green], strict=True))

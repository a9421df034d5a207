"""Writes reports of Nsight Compute about kernels that never ran. They say that they are synthetic.

The layout is the one that ncu writes (docs/formats/ncu-rep.md), and NVIDIA's own reader opens it. The device is made up
and called so.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from diag.ingest.ncu_rep.magic import MAGIC
from diag.ingest.ncu_rep.messages import BlockHeader, FileHeader, ProfileResult

SMS = 108
"""Of the made-up device, which has the compute capability 8.0."""

Value = int | float
PROCESS = 4000

REQUIRED_BY_NVIDIA = bytes.fromhex("10 01 18 01 20 01 40 03  4a 06 08 00 10 00 18 00")
"""Fields of a launch that diag passes over and NVIDIA's reader insists on: four numbers, and an offset."""


@dataclass(frozen=True)
class SyntheticLaunch:
    """`per_instruction` has, by metric, what each instruction did, by its address."""

    name: str
    metrics: Mapping[str, Value]
    blocks: int
    threads: int
    per_instruction: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)


def ncu_report(launches: Sequence[SyntheticLaunch], made_by: str) -> bytes:
    """A mark, a header, then blocks: how ncu was run, the names of metrics, each launch, the machine."""
    names: dict[str, int] = {}
    launched = [_block(_launched(launch, names), n_results=1) for launch in launches]
    settings = {"settings": {"clock_control": b"Base", "replay": b"Kernel"}}
    version = {"provider": b"Synthetic", "version": f"made by {made_by}".encode()}
    attributes = {"compute_capability_major": 8, "compute_capability_minor": 0, "multiprocessor_count": SMS}
    device = {
        "id": 0,
        "name": b"Synthetic GPU",
        "attributes": [
            {"name": f"device__attribute_{name}".encode(), "value": {"uint64": value}}
            for name, value in attributes.items()
        ],
    }
    return b"".join(
        [
            MAGIC,
            _prefixed(FileHeader(version=7).SerializeToString()),
            _block(details=settings),
            _block(strings={"strings": [name.encode() for name in names]}),
            *launched,
            _block(details={"versions": [version]}),
            _block(details={"devices": [device]}),
            _block(details={"target": {"host": b"synthetic"}}),
        ]
    )


def _launched(launch: SyntheticLaunch, names: dict[str, int]) -> bytes:
    """`names` grows by those of its metrics."""
    parts = launch.per_instruction
    metrics = [
        {
            "name": names.setdefault(name, len(names)),
            "value": _valued(value),
            "elements": [
                {"correlation": _valued(key), "value": _valued(part)} for key, part in parts.get(name, {}).items()
            ],
        }
        for name, value in {"launch__device_id": 0, **dict.fromkeys(parts, 0), **launch.metrics}.items()
    ]
    function = launch.name.partition("(")[0].encode()
    result = ProfileResult(
        thread=PROCESS,
        context=1,
        stream=7,
        mangled=function,
        function=function,
        demangled=launch.name.encode(),
        grid={"x": launch.blocks, "y": 1, "z": 1},
        block={"x": launch.threads, "y": 1, "z": 1},
        metrics=metrics,
        source={"reference": 0},
        clock={"requested": 1, "executed": 1},
    )
    return result.SerializeToString() + REQUIRED_BY_NVIDIA  # type: ignore[no-any-return]


def _valued(value: Value) -> Mapping[str, Value]:
    return {"uint64" if isinstance(value, int) else "double": value}


def _block(payload: bytes | None = None, **header: object) -> bytes:
    body = b"" if payload is None else _prefixed(payload)
    described = BlockHeader(payload_bytes=len(body), process={"pid": PROCESS, "name": b"synthetic"}, **header)
    return _prefixed(described.SerializeToString()) + body


def _prefixed(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message

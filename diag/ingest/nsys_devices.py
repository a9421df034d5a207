"""Devices, contexts and streams of an Nsight Systems export."""

from __future__ import annotations

import re

from diag.ingest import nsys_statements as sql
from diag.ingest.nsys_tables import Export, optional_text
from diag.store.case import Case


def read_devices(export: Export, case: Case, source_id: int) -> None:
    """Also those that the export describes nowhere, but whose work it holds; so after that work."""
    _read_hardware(export, case, source_id)
    for table, statement in (
        ("TARGET_INFO_CUDA_CONTEXT_INFO", sql.CONTEXTS),
        ("TARGET_INFO_CUDA_NULL_STREAM", sql.NULL_STREAMS),
        ("TARGET_INFO_CUDA_STREAM", sql.STREAMS),
    ):
        if table in export:
            export.db.execute(export.sql(statement, table), {"source": source_id})
    case.db.execute(sql.CONTEXTS_OF_WORK, {"source": source_id})


def _read_hardware(export: Export, case: Case, source_id: int) -> None:
    by_gpu: dict[int, int] = {}
    by_ordinal: dict[int, list[int]] = {}
    for gpu_index, ordinal, *facts in export.rows("TARGET_INFO_GPU", sql.GPUS):
        row = dict(zip(sql.GPU_FACTS, facts, strict=True))
        row["uuid"], row["name"] = optional_text(row["uuid"]), optional_text(row["name"])
        row |= {key: _integer(value) for key, value in row.items() if key not in ("uuid", "name")}
        row |= {"source_id": source_id, "gpu_index": gpu_index, "mig_instance": mig_instance(row["uuid"], row["name"])}
        by_gpu[gpu_index] = case.insert_returning_id("device", row)
        by_ordinal.setdefault(_integer(ordinal) or 0, []).append(by_gpu[gpu_index])
    mapping = export.rows("TARGET_INFO_CUDA_DEVICE", sql.CUDA_DEVICES)
    known = {(pid, ordinal): by_gpu.get(gpu) for pid, ordinal, gpu in mapping}
    for process_id, pid, ordinal in case.db.execute(sql.USED_DEVICES, {"source": source_id}).fetchall():
        alone = by_ordinal.get(ordinal, [])
        device_id = known.get((pid, ordinal), alone[0] if len(alone) == 1 and not known else None)
        case.db.execute("INSERT INTO process_device VALUES (?, ?, ?)", (process_id, ordinal, device_id))


def mig_instance(uuid: str | None, name: str | None) -> str | None:
    """The slice of a GPU that a device is: its profile where the name tells it, else its UUID; None for a whole GPU.

    >>> mig_instance("MIG-8f3a", "NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    '1g.10gb'
    """
    if profile := _MIG_PROFILE.search(name or ""):
        return profile[1]
    return uuid if uuid is not None and uuid.startswith("MIG-") else None


_MIG_PROFILE = re.compile(r"\bMIG (\d+g\.\d+gb\S*)", re.IGNORECASE)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None

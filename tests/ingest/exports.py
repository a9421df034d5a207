"""What tests of the Nsight Systems reader share: a small export, and looks into the case made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diag.store.case import Case
from tests.builders.nsys_export import NsysExport

RANGES = """
    SELECT r.kind, n.text, r.start_ns, r.end_ns
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     ORDER BY r.start_ns, r.end_ns DESC
"""


def small(schema: str = "3.25") -> NsysExport:
    """A bit of everything that all versions have."""
    export = NsysExport(schema)
    main = export.process(100, "trainer").thread(name="main")
    gpu = main.process.gpu()
    for i in range(10):
        main.launch(gpu, called=100 * i + 10, start=100 * i + 20, end=100 * i + 80)
        gpu.copy(100 * i, 100 * i + 10, 1 << 20, correlation=main.call("cudaMemcpyAsync_v3020", 100 * i, 100 * i + 2))
    gpu.sync("Stream sync", 90, 99, correlation=main.call("cudaStreamSynchronize_v3020", 88, 99))
    main.range("step", 0, 500)
    main.os_call("write", 600, 650)
    return export


def rows(case: Case, sql: str) -> list[tuple[Any, ...]]:
    return case.db.execute(sql).fetchall()


def capabilities(case: Case) -> Mapping[str, int | None]:
    return case.sources[0].capabilities

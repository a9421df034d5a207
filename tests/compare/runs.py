"""Runs of one small program, each with one thing changed. Times are nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.builders.nsys_export import NsysExport

US = 1_000

H100: Mapping[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "smCount": 132,
    "totalMemory": 80_000_000_000,
    "clockRate": 1_980_000_000,
}
A100: Mapping[str, Any] = {**H100, "name": "NVIDIA A100-SXM4-80GB", "smCount": 108, "clockRate": 1_410_000_000}

VARIES = (0, 3, -2, 1, -3, 2, -1)
"""By how many percent the launches of a kernel differ from each other, again and again: their median is as asked."""


def loop(
    n: int = 40,
    *,
    gemm_us: int = 100,
    relu_us: int = 20,
    relus: int = 2,
    gap_us: int = 30,
    steps: bool = False,
    grid: int = 64,
    block: int = 128,
    hardware: Mapping[str, Any] | None = H100,
    more: Sequence[str] = (),
    pid: int = 100,
    name: str = "gemm",
) -> NsysExport:
    """n rounds of a gemm and some relus, back to back, and a gap in which the host is late; `more` are further kernels
    of 10 us in each round. With `steps` a range is around each round.
    """
    export = NsysExport()
    if hardware is not None:
        export.hardware(**hardware)
    main = export.process(pid).thread()
    gpu = main.process.gpu()
    size = {"gridX": grid, "gridY": 1, "gridZ": 1, "blockX": block, "blockY": 1, "blockZ": 1}
    at = 1_000 * US
    for i in range(n):
        began = at - 5 * US
        work = [(name, gemm_us), *[("relu", relu_us)] * relus, *((other, 10) for other in more)]
        for j, (kernel, usual_us) in enumerate(work):
            took = usual_us * US * (100 + VARIES[(i + j) % len(VARIES)]) // 100
            main.launch(gpu, called=at - 5 * US + j, start=at, end=at + took, name=kernel, **size)
            at += took
        at += gap_us * US
        if steps:
            main.range(f"step {i}", began, at - 5 * US)
    return export

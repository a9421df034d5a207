"""Pages of unified memory: faults, and how often they moved back where they had come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline import gpu_work
from diag.timeline.gpu_work import GpuOps
from diag.timeline.intervals import Integers, Times

BLOCK_BYTES = 2 << 20
"""Unified memory is managed in blocks of 2 MiB: no page fault and no copy reaches over the edge of one (NVIDIA
open-gpu-kernel-modules, uvm_va_block.h)."""

TO_DEVICE = gpu_work.COPY_KINDS.index("unified h2d")
TO_HOST = gpu_work.COPY_KINDS.index("unified d2h")


@dataclass(frozen=True, eq=False)
class PageFaults:
    """Page faults of a device in parallel arrays, by start."""

    start_ns: Times
    end_ns: Times
    address: Integers
    count: Integers


def load_page_faults(case: Case, source_id: int, process_id: int, device: int) -> PageFaults:
    sql = _PAGE_FAULTS.format(source_id=source_id, process_id=process_id, device=device)
    return PageFaults(**case.arrays(sql, dict.fromkeys(("start_ns", "end_ns", "address", "count"), "i8")))


_PAGE_FAULTS = """
    SELECT start_ns, end_ns, COALESCE(address, -1) AS address, count
      FROM page_fault
     WHERE source_id = {source_id:d} AND process_id = {process_id:d} AND device = {device:d}
     ORDER BY start_ns
"""


def turns_by_block(moves: GpuOps, address: Integers) -> tuple[Integers, Integers]:
    """Blocks of unified memory that moved, and how often each moved back where it had come from.

    `moves` are copies of unified memory between host and device, by start, and `address` where each begins.
    """
    block = address // BLOCK_BYTES
    order = np.argsort(block, kind="stable")
    block, kind = block[order], moves.copy_kind[order]
    turned = (block[1:] == block[:-1]) & (kind[1:] != kind[:-1])
    blocks, place = np.unique(block, return_inverse=True)
    return blocks, np.bincount(place[1:][turned], minlength=len(blocks))


def in_blocks(address: Integers, blocks: Integers) -> NDArray[np.bool_]:
    return np.isin(address // BLOCK_BYTES, blocks)

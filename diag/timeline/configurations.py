"""Launch configurations: the distinct ways in which the kernels of a device were launched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model.hardware import SmLimits
from diag.model.occupancy import Block, Occupancy, theoretical_occupancy
from diag.store.case import Case
from diag.store.columns import numbers_of
from diag.timeline import gpu_work
from diag.timeline.gpu_work import NONE, Column, GpuOps

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Configurations:
    """One entry for each distinct configuration, in parallel arrays. NONE stands for what was not captured."""

    name_id: Column
    blocks: Column  # of the grid
    threads: Column  # of a block
    registers: Column  # of a thread
    shared_bytes: Column  # of a block, static and dynamic
    carve_out_bytes: Column  # shared memory of the SM during the launch
    kernels: Index  # the kernels among the device's operations
    of: Index  # for each of them its configuration

    def __len__(self) -> int:
        return len(self.name_id)

    @property
    def is_captured(self) -> bool:
        """Whether any kernel says how it was launched."""
        return bool((self.threads > 0).any())

    def block(self, at: int) -> Block:
        """What a block of a configuration takes; impossible figures stay so, and have no occupancy."""
        carve_out = int(self.carve_out_bytes[at])
        return Block(
            threads=int(self.threads[at]),
            registers_per_thread=int(self.registers[at]),
            shared_bytes=int(self.shared_bytes[at]),
            carve_out_bytes=None if carve_out == NONE else carve_out,
        )

    def occupancies(self, limits: SmLimits) -> list[Occupancy | None]:
        return [theoretical_occupancy(limits, self.block(at)) for at in range(len(self))]


def load_configurations(case: Case, source_id: int, ops: GpuOps) -> Configurations:
    """The configurations of the kernels among `ops`, in an order that does not depend on that of the rows."""
    rows = case.arrays(_CONFIGURATIONS.format(source_id=source_id), dict.fromkeys(_COLUMNS, "i8"))
    kernels = np.flatnonzero(ops.kind == gpu_work.KERNEL)
    at = np.searchsorted(rows["id"], ops.id[kernels])
    columns = [ops.name_id[kernels].astype(np.int64), *(rows[name][at] for name in _COLUMNS[1:])]
    first, of = _distinct(columns)
    return Configurations(*(column[first] for column in columns), kernels, of)


def _distinct(columns: list[Column]) -> tuple[Index, Index]:
    """Where each distinct row of parallel columns occurs first, rows in ascending order, and which of them each row is.

    Hashing column by column is ten times as fast as sorting rows: 0.1 s for 1.3 M.
    """
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code, n_values = _hashed(column)
        codes, n_codes = _hashed(codes * n_values + code)
    first = np.empty(n_codes, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    order = np.lexsort([column[first] for column in reversed(columns)])
    rank = np.empty(n_codes, np.int64)
    rank[order] = np.arange(n_codes)
    return first[order], rank[codes]


def _hashed(column: Column) -> tuple[Index, int]:
    """Each value's number among the distinct ones, and how many these are."""
    import pyarrow

    encoded = pyarrow.array(column).dictionary_encode()
    return numbers_of(encoded.indices).astype(np.int64), len(encoded.dictionary)


_COLUMNS = ("id", "blocks", "threads", "registers", "shared_bytes", "carve_out_bytes")

# Figures are kept within what a launch can have, so that products of a damaged file's do not leave 64 bits.
_CONFIGURATIONS = """
    SELECT id,
           COALESCE(MIN(MAX(grid_x, 0), 2147483647) * MIN(MAX(grid_y, 0), 65535) * MIN(MAX(grid_z, 0), 65535), -1)
               AS blocks,
           COALESCE(MIN(MAX(block_x, 0), 1025) * MIN(MAX(block_y, 0), 1025) * MIN(MAX(block_z, 0), 1025), -1)
               AS threads,
           COALESCE(MIN(MAX(registers_per_thread, -1), 65536), -1) AS registers,
           COALESCE(MIN(MAX(shared_static_bytes, -1), 1073741824)
               + COALESCE(MIN(MAX(shared_dynamic_bytes, 0), 1073741824), 0), -1) AS shared_bytes,
           COALESCE(MIN(MAX(shared_executed_bytes, -1), 1073741824), -1) AS carve_out_bytes
      FROM gpu_op
     WHERE source_id = {source_id:d} AND kind = 'kernel'
     ORDER BY id
"""

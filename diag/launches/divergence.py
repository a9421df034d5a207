"""Where the threads of a warp part, and how many lanes a block can fill at all."""

from __future__ import annotations

from dataclasses import dataclass

from diag.launches.code import place_of
from diag.launches.kernel import ProfiledKernel
from diag.model.hardware import WARP_THREADS


@dataclass(frozen=True)
class DivergentBranch:
    """A branch that threads of one warp took differently. `share` is of all the times that this happened."""

    place: str
    share: float


def lanes_filled(threads_per_block: int) -> float:
    """Share of its warps' lanes that a block can fill.

    >>> lanes_filled(256), lanes_filled(48)
    (1.0, 0.75)
    """
    warps = -(-threads_per_block // WARP_THREADS)
    return threads_per_block / (warps * WARP_THREADS)


def divergent_branches(kernel: ProfiledKernel, most: int) -> list[DivergentBranch]:
    """At most so many branches, those at which threads parted most often first."""
    rows = kernel.case.db.execute(divergent_sql(kernel.launch.id, most))
    return [DivergentBranch(place_of(address, sass, file, line), share) for address, share, sass, file, line in rows]


def divergent_sql(launch_id: int, most: int) -> str:
    """The statement behind them."""
    return " ".join(_DIVERGENT.format(launch_id=launch_id, most=most).split())


_DIVERGENT = """
    SELECT p.key AS address, p.value / total(p.value) OVER () AS share, i.sass, f.text AS file, i.line
      FROM launch_instance p
      JOIN metric m ON m.id = p.metric_id AND m.name = 'smsp__branch_targets_threads_divergent'
      LEFT JOIN launch_instruction i ON i.launch_id = p.launch_id AND i.address = p.key
      LEFT JOIN name f ON f.id = i.file_id
     WHERE p.launch_id = {launch_id:d} AND typeof(p.key) = 'integer' AND typeof(p.value) IN ('integer', 'real')
       AND p.value > 0
     ORDER BY p.value DESC, 1
     LIMIT {most:d}
"""

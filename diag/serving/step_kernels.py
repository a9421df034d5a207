"""Kernels of an engine's steps, where a timeline of the same run lies beside its log.

The engine marks each step with an NVTX range `engine step`, whose payload is the number of the step (its journal does),
and a step ends when its results are on the host: what began inside the range is part of it. No clock is compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model.serving_metrics import Nanoseconds
from diag.serving.steps import Chosen, Steps
from diag.store.case import Case


@dataclass(frozen=True)
class KernelGrowth:
    """The kernel whose time grows most from usual steps to chosen ones; means over steps, in ns."""

    source_id: int
    name: str
    chosen_ns: float
    usual_ns: float


def most_grown_kernel(steps: Steps, chosen: Chosen) -> KernelGrowth | None:
    """None where no timeline, or more than one, tells of these steps: a second run would have the same numbers."""
    case, sources = steps.run.case, _sources(steps.run.case)
    runs_with_steps = case.value(_RUNS_WITH_STEPS)
    if len(sources) != 1 or runs_with_steps != 1 or chosen.all() or not chosen.any():
        return None
    (source_id,) = sources
    of = _by_name(case, source_id, steps["number"], chosen)
    if of is None:
        return None
    most = int(np.argmax(of.chosen_ns - of.usual_ns))
    if of.chosen_ns[most] <= of.usual_ns[most]:
        return None
    name = case.names.get(int(of.name_id[most]), "a kernel without a name")
    return KernelGrowth(source_id, name, float(of.chosen_ns[most]), float(of.usual_ns[most]))


@dataclass(frozen=True, eq=False)
class _ByName:
    """Arrays are (names,); times are means over steps of which the timeline tells."""

    name_id: NDArray[np.int32]
    chosen_ns: NDArray[np.float64]
    usual_ns: NDArray[np.float64]


def kernels_sql(source_id: int) -> str:
    """Kernels by step and name."""
    return _KERNELS_OF_STEPS.format(source_id=source_id)


def _sources(case: Case) -> list[int]:
    return [row["source_id"] for row in case.rows(_SOURCES)]


def _by_name(case: Case, source_id: int, numbers: Nanoseconds, chosen: Chosen) -> _ByName | None:
    """None where the timeline does not tell of both chosen and other steps."""
    ranges = case.arrays(_RANGES.format(source_id=source_id), {"number": "i8", "start_ns": "i8", "end_ns": "i8"})
    ranges = {name: column[np.isin(ranges["number"], numbers)] for name, column in ranges.items()}
    is_chosen = np.isin(ranges["number"], numbers[chosen])
    if is_chosen.all() or not is_chosen.any():
        return None
    kernels = case.arrays(_KERNELS.format(source_id=source_id), {"start_ns": "i8", "took_ns": "i8", "name_id": "i4"})
    at = np.maximum(np.searchsorted(ranges["start_ns"], kernels["start_ns"], side="right") - 1, 0)
    inside = (kernels["start_ns"] >= ranges["start_ns"][at]) & (kernels["start_ns"] < ranges["end_ns"][at])
    if not inside.any():
        return None
    name_id, column = np.unique(kernels["name_id"][inside], return_inverse=True)
    sums = np.zeros((2, len(name_id)))
    np.add.at(sums, (is_chosen[at[inside]].astype(np.int64), column), kernels["took_ns"][inside])
    return _ByName(name_id, sums[1] / is_chosen.sum(), sums[0] / (~is_chosen).sum())


_RUNS_WITH_STEPS = "SELECT COUNT(DISTINCT run_id) FROM engine_step"

_SOURCES = """
    SELECT DISTINCT r.source_id
      FROM cpu_range r
      JOIN name n ON n.id = r.name_id
     WHERE n.text = 'engine step'
       AND r.kind = 'nvtx'
       AND r.payload GLOB '[0-9]*'
     ORDER BY r.source_id
"""

_RANGES = """
    SELECT CAST(r.payload AS INTEGER) AS number, r.start_ns, r.end_ns
      FROM cpu_range r
      JOIN name n ON n.id = r.name_id
     WHERE n.text = 'engine step'
       AND r.kind = 'nvtx'
       AND r.payload GLOB '[0-9]*'
       AND r.end_ns IS NOT NULL
       AND r.source_id = {source_id:d}
     ORDER BY r.start_ns
"""

_KERNELS = """
    SELECT start_ns, end_ns - start_ns AS took_ns, COALESCE(short_name_id, name_id, -1) AS name_id
      FROM gpu_op
     WHERE kind = 'kernel'
       AND source_id = {source_id:d}
"""

_KERNELS_OF_STEPS = """
    SELECT CAST(r.payload AS INTEGER) AS step, k.text AS kernel, COUNT(*) AS launches, SUM(g.end_ns - g.start_ns) AS ns
      FROM cpu_range r
      JOIN name n ON n.id = r.name_id AND n.text = 'engine step'
      JOIN gpu_op g ON g.source_id = r.source_id AND g.kind = 'kernel'
       AND g.start_ns >= r.start_ns AND g.start_ns < r.end_ns
      JOIN name k ON k.id = COALESCE(g.short_name_id, g.name_id)
     WHERE r.source_id = {source_id:d}
     GROUP BY step, kernel
     ORDER BY ns DESC
"""

"""What a benchmark of the same job says of its collectives: a line T = α + k·M/B for each operation and group size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from diag.model.collective import Primitive, bus_factor
from diag.model.collective_fit import Fit, fit
from diag.store.case import Case

Line = tuple[str, int]
"""Operation and number of ranks."""


def measured_lines(case: Case) -> Mapping[Line, Fit]:
    """Those of `comm_measurement` (nccl-tests, or a probe) through which a line goes."""
    times: defaultdict[Line, list[tuple[float, float]]] = defaultdict(list)
    for row in case.rows(_MEASURED):
        if row["op"] in set(Primitive) and row["time_ns"] > 0:
            moved_bytes = bus_factor(Primitive(row["op"]), row["n_ranks"]) * row["size_bytes"]
            times[row["op"], row["n_ranks"]].append((moved_bytes, row["time_ns"]))
    lines = {key: fit(*zip(*points, strict=True)) for key, points in times.items()}
    return {key: line for key, line in lines.items() if isinstance(line, Fit)}


_MEASURED = """
    SELECT op, n_ranks, size_bytes, time_ns
      FROM comm_measurement
     WHERE backend = 'nccl' AND n_ranks > 1 AND size_bytes > 0
     ORDER BY op, n_ranks, size_bytes, is_in_place
"""

"""Writes the metrics of launches into the case.

By column: a launch has hundreds of metrics, and one that was measured per instruction has ten thousand values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from diag.ingest.launch_records import Metric
from diag.ingest.launch_values import MOST_INTEGER, storable
from diag.store.bulk import ColumnValues, insert_columns
from diag.store.case import Case

STALLS = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"


class MetricWriter:
    """Adds metrics to a case, inside the caller's transaction, and knows the metrics that it has."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._ids: dict[tuple[str, str], int] = {
            (name, unit): i for i, name, unit in case.db.execute("SELECT id, name, unit FROM metric")
        }

    def add(self, launch_id: int, metrics: Iterable[Metric]) -> Mapping[str, int]:
        """Returns the number of rows of each table. Of a metric that a launch names twice the first one counts."""
        by_id: dict[int, Metric] = {}
        for metric in metrics:
            by_id.setdefault(self._id(metric), metric)
        self._add_values(launch_id, by_id)
        self._add_instances(launch_id, by_id)
        return {"launch_metric": len(by_id), "launch_stall": self._add_stalls(launch_id, by_id.values())}

    def _id(self, metric: Metric) -> int:
        unit = "" if isinstance(metric.value, str) else metric.unit  # a text is in no unit, whatever its name says
        known = self._ids.get((metric.name, unit))
        if known is None:
            known = self._case.insert_returning_id("metric", {"name": metric.name, "unit": unit})
            self._ids[metric.name, unit] = known
        return known

    def _add_values(self, launch_id: int, by_id: Mapping[int, Metric]) -> None:
        columns: ColumnValues = {
            "launch_id": [launch_id] * len(by_id),
            "metric_id": list(by_id),
            "value": storable(metric.value for metric in by_id.values()),
        }
        insert_columns(self._case.db, "launch_metric", columns)

    def _add_instances(self, launch_id: int, by_id: Mapping[int, Metric]) -> None:
        lists = [(metric_id, metric.instances) for metric_id, metric in by_id.items() if metric.instances]
        instances = list(chain.from_iterable(each for _, each in lists))
        columns: ColumnValues = {
            "launch_id": [launch_id] * len(instances),
            "metric_id": [metric_id for metric_id, each in lists for _ in each],
            "at": [at for _, each in lists for at in range(len(each))],
            "key": storable(key for key, _ in instances),
            "value": storable(value for _, value in instances),
        }
        insert_columns(self._case.db, "launch_instance", columns)

    def _add_stalls(self, launch_id: int, metrics: Iterable[Metric]) -> int:
        rows = list(chain.from_iterable(_stalls(metrics)))
        if rows:
            addresses, reasons, samples, not_issued = zip(*rows, strict=True)
            columns: ColumnValues = {
                "launch_id": [launch_id] * len(rows),
                "address": addresses,
                "reason": reasons,
                "samples": samples,
                "not_issued": not_issued,
            }
            insert_columns(self._case.db, "launch_stall", columns)
        return len(rows)


def _stalls(metrics: Iterable[Metric]) -> Iterator[list[tuple[int, str, int, int | None]]]:
    """Of each reason: address, reason, samples, and samples while nothing was issued."""
    by_name = {metric.name: metric for metric in metrics if metric.name.startswith(STALLS) and metric.instances}
    for name, metric in by_name.items():
        if name.endswith(NOT_ISSUED):
            continue
        reason = name.removeprefix(STALLS)
        others = by_name.get(name + NOT_ISSUED)
        not_issued = dict(_counts(others)) if others else {}
        absent = 0 if others else None
        yield [(address, reason, n, not_issued.get(address, absent)) for address, n in _counts(metric)]


def _counts(metric: Metric) -> Iterator[tuple[int, int]]:
    for address, n in metric.instances:
        if isinstance(address, int) and isinstance(n, int) and address <= MOST_INTEGER and n <= MOST_INTEGER:
            yield address, n

"""GPU metrics and network metrics of an Nsight Systems export, as time series by metric name.

GPU metrics are sampled at a fixed rate, 10 kHz unless told otherwise, from before the capture starts: their times may
be negative. The numbers of metrics differ between chips and versions, only the names mean something. The low byte of a
type id is PerfWorks' number of the GPU, which TARGET_INFO_GPU maps to the file's own.

Source: Nsight Systems User Guide, "GPU Metrics", "Network Communication Profiling", "SQLite Export Schema Reference".
"""

from __future__ import annotations

from typing import Any

from diag.ingest import nsys_counter_statements as sql
from diag.ingest.nsys_tables import GPU_METRICS, NETWORK_METRICS, Export, as_text, left_out_note
from diag.store.case import Case

PERCENT = "%"
_EXPORTED_IN = {"MHz": "Hz", "GB/s": "bytes/s"}


def read_counters(export: Export, case: Case, source_id: int, notes: list[str]) -> dict[str, int | None]:
    """Copies the samples; returns how many there are of each kind, None where that was not captured."""
    gpu = None
    if GPU_METRICS in export:
        _map_gpu_metrics(export, case, source_id)
        gpu = _copy(export, GPU_METRICS, sql.GPU_METRICS, notes)
    network = [_copy_network(export, table, case, source_id, notes) for table in NETWORK_METRICS if table in export]
    return {"gpu_metrics": gpu, "network_metrics": sum(network) if network else None}


def unit_of(metric: str) -> str:
    """The unit of a GPU metric, by the one in brackets behind its name; old names have none and are percentages.

    What a name calls MHz or GB/s is exported in Hz and bytes per second.

    >>> unit_of("SMs Active [Throughput %]"), unit_of("GPC Clock Frequency [MHz]"), unit_of("SM Active")
    ('%', 'Hz', '%')
    """
    _, bracket, rest = metric.partition(" [")
    unit = rest.rstrip("]")
    return PERCENT if not bracket or unit.endswith(PERCENT) else _EXPORTED_IN.get(unit, unit)


def _map_gpu_metrics(export: Export, case: Case, source_id: int) -> None:
    gpus = dict(_rows(export, "TARGET_INFO_GPU", sql.PERFWORKS_GPUS))
    metrics = [(*key, as_text(name)) for *key, name in _rows(export, "TARGET_INFO_GPU_METRICS", sql.GPU_METRIC_NAMES)]
    names = case.intern(name for _, _, name in metrics)
    case.db.execute("CREATE TEMP TABLE map_series (key INTEGER PRIMARY KEY, value INTEGER)")
    for type_id, metric, name in metrics:
        number = type_id & 0xFF
        series = _add_series(case, source_id, gpus.get(number, number), None, names[name], unit_of(name))
        key = type_id * sql.MOST_METRICS + metric
        case.db.execute("INSERT OR IGNORE INTO map_series VALUES (?, ?)", (key, series))


def _copy_network(export: Export, table: str, case: Case, source_id: int, notes: list[str]) -> int:
    cards = {card: as_text(name) for card, name in _rows(export, "NIC_ID_MAP", sql.NETWORK_CARDS)}
    metrics = {
        (listed, metric): (as_text(name), as_text(unit) or None)
        for listed, metric, name, unit in _rows(export, "TARGET_INFO_NETWORK_METRICS", sql.NETWORK_METRIC_NAMES)
    }
    case.db.execute(sql.MAP_NETWORK_SERIES)
    for card, port, listed, metric in _rows(export, table, sql.NETWORK_SERIES):
        name, unit = metrics.get((listed, metric), (f"#{metric}", None))
        place = cards.get(card, f"#{card}") + ("" if port == sql.NO_PORT else f" port {port}")
        series = _add_series(case, source_id, None, place, case.intern([name])[name], unit)
        case.db.execute("INSERT INTO map_series VALUES (?, ?, ?, ?, ?)", (card, port, listed, metric, series))
    return _copy(export, table, sql.NETWORK_METRICS, notes)


def _add_series(case: Case, source_id: int, device: int | None, nic: str | None, name_id: int, unit: str | None) -> int:
    return int(case.db.execute(sql.COUNTER_SERIES, (source_id, device, nic, name_id, unit)).fetchone()[0])


def _copy(export: Export, table: str, statement: str, notes: list[str]) -> int:
    taken = export.db.execute(export.sql(statement, table)).rowcount
    export.db.execute("DROP TABLE map_series")
    if left_out := export.count(table) - taken:
        notes.append(left_out_note(left_out, table))
    return taken


def _rows(export: Export, table: str, statement: str) -> list[tuple[Any, ...]]:
    return export.db.execute(export.sql(statement, table)).fetchall() if table in export else []

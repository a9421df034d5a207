"""GPU metrics and network metrics of an export, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diag.store.case import Case
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.rules.scenes import fed

SMS = "SMs Active [Throughput %]"
_ALL = """
    SELECT s.device, s.nic, n.text, s.unit, c.time_ns, c.value
      FROM counter c JOIN counter_series s ON s.id = c.series_id JOIN name n ON n.id = s.name_id
     ORDER BY s.device, n.text, c.time_ns
"""


def counters(case: Case) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in case.rows(_ALL)]


def with_metrics() -> NsysExport:
    export = fed().export
    export.gpu_metric("GPC Clock Frequency [MHz]", {0: 2_526_795_000 - (1 << 32)})
    export.gpu_metric(SMS, {-50_000_000: 0, 0: 37})
    return export


def test_times_before_the_capture_are_kept(tmp_path: Path) -> None:
    with imported(with_metrics(), tmp_path) as case:
        assert counters(case)[1:] == [(0, None, SMS, "%", -50_000_000, 0.0), (0, None, SMS, "%", 0, 37.0)]
        assert case.sources[0].capabilities["gpu_metrics"] == 3
        assert case.sources[0].capabilities["network_metrics"] is None
        assert case.notes(1) == []


def test_clocks_are_unsigned(tmp_path: Path) -> None:
    with imported(with_metrics(), tmp_path) as case:
        assert counters(case)[0] == (0, None, "GPC Clock Frequency [MHz]", "Hz", 0, 2_526_795_000.0)


def test_the_gpu_is_the_files_own_number_where_it_maps_it(tmp_path: Path) -> None:
    export = fed().export
    export.hardware(2, pwGpuId=0)
    export.gpu_metric(SMS, {0: 1}, gpu=0)
    export.gpu_metric(SMS, {0: 2}, gpu=7)
    with imported(export, tmp_path) as case:
        assert [(row[0], row[-1]) for row in counters(case)] == [(2, 1.0), (7, 2.0)]


def test_samples_without_time_name_or_number_are_left_out_and_counted(tmp_path: Path) -> None:
    export = with_metrics()
    known = export.rows["GPU_METRICS"][0]
    for odd in ({"timestamp": None}, {"timestamp": 1 << 62}, {"metricId": 77}, {"typeId": -1}, {"value": "x"}):
        export.rows["GPU_METRICS"].append(known | odd)
    with imported(export, tmp_path) as case:
        assert len(counters(case)) == 3
        assert case.notes(1) == ["5 rows of GPU_METRICS have no valid time, device or thread and were left out."]


def test_metrics_whose_names_are_missing_are_not_guessed(tmp_path: Path) -> None:
    with imported(with_metrics().drop("TARGET_INFO_GPU_METRICS"), tmp_path) as case:
        assert counters(case) == []
        assert case.sources[0].capabilities["gpu_metrics"] == 0


def test_network_cards_have_ports_and_units(tmp_path: Path) -> None:
    export = fed().export
    export.network_metric("IB: Bytes sent", "bytes/ms", {-1_000_000: 5, 0: 6})
    export.network_metric("IB: Send waits", "ticks/ms", {0: 9})
    with imported(export, tmp_path) as case:
        assert counters(case) == [
            (None, "mlx5_0 port 1", "IB: Bytes sent", "bytes/ms", -1_000_000, 5.0),
            (None, "mlx5_0 port 1", "IB: Bytes sent", "bytes/ms", 0, 6.0),
            (None, "mlx5_0 port 1", "IB: Send waits", "ticks/ms", 0, 9.0),
        ]
        assert case.sources[0].capabilities["network_metrics"] == 3


def test_a_network_card_without_a_name_is_its_number(tmp_path: Path) -> None:
    export = fed().export
    export.network_metric("IB: Bytes sent", "bytes/ms", {0: 6})
    with imported(export.drop("NIC_ID_MAP", "TARGET_INFO_NETWORK_METRICS"), tmp_path) as case:
        ((_, nic, name, unit, _, value),) = counters(case)
        assert nic == f"#{1 << 48} port 1"
        assert (name, unit, value) == ("#0", None, 6.0)


def test_switches_are_told_beside_cards(tmp_path: Path) -> None:
    export = fed().export
    export.network_metric("IB: Bytes sent", "bytes/ms", {0: 6})
    metric = {"metricsListId": 0, "metricsIdx": 0}
    export.insert("NET_IB_SWITCH_METRIC", start=5, end=9, globalId=77, **metric, value=8)
    with imported(export, tmp_path) as case:
        assert [(row[1], row[-1]) for row in counters(case)] == [("mlx5_0 port 1", 6.0), ("#77", 8.0)]
        assert case.sources[0].capabilities["network_metrics"] == 2


def test_an_export_of_metrics_alone_is_read(tmp_path: Path) -> None:
    export = NsysExport()
    export.gpu_metric(SMS, {0: 37})
    with imported(export, tmp_path) as case:
        assert len(counters(case)) == 1

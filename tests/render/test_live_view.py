"""What the views of a running workload share."""

from __future__ import annotations

from diag.model.live import StackDump
from diag.model.live_run import LiveRun
from diag.render.live_view import view_of
from tests.render.live_moments import EPOCH_NS, GB, S, answers, gpu, process, run, snapshot


def test_rates_are_those_between_the_last_two_snapshots() -> None:
    view = view_of(run())
    assert view.elapsed_ns == S
    assert view.host.busy_cores == 1.5
    (row,) = view.processes
    assert row.cores == 1.5
    assert row.read_bytes_per_s == 50e6
    assert (row.minor_faults_per_s, row.major_faults_per_s) == (10, 1)
    assert (row.voluntary_switches_per_s, row.involuntary_switches_per_s) == (7, 7)
    assert row.gpu_memory_bytes == 70 * GB
    (device,) = view.gpus
    assert (device.nvlink_rx_bytes_per_s, device.nvlink_tx_bytes_per_s) == (4 * GB, 2 * GB)
    assert device.last_xid == 79
    assert device.is_used


def test_the_first_snapshot_has_no_rates() -> None:
    view = view_of(run(1))
    assert view.elapsed_ns is None
    assert view.host.busy_cores is None
    assert view.processes[0].cores is None
    assert view.gpus[0].nvlink_rx_bytes_per_s is None


def test_a_process_that_took_over_a_number_has_no_rate_yet() -> None:
    later = process(1, started_ns=9 * S)
    view = view_of(LiveRun(100, [snapshot(0), snapshot(1, processes=[later])]))
    assert view.processes[0].cores is None


def test_threads_come_hottest_first() -> None:
    assert [(row.reading.name, row.cores) for row in view_of(run()).threads] == [("python", 1.0), ("loader", 0.5)]


def test_histories_are_of_the_last_minute() -> None:
    view = view_of(run(100))
    assert len(view.gpus[0].resident_pct) == 61
    assert list(view.processes[0].history) == [1.5] * 60


def test_a_history_has_gaps_where_nothing_was_read() -> None:
    view = view_of(LiveRun(None, [snapshot(0), snapshot(1, gpus=[]), snapshot(2)]))
    assert list(view.gpus[0].resident_pct) == [97.0, None, 97.0]


def test_of_each_process_the_newest_stacks_are_shown() -> None:
    dumps = [StackDump(pid, EPOCH_NS + at, (), 1) for at, pid in enumerate((100, 200, 100))]
    view = view_of(LiveRun(100, [snapshot(0, stacks=dumps[:2]), snapshot(1, stacks=dumps[2:])]))
    assert [(dump.pid, dump.time_ns - EPOCH_NS) for dump in view.stacks] == [(200, 1), (100, 2)]


def test_what_is_untold_stands_with_its_place() -> None:
    why = "Run it with sudo."
    device = gpu(power_w=None, untold={"power_w": why, "temperature_c": why, "xids": "No events."})
    view = view_of(LiveRun(100, [snapshot(0, gpus=[device], gone="It is gone.")]))
    assert [(list(each.what), each.where, each.because) for each in view.untold] == [
        (["gone"], None, "It is gone."),
        (["xids"], "GPU 0", "No events."),
        (["power_w", "temperature_c"], "GPU 0", why),
    ]


def test_answers_are_told_apart() -> None:
    view = view_of(run(), answers())
    assert [finding.rule for finding in view.findings] == ["live.thermal"]
    assert [each.rule for each in view.clear] == ["live.power"]
    assert [each.rule for each in view.cannot_tell] == ["live.xid"]

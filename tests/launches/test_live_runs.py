"""Watched workloads out of a case, which anyone may have edited."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches import live_runs as module
from diag.launches.live_runs import live_runs
from diag.model.live import Xid
from diag.model.live_run import LiveRun
from diag.rules.analysis import analyse
from tests.builders.live import EPOCH_NS, PID, Watched, device, process, watched
from tests.rules.test_live_loader import loading


def made_bytes(made: Watched) -> int:
    return sum(len(msgspec.json.encode(each)) for each in made.snapshots)


def edited(path: Path, change: str) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"UPDATE live_snapshot SET body = {change} WHERE rowid = 3")
    return path


@pytest.mark.parametrize(
    "change",
    [
        "'{'",
        "'[]'",
        "'{}'",
        "json_set(body, '$.clock_ns', -1)",
        "json_set(body, '$.clock_ns', 9e99)",
        "json_set(body, '$.gpus[0].power_w', 'much')",
        "json_set(body, '$.gpus[0].power_w', 1e300)",
        "json_set(body, '$.gpus[0].memory_used_bytes', -5)",
        "json_set(body, '$.processes[0].threads', json('[[]]'))",
        "replace(body, '\"took_ns\":1000000', '\"took_ns\":123456789012345678901234567890')",
    ],
)
def test_a_body_that_no_watch_writes_is_refused(change: str, tmp_path: Path) -> None:
    path = edited(watched().write(tmp_path / "run.diag"), change)
    with (
        pytest.raises(InputError, match=r"live_snapshot|diag watch"),
        open_inputs([path], ImportOptions(use_cache=False)) as case,
    ):
        analyse(case)


@pytest.mark.parametrize(
    "change",
    [
        "json_set(body, '$.clock_ns', 0)",
        "json_set(body, '$.clock_ns', 2000000000000000000)",
        "json_set(body, '$.time_ns', 0)",
        "json_set(body, '$.gpus[0].resident_pct', 1e9)",
        "json_set(body, '$.gpus[0].power_limit_w', 0)",
        "json_set(body, '$.gpus[0].sm_clock_max_hz', 0)",
        "json_set(body, '$.gpus[0].memory_total_bytes', 0)",
        "json_set(body, '$.gpus[0].clock_reasons', json('[\"nonsense\"]'))",
        "json_set(body, '$.host.cores', 0)",
        "json_set(body, '$.gpus', json('[]'))",
        "json_set(body, '$.processes', json('[]'))",
    ],
)
def test_odd_figures_are_judged_like_any(change: str, tmp_path: Path) -> None:
    path = edited(loading().write(tmp_path / "run.diag"), change)
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        report = analyse(case)
    for finding in report.findings:
        assert 0 <= (finding.share or 0) <= 1
        start_ns, end_ns = finding.subject.window or (0, 0)
        assert 0 <= (finding.recoverable_ns or 0) <= end_ns - start_ns


def test_a_long_record_is_thinned_but_for_what_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = watched(lambda at: device(xids=[Xid(79, EPOCH_NS)] if at == 7 else []), seconds=50)
    path = made.write(tmp_path / "run.diag")
    monkeypatch.setattr(module, "MOST_LOADED_BYTES", made_bytes(made) // 4)
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (run,) = live_runs(case)
    assert len(run.snapshots) < 20
    assert run.window == made.run.window
    assert sum(len(gpu.xids) for each in run.snapshots for gpu in each.gpus) == 1


def test_a_number_that_another_process_got_is_another_one() -> None:
    run = watched(processes=lambda at: [process(at, 101, started_ns=5 if at < 10 else 6)]).run
    assert [one.pid for one in run.processes] == [101, 101]
    assert [one.elapsed_ns for one in run.processes] == [9_000_000_000, 10_000_000_000]


def test_nothing_is_known_of_a_gap() -> None:
    seen = watched().snapshots
    run = LiveRun(PID, [*seen[:5], *seen[15:]])
    (gpu,) = run.devices
    told = gpu.when(lambda reading: reading.resident_pct == 100)
    assert (told.window_ns, told.known_ns) == (20_000_000_000, 11_000_000_000)


def test_a_wall_clock_that_is_set_changes_nothing() -> None:
    seen = watched().snapshots
    shifted = [replace(each, time_ns=each.time_ns - (10**15 if at > 9 else 0)) for at, each in enumerate(seen)]
    assert LiveRun(PID, shifted).window == LiveRun(PID, seen).window

"""What every verb makes of a watch that was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, snapshot
from tests.export.reading import faults, read
from tests.rules.test_live_clocks import held
from tests.rules.test_live_loader import loading


@pytest.fixture
def record(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    return loading().write(folder / "run.diag")


def test_it_is_reported_and_never_written(diag: Command, record: Path) -> None:
    before = snapshot(record.parent)
    out = diag("report", record).is_quiet_success()
    assert out.startswith("GPU 0 waits for the data loader")
    told = json.loads(diag("report", record, "--format", "json").is_quiet_success())
    explained = diag("explain", told["verdict"]["finding_id"], record).is_quiet_success()
    assert "FROM live_frame" in explained
    assert diag("report", record, "--fail-on", "critical").status == 1
    assert snapshot(record.parent) == before


def test_its_evidence_is_found_by_sql(diag: Command, record: Path) -> None:
    told = json.loads(diag("report", record, "--format", "json").is_quiet_success())
    queries = {each["sql"] for finding in told["findings"] for each in finding["evidence"] if each["sql"]}
    assert queries
    for sql in queries:
        assert len(diag("query", record, sql).is_quiet_success().splitlines()) > 1


def test_its_series_are_drawn(diag: Command, record: Path, tmp_path: Path) -> None:
    diag("export", record, "-o", tmp_path / "trace.json").is_quiet_success()
    trace = read(tmp_path / "trace.json")
    assert faults(trace) == []
    assert '"Kernel resident"' in (tmp_path / "trace.json").read_text()
    diag("export", record, "--format", "parquet", "-o", tmp_path / "tables").is_quiet_success()
    assert {"live_gpu.parquet", "live_process.parquet"} <= {each.name for each in (tmp_path / "tables").iterdir()}


def test_two_of_them_are_compared_by_their_findings(diag: Command, record: Path, tmp_path: Path) -> None:
    after = held("hw_thermal_slowdown").write(tmp_path / "after.diag")
    outcome = diag("compare", record, after)
    assert "gone: GPU 0 waits for the data loader" in outcome.out
    assert "new: GPU 0 is throttled by heat" in outcome.out
    assert "Nsight Compute" not in outcome.out
    assert "same: hardware and topology. GPUs: NVIDIA H200" in outcome.out


def test_it_has_no_window_to_take_a_part_of(diag: Command, record: Path) -> None:
    said = diag("report", record, "--window", "1s:2s").is_one_sentence(2)
    assert "timeline" in said
    assert "watch" in said


def test_an_older_report_is_a_baseline(diag: Command, record: Path, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(diag("report", record, "--format", "json").is_quiet_success())
    out = diag("report", record, "--baseline", tmp_path / "old.json").is_quiet_success()
    assert "0 new, 0 worse" in out

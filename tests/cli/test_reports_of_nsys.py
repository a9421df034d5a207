"""Reports of Nsight Systems at the command line, with no nsys."""

from __future__ import annotations

import json
import resource
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.builders.nsys_report import Report
from tests.cli.conftest import Command, snapshot

THREAD = 100 << 24 | 100
NO_NSYS = {"DIAG_NSYS": "/nowhere"}


def steps(n: int, event_type: int = 59) -> list[dict[int, Any]]:
    return [{1: event_type, 102: {1: event_type, 2: 1000 * i, 10: 1000 * i + 900, 12: 0, 9: THREAD}} for i in range(n)]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    path = folder / "run.nsys-rep"
    path.write_bytes(Report(steps(300), strings=[b"train_step"], events_in_block=100).content())
    return path


def cut(report: Path, share: float) -> Path:
    path = report.with_name("cut.nsys-rep")
    content = report.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


def source(told: str) -> dict[str, Any]:
    (only,) = json.loads(told)["sources"]
    assert isinstance(only, dict)
    return only


def test_a_report_is_read_without_nsys(diag: Command, report: Path) -> None:
    before = snapshot(report.parent)
    told = diag("report", report, env=NO_NSYS).is_quiet_success()
    assert "train_step" in told
    assert "all 300 events read" in " ".join(told.split())
    read = source(diag("report", report, "--format", "json", env=NO_NSYS).is_quiet_success())
    assert (read["events_declared"], read["events_read"]) == (300, 300)
    assert snapshot(report.parent) == before


def test_its_name_does_not_matter(diag: Command, report: Path) -> None:
    for name in ("run.txt", "run.qdstrm", "run"):
        path = report.rename(report.with_name(name))
        assert "train_step" in diag("report", path, env=NO_NSYS).is_quiet_success()
        report = path


def test_a_cut_report_says_what_is_missing(diag: Command, report: Path) -> None:
    told = diag("report", cut(report, 0.6), "--format", "json").is_quiet_success()
    read = source(told)
    assert 0 < read["events_read"] < read["events_declared"] == 300
    (note,) = [note for note in read["notes"] if "damaged" in note]
    assert "the names are lost" in note
    (finding,) = [finding for finding in json.loads(told)["findings"] if finding["rule"] == "capture.unread"]
    assert finding["evidence"][0]["value"] == 300 - read["events_read"]


def test_a_cut_report_without_a_whole_block_is_one_sentence(diag: Command, report: Path) -> None:
    assert "cut short before its first event" in diag("report", cut(report, 0.012)).is_one_sentence(3)


def test_what_it_unpacks_to_is_bounded(diag: Command, report: Path) -> None:
    assert "--max-size" in diag("report", report, "--max-size", "1K").is_one_sentence(3)
    target = report.parent.parent / "x.sqlite"
    assert "--max-size" in diag("export", report, "-o", target, "--max-size", "1K").is_one_sentence(3)
    assert "not a size" in diag("export", report, "-o", target, "--max-size", "x").is_one_sentence(2)
    assert not target.exists()


def test_an_export_for_other_tools(diag: Command, report: Path, tmp_path: Path) -> None:
    target = tmp_path / "run.sqlite"
    diag("export", report, "-o", target, env=NO_NSYS).is_quiet_success()
    with closing(sqlite3.connect(target)) as db:
        texts = "SELECT DISTINCT value FROM NVTX_EVENTS JOIN StringIds ON id = textId"
        assert db.execute(texts).fetchall() == [("train_step",)]
    assert "exists" in diag("export", report, "-o", target).is_one_sentence(2)
    diag("export", report, "-o", target, "--force").is_quiet_success()
    assert "nsys export" in diag("export", report, "-o", target, "--with-nsys-export").is_one_sentence(2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["inputs", "run.sqlite"]
    assert source(diag("report", target, "--format", "json").is_quiet_success())["events_read"] == 300


def test_an_export_of_a_damaged_report_says_so(diag: Command, report: Path, tmp_path: Path) -> None:
    ran = diag("export", cut(report, 0.6), "-o", tmp_path / "run.sqlite")
    assert (ran.status, ran.out) == (0, "")
    assert "is damaged" in ran.err
    assert "what is whole of it" in ran.err


def test_the_way_through_nsys_says_what_else_there_is(diag: Command, report: Path) -> None:
    said = diag("report", report, "--with-nsys-export", env=NO_NSYS).is_one_sentence(3)
    assert "leave out --with-nsys-export" in said


def test_reports_that_hold_nothing_or_nothing_known(diag: Command, report: Path) -> None:
    for events in ([], [{1: 7}] * 9, [{1: 7, 150: {1: 1}}] * 9):
        report.write_bytes(Report(events).content())
        ran = diag("report", report, "--format", "json")
        assert ran.status == 4
        told = json.loads(ran.out)
        assert source(ran.out)["events_declared"] == len(events)
        assert not told["findings"]


@pytest.mark.parametrize("limit", [0, 30_000, 100_000])
def test_no_room_for_what_it_becomes(limit: int, diag: Command, report: Path, tmp_path: Path) -> None:
    report.write_bytes(Report(steps(20_000), strings=[b"train_step"]).content())
    before = snapshot(tmp_path)
    ran = diag("report", report, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert "damaged" not in ran.is_one_sentence(3)
    ran = diag(
        "export",
        *(report, "-o", tmp_path / "x.sqlite"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert "Free some space" in ran.is_one_sentence(3)
    assert not diag.leftovers()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("megabytes", [450, 600, 900])
def test_want_of_memory_is_one_sentence_or_none(megabytes: int, diag: Command, report: Path) -> None:
    report.write_bytes(Report(steps(50_000), strings=[b"train_step"]).content())
    limit = megabytes << 20
    ran = diag("report", report, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    if ran.status != 0:
        assert "damaged" not in ran.is_one_sentence(3)
    assert not diag.leftovers()

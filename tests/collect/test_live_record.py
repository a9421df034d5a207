"""Recording what is watched: exact, as it goes, and whatever ends it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from diag.collect import live_record
from diag.collect.live_record import Recorder
from diag.errors import StorageError, UsageError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.live_runs import live_runs
from diag.model.live import GpuReading
from diag.model.live_run import NS_PER_S
from diag.render.text import render_text
from diag.rules import thresholds
from diag.rules.analysis import analyse
from diag.rules.finding import Answer, CannotTell, Finding
from diag.rules.live import key_of
from diag.rules.running import about_live
from diag.store.case import Case
from tests.builders.live import PID, device, process, thread, watched
from tests.rules.test_live_clocks import held
from tests.rules.test_live_errors import failing
from tests.rules.test_live_loader import loading
from tests.rules.test_live_stacks import locked


@contextmanager
def recorded(path: Path) -> Iterator[Case]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        yield case


def test_snapshots_come_back_as_they_were(tmp_path: Path) -> None:
    made = loading()
    with recorded(made.write(tmp_path / "run.diag")) as case:
        (run,) = live_runs(case)
        (source,) = case.sources
    assert msgspec.json.encode(run.snapshots) == msgspec.json.encode(made.snapshots)
    assert (run.pid, run.source, source.kind) == (PID, source.id, "live")
    assert source.capabilities == {"live_snapshot": 21, "live_stack": 5}
    assert (source.capture_start_ns, source.capture_end_ns) == made.run.window
    assert not source.has_timeline


@pytest.mark.parametrize("made", [loading(), held("sw_thermal_slowdown"), watched(failing), locked()])
def test_a_record_is_judged_like_what_was_seen(made: watched, tmp_path: Path) -> None:  # type: ignore[valid-type]
    seen = about_live(made.run, thresholds.load())  # type: ignore[attr-defined]
    with recorded(made.write(tmp_path / "run.diag")) as case:  # type: ignore[attr-defined]
        (run,) = live_runs(case)
        report = analyse(case)
        again = about_live(run, thresholds.load())
    assert sorted(map(said, again)) == sorted(map(said, seen))
    assert {finding.id for finding in report.findings} == {each.id for each in again if isinstance(each, Finding)}
    assert report.verdict.finding_id == report.findings[0].id
    assert "watched from outside" in report.verdict.summary


def said(answer: Answer) -> str:
    """All of it but the SQL, which there is none of before there is a case."""
    told = ""
    if isinstance(answer, Finding):
        evidence = [(each.label, each.value, each.unit, each.formula) for each in answer.evidence]
        told = f"{answer.title} {answer.claim} {answer.share} {answer.severity} {evidence} {answer.next}"
    if isinstance(answer, CannotTell):
        told = answer.because
    return f"{type(answer).__name__} {key_of(answer)} {told}"


def test_without_a_case_there_is_no_sql() -> None:
    findings = [each for each in about_live(loading().run, thresholds.load()) if isinstance(each, Finding)]
    assert findings
    assert all(evidence.sql is None for finding in findings for evidence in finding.evidence)


def test_what_a_device_does_is_a_series_with_a_unit(tmp_path: Path) -> None:
    def gpu(at: int) -> GpuReading:
        return device(power_w=100.0 + at, nvlink_rx_bytes=1000 * at * at)

    with recorded(watched(gpu).write(tmp_path / "run.diag")) as case:
        rows = case.db.execute(_SERIES).fetchall()
        views = [len(case.rows(f"SELECT * FROM {view}")) for view in ("live_gpu", "live_process", "live_thread")]
        assert case.value("SELECT name FROM device") == "NVIDIA H200"
    series = {(name, unit): (count, most) for name, unit, count, most in rows}
    assert series["Power", "W"] == (21, 120.0)
    assert series["NVLink into the GPU", "bytes/s"] == (20, 1000.0 * (20 * 20 - 19 * 19))  # a rate takes two snapshots
    assert views == [21, 21, 21]


_SERIES = """
    SELECT n.text, s.unit, COUNT(*), MAX(c.value)
      FROM counter c JOIN counter_series s ON s.id = c.series_id JOIN name n ON n.id = s.name_id
     WHERE s.device = 0
     GROUP BY s.id
"""


def test_what_exists_is_never_replaced(tmp_path: Path) -> None:
    path = loading().write(tmp_path / "run.diag")
    before = path.read_bytes()
    for target in (path, tmp_path, tmp_path / "nowhere" / "run.diag"):
        with pytest.raises(UsageError, match="--record"):
            Recorder(target, pid=None, period_ns=NS_PER_S)
    assert path.read_bytes() == before


def test_an_empty_record_is_a_case(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.diag", pid=None, period_ns=NS_PER_S):
        pass
    with recorded(tmp_path / "run.diag") as case:
        report = analyse(case)
    assert not report.findings
    assert all("too few snapshots" in answer.because for answer in report.cannot_tell)


def test_a_record_ends_when_it_is_as_long_as_it_may_be(tmp_path: Path) -> None:
    made = watched()
    with Recorder(tmp_path / "run.diag", pid=PID, period_ns=NS_PER_S, most_bytes=10_000) as recorder:
        for snapshot in made.snapshots:
            recorder.add(snapshot)
        assert recorder.is_full
    with recorded(tmp_path / "run.diag") as case:
        assert 0 < case.sources[0].capabilities["live_snapshot"] < 21  # type: ignore[operator]
        (note,) = case.notes(1)
    assert re.fullmatch(r"The record ends here: it holds \d\.\d kB, as much as it may\.", note)


def test_a_full_disk_is_one_sentence_and_leaves_what_was_written(tmp_path: Path) -> None:
    made = watched(seconds=600)
    with (  # noqa: PT012
        pytest.raises(StorageError, match=r"run\.diag ends after \d+ snapshots, which it still holds") as error,
        Recorder(tmp_path / "run.diag", pid=PID, period_ns=NS_PER_S) as recorder,
    ):
        pages = recorder._case.value("PRAGMA page_count")
        recorder._case.db.execute(f"PRAGMA max_page_count = {pages + 20}")
        for snapshot in made.snapshots:
            recorder.add(snapshot)
    assert "\n" not in str(error.value)
    with recorded(tmp_path / "run.diag") as case:
        (run,) = live_runs(case)
    assert f"after {len(run.snapshots)} snapshots" in str(error.value)
    assert run.snapshots[-1].time_ns == made.snapshots[len(run.snapshots) - 1].time_ns


_RECORD = """
import sys
from pathlib import Path
from diag.collect.live_record import Recorder
from tests.builders.live import watched
from tests.collect.test_live_record import interrupted_in

with Recorder(Path(sys.argv[1]), pid=100, period_ns=10**9) as recorder:
    for number, snapshot in enumerate(watched(seconds=60).snapshots):
        if number == 40:
            interrupted_in(recorder, sys.argv[2])
        recorder.add(snapshot)
"""


def interrupted_in(recorder: Recorder, where: str) -> None:
    """Stands still there, for whoever waits to kill it."""

    def stand_still(*_: object) -> None:
        print("here", flush=True)
        sys.stdin.read()

    if where == "between":
        stand_still()
    recorder._case.db.execute("PRAGMA cache_size = 1")  # so that a transaction is in the file before it is committed
    recorder._tell = stand_still  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("where", ["between", "commit"])
def test_killed_at_any_moment_it_holds_what_was_committed(where: str, tmp_path: Path) -> None:
    path = tmp_path / "run.diag"
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", _RECORD, str(path), where], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        child.send_signal(signal.SIGKILL)
    with recorded(path) as case:
        (run,) = live_runs(case)
        assert len(run.snapshots) == 36  # the first at once, then every five seconds
        assert case.sources[0].capabilities["live_snapshot"] == 36
        assert analyse(case).live_devices[0].snapshots == 36


HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "<script>alert(1)</script>",
    "a\x00b",
    "caf\udce9",
    "\u202eevil",
    "x" * 100_000,
    "a\nb",
)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_may_hold_anything(name: str, tmp_path: Path) -> None:
    made = watched(
        lambda _: device(name=name, uuid=name, resident_pct=20.0, untold={"xids": name}),
        lambda at: [process(at, PID, thread(at, cores=0.9, name=name), name=name)],
        gpus=name,
    )
    with recorded(made.write(tmp_path / "run.diag")) as case:
        text = render_text(analyse(case))
    assert "waits for the host" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert text.encode()
    assert len(text) < 50_000


@pytest.mark.parametrize(("gpus", "ranks", "threads", "most_mb"), [(1, 1, 40, 35), (8, 8, 150, 700)])
def test_an_hour_takes_as_much_as_is_said(gpus: int, ranks: int, threads: int, most_mb: int, tmp_path: Path) -> None:
    def size_bytes(seconds: int) -> int:
        made = watched(
            lambda _: [device(index=i, uuid=f"GPU-{i}") for i in range(gpus)],
            lambda at: [
                process(at, PID + i, *(thread(at, PID + i + 100 * t) for t in range(threads))) for i in range(ranks)
            ],
            seconds=seconds,
        )
        return made.write(tmp_path / f"{seconds}.diag").stat().st_size

    assert (size_bytes(70) - size_bytes(10)) * 60 < most_mb * 1e6


def test_a_mig_instance_is_no_other_device(tmp_path: Path) -> None:
    part = replace(device(), uuid="MIG-1", parent_uuid="GPU-0", mig_profile="1g.18gb", resident_pct=20.0)
    with recorded(watched(lambda _: [device(), part]).write(tmp_path / "run.diag")) as case:
        report = analyse(case)
        names = {row["text"] for row in case.rows("SELECT text FROM name")}
    assert [row.mig_profile for row in report.live_devices] == [None, "1g.18gb"]
    assert "Power (MIG 1g.18gb MIG-1)" in names
    assert len({finding.id for finding in report.findings}) == len(report.findings)


def test_an_interrupt_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = watched(seconds=8)
    with (  # noqa: PT012
        pytest.raises(KeyboardInterrupt),
        Recorder(tmp_path / "run.diag", pid=PID, period_ns=NS_PER_S) as recorder,
        monkeypatch.context() as changed,
    ):
        changed.setattr(recorder, "_tell", _interrupt)
        for snapshot in made.snapshots:
            recorder.add(snapshot)
    with recorded(tmp_path / "run.diag") as case:
        (run,) = live_runs(case)
        orphans = "SELECT COUNT(*) FROM counter WHERE series_id NOT IN (SELECT id FROM counter_series)"
        assert case.value(orphans) == 0
        assert case.sources[0].capabilities["live_snapshot"] == len(run.snapshots) == 1


def _interrupt(_: str | None) -> None:
    raise KeyboardInterrupt


def test_it_commits_as_it_goes(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.diag", pid=PID, period_ns=NS_PER_S) as recorder:
        for snapshot in watched(seconds=live_record.COMMIT_NS // NS_PER_S + 1).snapshots:
            recorder.add(snapshot)
        with recorded(tmp_path / "run.diag") as reader:  # as it is now, whatever is added while it is read
            for snapshot in watched(seconds=20).snapshots[live_record.COMMIT_NS // NS_PER_S + 2 :]:
                recorder.add(snapshot)
            assert reader.value("SELECT COUNT(*) FROM live_snapshot") == live_record.COMMIT_NS // NS_PER_S + 1

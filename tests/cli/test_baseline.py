"""`diag report --baseline` as continuous integration runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.nsys_export import NsysExport
from tests.cli.conftest import Command


def run(path: Path, pid: int, gap: int, *, pageable: bool = False) -> Path:
    """Forty kernels of 400 ns that the host launches late by `gap` ns each."""
    export = NsysExport()
    main = export.process(pid).thread()
    gpu = main.process.gpu(0)
    step = 500 + gap
    for i in range(40):
        main.launch(gpu, called=step * i + gap, start=step * i + gap + 100, end=step * i + gap + 500)
        if pageable:
            at = step * i + 50
            gpu.copy(at, at + gap // 2, 4096, memory=("Pageable", "Device"))
    return export.write(path)


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return run(tmp_path / "main.sqlite", pid=100, gap=300)


def test_a_run_like_the_baseline_does_not_fail(diag: Command, main: Path, tmp_path: Path) -> None:
    """Whatever the baseline is: a JSON report, a case, or the trace itself; process ids differ."""
    again = run(tmp_path / "again.sqlite", pid=4_242, gap=305)
    assert diag("report", again, "--fail-on", "warning").status == 1
    (tmp_path / "main.json").write_text(diag("report", main, "--format", "json").out)
    diag("report", main, "-o", tmp_path / "main.diag").is_quiet_success()
    for earlier in ("main.json", "main.diag", "main.sqlite"):
        words = ("--baseline", tmp_path / earlier, "--fail-on", "warning", "--format", "json")
        document = json.loads(diag("report", again, *words).is_quiet_success())
        assert {finding["standing"] for finding in document["findings"]} == {"known"}
        change = {"source": 1, "process": 4_242, "device": 0, "before_ns": 31_600, "window_ns": 31_795}
        named = {"path": str(tmp_path / earlier), "margin": 0.02}
        assert document["baseline"] == {**named, "gone": [], "windows": [change]}


def test_what_is_new_or_worse_fails(diag: Command, main: Path, tmp_path: Path) -> None:
    worse = run(tmp_path / "worse.sqlite", pid=1, gap=500)
    ran = diag("report", worse, "--baseline", main, "--fail-on", "warning")
    assert (ran.status, ran.err) == (1, "diag: 1 new or worse finding at or above warning.\n")
    assert "worse: GPU starved" in ran.out
    assert diag("report", worse, "--baseline", main, "--fail-on", "warning", "--baseline-margin", "0.5").status == 0
    new = run(tmp_path / "new.sqlite", pid=1, gap=300, pageable=True)
    ran = diag("report", new, "--baseline", main, "--fail-on", "warning")
    assert ran.status == 1
    assert "new: " in ran.out


def test_what_is_better_does_not_fail(diag: Command, main: Path, tmp_path: Path) -> None:
    better = run(tmp_path / "better.sqlite", pid=1, gap=5)
    shown = diag("report", better, "--baseline", main, "--fail-on", "warning").is_quiet_success()
    assert " 0 worse, " in " ".join(shown.split())
    assert "Window 31.6 µs → 20.1 µs (−36 %)" in shown


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("gone.json", None, 3),
        ("empty.json", b"", 3),
        ("other.json", b'{"schema": "diag.report/9", "findings": []}', 3),
        ("list.json", b"[1, 2]", 3),
        ("notes.txt", b"nothing", 3),
    ],
)
def test_a_baseline_that_is_none(
    name: str, content: bytes | None, status: int, diag: Command, main: Path, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert name in diag("report", main, "--baseline", tmp_path / name).is_one_sentence(status)


def test_wrong_words(diag: Command, main: Path) -> None:
    assert "--baseline" in diag("report", main, "--baseline-margin", "0.1").is_one_sentence(2)
    assert diag("report", main, "--baseline", main, "--baseline-margin", "2").status == 2

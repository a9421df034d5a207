"""The plug-in as it is installed: a log is known and read, and the rule fires, is clear, and cannot tell.

The logs are synthetic: made here, line by line, in the format that nvidia-smi prints.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules import thresholds
from diag.rules.analysis import analyse
from diag.rules.engine import trace_rule
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

COLUMNS = ("utilization.gpu [%]", "clocks.current.sm [MHz]", "clocks.max.sm [MHz]")
FULL, HALF, IDLE = ("97 %", "1980 MHz", "1980 MHz"), ("97 %", "990 MHz", "1980 MHz"), ("0 %", "345 MHz", "1980 MHz")


def log(folder: Path, *rows: tuple[str, ...], columns: tuple[str, ...] = COLUMNS) -> Path:
    """A row each second, of GPU 0."""
    start = datetime(2026, 3, 1, 12)  # noqa: DTZ001
    times = (f"{start + timedelta(seconds=at):%Y/%m/%d %H:%M:%S.000}" for at in range(len(rows)))
    lines = [", ".join((time, "0", *row)) for time, row in zip(times, rows, strict=True)]
    path = folder / "gpus.csv"
    path.write_text("\n".join([", ".join(("timestamp", "index", *columns)), *lines, ""]))
    return path


def said(path: Path) -> list[Answer]:
    """What the rule says of a log."""
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        report = analyse(case)
    answers: list[Answer] = [*report.findings, *report.clear, *report.cannot_tell]
    return [answer for answer in answers if answer.rule == "smi.clock"]


def test_a_log_is_known_by_its_header(tmp_path: Path) -> None:
    assert detect(log(tmp_path, FULL)) == "smi-log"


def test_all_columns_become_series_and_what_is_damaged_is_counted(tmp_path: Path) -> None:
    path = log(tmp_path, FULL, ("[N/A]", "1980 MHz", "1980 MHz"))
    with path.open("a") as file:
        file.write("2026/03/01 12:00:02.000, 0, 9")
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (source,) = case.sources
        assert source.capabilities == {"smi-log": 5}
        assert case.notes(source.id) == ["1 rows are damaged and were left out."]
        series = case.rows("SELECT n.text, s.unit FROM counter_series s JOIN name n ON n.id = s.name_id ORDER BY s.id")
        assert [f"{text} [{unit}]" for text, unit in series] == list(COLUMNS)
        ((first, last),) = case.rows("SELECT MIN(time_ns), MAX(time_ns) FROM counter")
        assert last - first == 10**9


def test_a_log_of_nothing_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nvidia-smi --query-gpu="):
        said(log(tmp_path))


def test_a_low_clock_fires(tmp_path: Path) -> None:
    (finding,) = said(log(tmp_path, *[FULL] * 10, *[HALF] * 10))
    assert isinstance(finding, Finding)
    assert finding.share == 0.5
    assert finding.recoverable_ns == 5 * 10**9  # ten seconds at half the clock
    figures = {evidence.label: evidence.value for evidence in finding.evidence}
    assert figures["SM clock while slow"] == 990e6
    assert figures["slow samples"] == 10


def test_a_high_clock_is_clear_and_so_is_a_low_one_of_a_gpu_that_idles(tmp_path: Path) -> None:
    (answer,) = said(log(tmp_path, *[FULL] * 10, *[IDLE] * 10))
    assert isinstance(answer, Clear)


def test_without_the_highest_clock_nobody_can_tell(tmp_path: Path) -> None:
    rows = [row[:2] for row in [HALF] * 20]
    (answer,) = said(log(tmp_path, *rows, columns=COLUMNS[:2]))
    assert isinstance(answer, CannotTell)
    assert "lacks one of" in answer.because


def test_a_gpu_that_is_hardly_busy_tells_nothing_about_its_clock(tmp_path: Path) -> None:
    (answer,) = said(log(tmp_path, *[HALF] * 9, *[IDLE] * 20))
    assert isinstance(answer, CannotTell)
    assert "busy in 9 samples" in answer.because


def test_of_a_part_of_a_timeline_a_log_tells_nothing(tmp_path: Path) -> None:
    """The rule is asked itself here: what it raises is seen."""
    with open_inputs([log(tmp_path, *[HALF] * 20)], ImportOptions(use_cache=False)) as case:
        trace = Trace(case, case.sources[0], scope=Intervals.empty())
        (answer,) = trace_rule("smi.clock").decide(trace, thresholds.load()["smi.clock"])
    assert isinstance(answer, CannotTell)
    assert "a log has none" in answer.because

"""A report and what ncu prints of it give the same figures, to the last digit that was printed."""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from diag.ingest.detect import detect
from diag.ingest.launch_records import LaunchRecord, RuleResult, Value
from diag.ingest.launches import opened
from diag.ingest.ncu_output import csv_pages, text_page
from diag.ingest.ncu_output.labels import metric_of
from diag.ingest.ncu_output.lines import lines_of
from diag.ingest.ncu_output.numbers import Decimal
from diag.ingest.ncu_output.printed import Figure, Printed
from diag.ingest.ncu_output.rows import Losses
from diag.ingest.ncu_output.units import scale_of
from tests.builders.printable_report import REPORT
from tests.builders.printed_pages import FOLDER, NCU, OTHERS, PAGES, locale_of, printed

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
REAL = sorted((Path(REPORTS) / "ncu").glob("*.ncu-rep")) if REPORTS else []

COMPARED = [*PAGES, "instances.csv", "instances.txt", "rule-details.txt", "german-details.csv", "german-raw.txt"]

without_ncu = pytest.mark.skipif(NCU is None, reason="no ncu is installed")
without_reports = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> list[LaunchRecord]:
    return _launches(REPORT.write(tmp_path_factory.mktemp("report") / "synthetic.ncu-rep"))


@pytest.mark.parametrize("name", COMPARED)
def test_a_synthetic_report(name: str, synthetic: Sequence[LaunchRecord]) -> None:
    _assert_same(synthetic, FOLDER / name, "," if name.startswith("german-") else ".")


@without_ncu
@pytest.mark.parametrize("name", [*PAGES, *(name for name in OTHERS if not name.startswith("german-"))])
def test_ncu_still_prints_what_is_kept(name: str, tmp_path: Path) -> None:
    report = REPORT.write(tmp_path / "synthetic.ncu-rep")
    assert printed(report, {**PAGES, **OTHERS}[name], locale_of(name)) == (FOLDER / name).read_bytes()


@without_ncu
@without_reports
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("report", REAL, ids=lambda report: report.stem)
def test_a_real_report(report: Path, name: str, tmp_path: Path) -> None:
    page = tmp_path / name
    try:
        page.write_bytes(printed(report, PAGES[name]))
    except subprocess.CalledProcessError:
        pytest.skip("the report is newer than the installed ncu")
    _assert_same(_launches(report), page, ".")


def _launches(path: Path) -> list[LaunchRecord]:
    return list(opened(path, detect(path)).launches)


# ---- comparing -----------------------------------------------------------------------------------------------------


def _assert_same(reported: Sequence[LaunchRecord], page: Path, mark: Decimal) -> None:
    read, words = _launches(page), _printed(page)
    assert len(reported) == len(read) == len(words)
    for launch, other, word in zip(reported, read, words, strict=True):
        is_raw = all(figure.section is None for figure in word.figures)
        _assert_same_identity(launch, other, is_raw)
        _assert_same_metrics(launch, other, _by_metric(word.figures), mark)
        if is_raw:
            assert _named(launch) <= {metric.name for metric in other.metrics}
        else:
            assert _messages(launch.rules) == _messages(other.rules)


def _printed(page: Path) -> list[Printed]:
    lines = lines_of(page)
    if page.suffix == ".csv":
        return [launch for _, launch in csv_pages.launches(lines, Losses())]
    return list(text_page.launches(lines))


def _assert_same_identity(launch: LaunchRecord, other: LaunchRecord, is_raw: bool) -> None:
    assert (launch.kind, launch.name, launch.short_name) == (other.kind, other.name, other.short_name)
    assert (launch.pid, launch.context, launch.stream) == (other.pid, other.context, other.stream)
    assert set(launch.ranges) == set(other.ranges)
    if is_raw and any(metric.name == "launch__grid_dim_x" for metric in launch.metrics):
        assert (launch.device, launch.grid, launch.block) == (other.device, other.grid, other.block)


def _assert_same_metrics(launch: LaunchRecord, other: LaunchRecord, words: Mapping[str, Figure], mark: Decimal) -> None:
    values = {metric.name: metric for metric in launch.metrics}
    for metric in other.metrics:
        figure = words[metric.name]
        if metric_of(figure.section, figure.name) is None:
            continue
        assert values[metric.name].unit in ("", metric.unit)  # a report does not say it
        same = _same_as(figure, mark)
        assert same(values[metric.name].value, metric.value), (figure, values[metric.name].value, metric.value)
        if metric.instances:
            parts = [part.value for part in values[metric.name].instances]
            assert [part.value for part in metric.instances] == parts


def _by_metric(figures: Sequence[Figure]) -> Mapping[str, Figure]:
    return {
        metric_of(figure.section, figure.name) or figure.name: figure for figure in reversed(figures) if figure.text
    }


def _same_as(figure: Figure, mark: Decimal) -> Callable[[Value | None, Value | None], bool]:
    """Whether two values are the same within half of the last digit of what was printed of one."""
    digits = figure.text.rpartition("." if "." in figure.text and mark != "," else mark)[2]
    n_decimals = 0 if digits == figure.text or "(" in digits else len(digits)
    half = 0.5 * 10.0 ** (scale_of(figure.unit).exponent - n_decimals)

    def same(value: Value | None, other: Value | None) -> bool:
        if isinstance(value, float) and math.isnan(value):
            value = None
        if value is None:  # ncu prints NaN as 0 where it scales values of the raw page (2022.3)
            return other is None or (other == 0 and figure.text == "0.000000")
        if other is None and figure.text == "0.000000":  # of a launch that was not measured, they mean nothing
            return value == 0
        if isinstance(value, str) or isinstance(other, str) or other is None:
            return value == other
        return abs(value - other) <= half + 4 * math.ulp(float(value))

    return same


def _named(launch: LaunchRecord) -> set[str]:
    """Metrics with a value. What stands for several is not printed."""
    names = {metric.name for metric in launch.metrics if metric.value is not None}
    return {name for name in names if not name.startswith(("breakdown:", "group:", "regex:"))}


def _messages(rules: Sequence[RuleResult]) -> list[str]:
    """All letters that were said. The text page does not tell which rule said what, and breaks long words."""
    said = " ".join(rule.message for rule in rules)
    return sorted(_LINK.sub(_as_printed, said).replace(" ", "").replace("\n", ""))


_LINK = re.compile("@(?P<kind>[a-z]+):(?P<first>[^:@]*):(?P<second>[^@]*)@")


def _as_printed(link: re.Match[str]) -> str:
    """Reports have links in messages, of which ncu prints the text, and of those out of the report the address."""
    return f"{link['first']} ({link['second']})" if link["kind"] == "url" else link["second"]


def test_figures_that_differ_are_told_apart() -> None:
    same = _same_as(Figure(None, "dram__bytes.sum", "Mbyte", "123.46"), ".")
    assert same(123_456_789, 123_460_000.0)
    assert not same(123_454_999, 123_460_000.0)
    assert not same("123.46", 123_460_000.0)

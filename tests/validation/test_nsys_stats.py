"""Our numbers against those of `nsys stats`, NVIDIA's own summaries, on every real report that it reads.

Both read the same file, `nsys stats` a private copy of it. What it prints is compared row by row: total, count, median,
least and most of each name. Where the two mean different things, the difference is named and worked out here, so that
the rest is still compared: nothing is left out silently. The table that the last test prints is in docs/validation.md.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_tool import find_nsys
from diag.rules.analysis import analyse
from diag.store.case import Case

REAL = os.environ.get("DIAG_REAL_REPORTS")
FILES = (
    "a100-saxpy-schema2.9.sqlite",
    "h100x2-offload.sqlite",
    "h200-fuser-2024.6.sqlite",
    "h200-fuser-matmul.sqlite",
    "jetson-darknet.qdrep",
    "t4-power-iteration.sqlite",
    "titanrtx-nvtx-22k.sqlite",
    "titanrtx-nvtx-only.sqlite",
    "v100-julia-one-kernel.sqlite",
)
REPORTS = ("gpukernsum", "gpumemtimesum", "gpumemsizesum", "cudaapisum", "nvtxsum", "osrtsum")

NSYS = find_nsys()
pytestmark = [
    pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder of real reports"),
    pytest.mark.skipif(NSYS is None, reason="nsys is not installed: there is nothing to compare with"),
]


@dataclass(frozen=True, order=True)
class Row:
    """One line of a summary: of durations in ns, or of sizes in bytes."""

    name: str
    total: int
    count: int
    median: float
    least: int
    most: int


@dataclass(frozen=True)
class Agreement:
    """What one report says of one file: `explained` names why some of our rows were changed before they were equal."""

    theirs: list[Row]
    ours: list[Row]
    explained: str = ""


# ---- what nsys stats says ------------------------------------------------------------------------------------------


@cache
def nsys_stats(export: Path) -> Mapping[str, list[Row] | str]:
    """The rows of each report, or the sentence with which it was skipped."""
    assert NSYS is not None
    with TemporaryDirectory() as folder:
        private = Path(folder, export.name)
        shutil.copyfile(export, private)
        said = subprocess.run(
            [NSYS.path, "stats", "--report", ",".join(REPORTS), "--format", "csv:mem=B",
             "--output", ",".join([f"{folder}/out"] * len(REPORTS)), private],
            capture_output=True, text=True, check=True, timeout=300,
        ).stdout  # fmt: skip
        skipped = {match[1]: match[2] for match in re.finditer(r"/(\w+)\.py\].*?(?:PROCESSED|SKIPPED: (.*))?\n", said)}
        return {report: skipped.get(report) or _rows(Path(folder, f"out_{report}.csv")) for report in REPORTS}


def _rows(table: Path) -> list[Row]:
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return sorted(map(_row, csv.DictReader(file)))


def _row(cells: dict[str, str]) -> Row:
    values = {re.sub(r" \(\w+\)", "", title): cell for title, cell in cells.items()}
    name = next(values[title] for title in ("Operation", "Range", "Name") if title in values)
    if "GridXYZ" in values:
        name = f"{name} {_triple(values['GridXYZ'])} {_triple(values['BlockXYZ'])}"
    if "Style" in values:
        name = f"{values['Style']} {name}"
    count = next(values[title] for title in ("Count", "Instances", "Num Calls") if title in values)
    total = values.get("Total Time") or values["Total"]
    return Row(name, int(total), int(count), float(values["Med"]), int(values["Min"]), int(values["Max"]))


def _triple(text: str) -> str:
    return ",".join(text.split())


# ---- what we say ---------------------------------------------------------------------------------------------------


def grouped(named: Iterable[tuple[str, int]]) -> list[Row]:
    """A row for each group of (name, value)."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for name, value in named:
        groups[name].append(value)
    return sorted(
        Row(name, sum(values), len(values), float(statistics.median(values)), min(values), max(values))
        for name, values in groups.items()
    )


def kernels(case: Case) -> tuple[list[Row], str]:
    sql = """
        SELECT n.text || printf(' %d,%d,%d %d,%d,%d', grid_x, grid_y, grid_z, block_x, block_y, block_z),
               end_ns - start_ns
          FROM gpu_op g JOIN name n ON n.id = g.name_id
         WHERE g.kind = 'kernel'
    """
    return grouped(case.db.execute(sql)), ""


_OPERATIONS = {
    "h2d": "[CUDA memcpy HtoD]",
    "d2h": "[CUDA memcpy DtoH]",
    "d2d": "[CUDA memcpy DtoD]",
    "h2h": "[CUDA memcpy HtoH]",
    "p2p": "[CUDA memcpy PtoP]",
    None: "[CUDA memset]",
}


def _memory(case: Case, measure: str) -> list[Row]:
    sql = f"SELECT copy_kind, {measure} FROM gpu_op WHERE kind IN ('copy', 'memset')"
    return grouped((_OPERATIONS[kind], value) for kind, value in case.db.execute(sql))


def memory_by_time(case: Case) -> tuple[list[Row], str]:
    return _memory(case, "end_ns - start_ns"), ""


def memory_by_size(case: Case) -> tuple[list[Row], str]:
    return _memory(case, "bytes"), ""


def api_calls(case: Case) -> tuple[list[Row], str]:
    """nsys groups by the versioned name and then leaves versions of four digits out of what it prints."""
    sql = "SELECT n.text, end_ns - start_ns FROM api_call c JOIN name n ON n.id = c.name_id"
    versioned = grouped(case.db.execute(sql))
    short = [Row(re.sub(r"_v\d{4}$", "", row.name), *_figures(row)) for row in versioned]
    return sorted(short), ""


def _figures(row: Row) -> tuple[int, int, float, int, int]:
    return row.total, row.count, row.median, row.least, row.most


_STYLES = {"nvtx": "PushPop", "process": "StartEnd"}


def nvtx_ranges(case: Case) -> tuple[list[Row], str]:
    """A range that was still open has no duration for us; nsys lets it end with the last NVTX event."""
    sql = """
        SELECT r.kind, d.text, n.text, r.end_ns IS NULL,
               COALESCE(r.end_ns, (SELECT MAX(COALESCE(end_ns, start_ns)) FROM cpu_range)) - r.start_ns
          FROM cpu_range r JOIN name n ON n.id = r.name_id LEFT JOIN name d ON d.id = r.domain_id
         WHERE r.kind IN ('nvtx', 'process')
    """
    ranges = list(case.db.execute(sql))
    n_open = sum(is_open for *_, is_open, _ in ranges)
    named = ((f"{_STYLES[kind]} {domain}:{text}" if domain else f"{_STYLES[kind]} {text}", ns)
             for kind, domain, text, _, ns in ranges)  # fmt: skip
    return grouped(named), f"{n_open} open ranges end with the last event for nsys, and never for us" * bool(n_open)


def os_calls(case: Case) -> tuple[list[Row], str]:
    """Both leave out the events that only mark where tracing started and finished."""
    return grouped(case.db.execute("SELECT n.text, end_ns - start_ns FROM os_call JOIN name n ON n.id = name_id")), ""


OURS: Mapping[str, Callable[[Case], tuple[list[Row], str]]] = {
    "gpukernsum": kernels,
    "gpumemtimesum": memory_by_time,
    "gpumemsizesum": memory_by_size,
    "cudaapisum": api_calls,
    "nvtxsum": nvtx_ranges,
    "osrtsum": os_calls,
}


# ---- both ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Each file as an export; reports are exported by the nsys that is installed."""

    @cache
    def export_of(file: str) -> Path:
        original = Path(str(REAL), "nsys", file)
        if original.suffix == ".sqlite":
            return original
        assert NSYS is not None
        folder = tmp_path_factory.mktemp("exported")
        private = shutil.copyfile(original, folder / file)
        export = folder / f"{original.stem}.sqlite"
        command: list[str | Path] = [NSYS.path, "export", "--type", "sqlite", "--output", export, private]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        return export

    return export_of


def agreements(export: Path) -> Iterator[tuple[str, Agreement]]:
    theirs = nsys_stats(export)
    with open_inputs([export], ImportOptions(use_cache=False)) as case:
        for report in REPORTS:
            rows, explained = OURS[report](case)
            said = theirs[report]
            if isinstance(said, str):
                assert "does not contain" in said, said
                said = []
            yield report, Agreement(said, rows, explained)


@pytest.mark.parametrize("file", FILES)
def test_every_row_is_equal(file: str, exports: Callable[[str], Path]) -> None:
    for report, agreement in agreements(exports(file)):
        assert agreement.ours == agreement.theirs, report


@pytest.mark.parametrize("file", FILES)
def test_the_kernels_of_a_report_add_up_to_them(file: str, exports: Callable[[str], Path]) -> None:
    """A report groups by name alone and keeps processes and devices apart, nsys by name and launch shape."""
    theirs = nsys_stats(exports(file))["gpukernsum"]
    with open_inputs([exports(file)], ImportOptions(use_cache=False)) as case:
        ours = analyse(case).kernels
    rows = [] if isinstance(theirs, str) else theirs
    by_name: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_name[re.sub(r" [\d,]+ [\d,]+$", "", row.name)].append(row)
    assert {row.name for row in ours} == by_name.keys()
    for name, groups in by_name.items():
        of_name = [row for row in ours if row.name == name]
        assert sum(row.total_ns for row in of_name) == sum(row.total for row in groups)
        assert sum(row.count for row in of_name) == sum(row.count for row in groups)
        assert min(row.min_ns for row in of_name) == min(row.least for row in groups)
        assert max(row.max_ns for row in of_name) == max(row.most for row in groups)
        if len(of_name) == len(groups) == 1:
            assert of_name[0].median_ns == int(groups[0].median)


def test_the_table_of_the_documentation(exports: Callable[[str], Path]) -> None:
    """Prints it: `pytest -s -k documentation tests/validation/test_nsys_stats.py`."""
    lines = [f"| file | {' | '.join(REPORTS)} |", "|---" * (len(REPORTS) + 1) + "|"]
    notes: list[str] = []
    compared = 0
    for file in FILES:
        cells = []
        for report, agreement in agreements(exports(file)):
            assert agreement.ours == agreement.theirs, report
            compared += len(agreement.theirs)
            cell = f"{len(agreement.theirs)} equal" if agreement.theirs else "–"
            if agreement.explained:
                notes.append(f"{len(notes) + 1}. `{file}`, {report}: {agreement.explained}.")
                cell += f" [{len(notes)}]"
            cells.append(cell)
        lines.append(f"| `{file}` | {' | '.join(cells)} |")
    assert compared
    print("\n".join([*lines, "", f"{compared} rows in all.", "", *notes]))

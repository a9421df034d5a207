"""`diag export` as its users run it: where it writes, what it refuses, and pipes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from pyarrow import parquet

from tests import interruptible
from tests.builders.ncu_report import NcuReport
from tests.cli.conftest import DIAG, Command, small_export, snapshot
from tests.export.reading import faults, parse, read
from tests.launches.profiles import TIME, dram, vector


def test_a_trace_goes_to_a_file_or_a_pipe_with_the_same_bytes(diag: Command, export: Path, tmp_path: Path) -> None:
    before = snapshot(export.parent)
    out = tmp_path / "trace.json"
    assert diag("export", export, "-o", out).is_quiet_success() == ""
    assert diag("export", export, "-o", "-").is_quiet_success() == out.read_text()
    packed = [tmp_path / name for name in ("a.json.gz", "b.json.gz")]
    for file in packed:
        diag("export", export, "--no-cache", "-o", file, env={"PYTHONHASHSEED": "7"}).is_quiet_success()
    assert packed[0].read_bytes() == packed[1].read_bytes()
    assert read(packed[0]).document == read(out).document
    assert faults(read(out)) == []
    assert snapshot(export.parent) == before


def test_a_kept_case_is_exported_like_its_input(diag: Command, export: Path, tmp_path: Path) -> None:
    case = tmp_path / "run.diag"
    diag("report", export, "-o", case).is_quiet_success()
    assert diag("export", case, "-o", "-").out == diag("export", export, "-o", "-").out


def test_all_tables_go_to_a_folder(diag: Command, export: Path, tmp_path: Path) -> None:
    diag("export", export, "-f", "csv", "-o", tmp_path / "csv").is_quiet_success()
    diag("export", export, "-f", "parquet", "-o", tmp_path / "parquet").is_quiet_success()
    names = {file.stem for file in (tmp_path / "csv").iterdir()}
    assert {"gpu_op", "api_call", "cpu_range", "source", "name", "finding", "evidence"} <= names
    assert not names & {"report", "column_block", "track", "track_block", "sched"}
    assert {file.stem for file in (tmp_path / "parquet").iterdir()} == names
    for name in names:
        rows = list(csv.DictReader(io.StringIO((tmp_path / "csv" / f"{name}.csv").read_text(), newline="")))
        table = parquet.read_table(tmp_path / "parquet" / f"{name}.parquet")
        assert (len(rows), list(rows[0])) == (table.num_rows, table.column_names)


def test_one_table_goes_to_a_file_or_a_pipe(diag: Command, export: Path, tmp_path: Path) -> None:
    shown = diag("export", export, "-f", "csv", "--table", "gpu_op", "-o", "-").is_quiet_success()
    diag("export", export, "-f", "csv", "--table", "gpu_op", "-o", tmp_path / "ops.csv").is_quiet_success()
    assert (tmp_path / "ops.csv").read_text() == shown
    assert len(shown.splitlines()) == 42
    part = diag("export", export, "-f", "csv", "--table", "gpu_op", "-o", "-", "--window", ":10us").out
    assert len(part.splitlines()) == 11


def test_the_ending_tells_the_format_unless_it_is_named(diag: Command, export: Path, tmp_path: Path) -> None:
    table = ("--table", "gpu_op")
    diag("export", export, "-o", tmp_path / "ops.csv", *table).is_quiet_success()
    diag("export", export, "-o", tmp_path / "ops.txt", *table, "-f", "csv").is_quiet_success()
    assert (tmp_path / "ops.txt").read_bytes() == (tmp_path / "ops.csv").read_bytes()
    diag("export", export, "-o", tmp_path / "ops.Parquet", *table).is_quiet_success()
    assert parquet.read_table(tmp_path / "ops.Parquet").num_rows == 41


def test_whoever_sits_at_a_terminal_hears_what_was_written(diag: Command, export: Path, tmp_path: Path) -> None:
    def heard(*words: str | Path) -> str:
        import pty

        ours, theirs = pty.openpty()
        ran = subprocess.run([DIAG, "export", export, *words], env=diag.environment(), stderr=theirs, check=True)
        os.close(theirs)
        said = os.read(ours, 65_536).decode() if ran.returncode == 0 else ""
        os.close(ours)
        return said.rpartition("\x1b[K")[2].strip()

    assert heard("-o", tmp_path / "t.json") == f"diag: {tmp_path}/t.json: open it at https://ui.perfetto.dev"
    folder = tmp_path / "all"
    said = heard("-o", folder, "-f", "csv")
    assert said.startswith(f"diag: {folder}: {len(list(folder.iterdir()))} tables (")
    assert said.endswith(" empty ones left out).")


def test_findings_are_a_table_whatever_was_looked_at_before(diag: Command, export: Path, tmp_path: Path) -> None:
    words = ("-f", "csv", "--table", "finding", "-o", "-")
    first = diag("export", export, *words).is_quiet_success()
    diag("report", export, "--window", ":10us").is_quiet_success()
    assert diag("export", export, *words).is_quiet_success() == first
    assert diag("export", export, *words, "--window", ":10us").is_quiet_success() != first
    report = json.loads(diag("report", export, "--format", "json").out)
    rows = list(csv.DictReader(io.StringIO(first, newline="")))
    assert [row["id"] for row in rows] == [finding["id"] for finding in report["findings"]]


def test_nothing_is_replaced_unless_it_is_forced(diag: Command, export: Path, tmp_path: Path) -> None:
    """`tests/export/test_target.py` has all the cases; here, that they are asked about, and before anything is read."""
    out = tmp_path / "t.json"
    out.write_text("old")
    assert "--force" in diag("export", export, "-o", out).is_one_sentence(2)
    assert out.read_text() == "old"
    assert not diag.cases()
    diag("export", export, "-o", out, "--force").is_quiet_success()
    assert faults(read(out)) == []


def test_an_input_is_never_replaced(diag: Command, export: Path) -> None:
    before = snapshot(export.parent)
    assert "is an input" in diag("export", export.parent, "-o", export, "-f", "perfetto", "--force").is_one_sentence(2)
    assert snapshot(export.parent) == before


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["-o", "none/t.json"], "no folder"),
        (["-o", ".", "-f", "perfetto"], "is no file"),
        (["-o", "-", "-f", "csv"], "--table"),
        (["-o", "-", "-f", "parquet", "--table", "gpu_op"], "Name a file"),
        (["-o", "t.json", "--table", "gpu_op"], "--format csv"),
        (["-o", "t.txt"], ".sqlite or .svg, or add --format"),
        (["-o", "t"], ".sqlite or .svg, or add --format"),
        (["-o", "t.sqlite"], "takes one report"),
        (["-o", "t.sqlite", "--window", "1s:"], "the whole of a report"),
        (["-o", "t.svg"], "ncu --set roofline"),
        (["-o", "t.svg", "--window", "1s:"], "not for svg"),
        (["-o", "t.csv"], "-o FOLDER --format csv"),
        (["-o", "t.parquet"], "--table NAME"),
        (["-o", "t.csv", "-f", "csv", "--table", "nope"], "gpu_op"),
        (["-o", "t.json", "--window", "5"], "not a window"),
        (["-o", "t.json", "--window", "5s:"], "holds nothing"),
        (["-o", "t", "-f", "csv", "--window", "5s:"], "holds nothing"),
        (["-o", "t.json", "--max-size", "x"], "not a size"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_wrong_words_are_wrong_usage(words: list[str], hint: str, diag: Command, export: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    assert hint in diag("export", export, *words, cwd=place).is_one_sentence(2)
    assert list(place.iterdir()) == []


def test_rooflines_are_a_picture(diag: Command, tmp_path: Path) -> None:
    report = NcuReport.of({**TIME, **dram(300), **vector("f", fma=1000)}).write(tmp_path / "kernels.ncu-rep")
    shown = diag("export", report, "-f", "svg", "-o", "-").is_quiet_success()
    diag("export", report, "-o", tmp_path / "roofline.svg").is_quiet_success()
    assert (tmp_path / "roofline.svg").read_text() == shown
    assert shown.startswith("<svg ")
    assert "stencil" in shown


def test_without_a_place_to_write_it_is_wrong_usage(diag: Command, export: Path) -> None:
    ran = diag("export", export)
    assert (ran.status, ran.out) == (2, "")
    assert "--output" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(diag: Command, export: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert "Cannot write" in diag("export", export, "-o", tmp_path / "t.json").is_one_sentence(3)
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_leaves_nothing(diag: Command, export: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", 'ulimit -f 8; exec "$0" export "$1" -o "$2"', DIAG, export, tmp_path / "t.json"],
        env=diag.environment(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode != 0
    assert not list(tmp_path.glob("*.json")) + list(tmp_path.glob(".*"))


def test_an_interrupt_leaves_nothing(diag: Command, tmp_path: Path) -> None:
    large = small_export(40_000).write(tmp_path / "large.sqlite")
    (tmp_path / "out").mkdir()
    process = diag.start("export", large, "-o", tmp_path / "out/t.json")
    interruptible.wait_until(lambda: interruptible.has_open(process, ".part"), process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.decode().count("\n")) == (130, 1)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_reader_who_has_seen_enough(diag: Command, tmp_path: Path) -> None:
    export = small_export(5_000).write(tmp_path / "large.sqlite")
    for words in ([], ["-f", "csv", "--table", "gpu_op"]):
        ran = subprocess.run(
            ["sh", "-c", '"$0" "$@" | head -c 100', DIAG, "export", export, "-o", "-", *words],
            env=diag.environment(),
            capture_output=True,
            check=False,
        )
        assert (len(ran.stdout), ran.stderr) == (100, b"")


def test_a_trace_of_a_case_with_nothing_in_it(diag: Command, tmp_path: Path) -> None:
    trace = tmp_path / "empty.json"
    trace.write_text('{"traceEvents": [], "deviceProperties": []}')
    assert parse(diag("export", trace, "-o", "-").is_quiet_success()).of("X") == []


def test_what_was_exported_can_be_read_again(diag: Command, export: Path, tmp_path: Path) -> None:
    """Our own reader takes the trace for JSON of the right form, whatever it makes of it."""
    diag("export", export, "-o", tmp_path / "t.json").is_quiet_success()
    assert set(json.loads((tmp_path / "t.json").read_text())) == {"displayTimeUnit", "otherData", "traceEvents"}

"""`diag doctor`: each check says what it found and, where something is amiss, what to do."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from diag.doctor import extras, file, formats, machine
from diag.doctor.check import Check
from diag.ingest.nsys_tool import Nsys
from diag.render.checks import render_checks, render_checks_as_json
from diag.render.layout import cells
from tests.builders.nccl_tests import NcclTests, on_line
from tests.builders.ncu_report import NcuReport
from tests.builders.topology import Topology
from tests.cli.conftest import small_export

ROOT = Path(__file__).parents[2]
NSYS = Nsys(Path("/opt/nsys"), (2024, 6, 2, 225), Path("/opt/QdstrmImporter"))


def test_streams_need_the_importer() -> None:
    assert formats.streams(NSYS, {}).state == "ok"
    assert formats.streams(Nsys(Path("/opt/nsys"), (2024, 6), None), {}).state == "missing"
    absent = formats.streams(None, {})
    assert (absent.state, "QdstrmImporter" in str(absent.fix)) == ("missing", True)
    named = formats.streams(None, {"DIAG_NSYS": "/nowhere"})
    assert (named.state, "/nowhere" in named.said) == ("missing", True)


def test_the_official_reader_of_kernels_is_an_option() -> None:
    assert formats.ncu_report_package("2026.3.1", is_offered=True).said.startswith("2026.3.1; it reads them with")
    absent = formats.ncu_report_package(None, is_offered=True)
    assert (absent.state, absent.fix) == ("missing", "pip install 'gpu-diag[ncu]'")
    elsewhere = formats.ncu_report_package(None, is_offered=False)
    assert (elsewhere.state, elsewhere.fix) == ("missing", None)
    assert "Linux on x86-64 only" in elsewhere.said


def test_an_old_sqlite_or_python_or_a_missing_package_breaks_the_core() -> None:
    assert formats.exports((3, 34, 0)).state == "broken"
    assert formats.exports().state == "ok"
    assert machine.python((3, 9, 1)).state == "broken"
    assert machine.python().state == "ok"
    lacking = machine.packages(["numpy", "no-such-package"])
    assert (lacking.state, lacking.fix) == ("broken", "pip install no-such-package")
    assert machine.packages().state == "ok"


def test_a_package_that_is_an_extra_is_missing_with_its_extra() -> None:
    assert extras.stacks(Path("/usr/bin/py-spy")).state == "ok"
    assert (extras.stacks(None).state, extras.stacks(None).fix) == ("missing", "pip install 'gpu-diag[live]'")
    assert extras.pictures(has_resvg=True).state == "ok"
    svg_only = extras.pictures(has_resvg=False)
    assert (svg_only.state, svg_only.fix) == ("limited", "pip install 'gpu-diag[plots]'")


def test_the_packages_are_those_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(text.partition(">=")[0] for text in project["dependencies"]) == sorted(machine.CORE)


def test_a_cache_that_cannot_be_written_only_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DIAG_CACHE_BYTES", "1G")
    assert machine.cache().said == f"{tmp_path}/cache: 0 cases, 0 B of at most 1.1 GB"
    monkeypatch.setenv("DIAG_CACHE", "/dev/null/cache")
    assert machine.cache().state == "limited"
    monkeypatch.setenv("DIAG_CACHE_BYTES", "much")
    assert machine.cache().state == "broken"


def test_no_place_for_temporary_files_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.temporary_folder().state == "ok"
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    assert machine.temporary_folder().state == "broken"


def test_little_space_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.free_space("Disk", tmp_path / "not" / "yet").said.endswith(f"free at {tmp_path}")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10**6}))
    assert machine.free_space("Disk", tmp_path).state == "limited"


def test_a_terminal_without_utf8_is_limited() -> None:
    def terminal(encoding: str | None) -> Check:
        return machine.terminal(is_terminal=True, width=120, color=True, encoding=encoding)

    assert (terminal("UTF-8").state, terminal("ascii").state, terminal(None).state) == ("ok", "limited", "ok")
    assert machine.locale({"LANG": "C"}, "ascii").state == "limited"
    assert machine.locale({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8").said.startswith("C.UTF-8")


def test_a_gpu_is_a_fact_and_no_need(tmp_path: Path) -> None:
    assert next(check.state for check in machine.gpu(tmp_path)) == "missing"
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    assert next(iter(machine.gpu(tmp_path))).said == "nvidia0, nvidia1"


def test_files_are_called_what_they_are(tmp_path: Path) -> None:
    export = small_export().write(tmp_path / "report.sqlite")
    (tmp_path / "trace.json").write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op"}]}')
    (tmp_path / "notes.txt").write_text("nothing")
    said = file.about(export)
    assert (said.state, said.fix) == ("ok", f"Read it: diag report {export}")
    assert "an Nsight Systems export" in said.said
    assert "a PyTorch profiler trace" in file.about(tmp_path / "trace.json").said
    kernels = NcuReport.of({"sm__cycles_active.avg": 1.0}).write(tmp_path / "kernels")
    assert "an Nsight Compute report" in file.about(kernels).said
    kernels.unlink()
    assert file.about(tmp_path).said == "a folder with 1 PyTorch trace, 1 Nsight Systems export"
    unknown = file.about(tmp_path / "notes.txt")
    assert (unknown.state, unknown.said) == ("unreadable", "of a kind that diag does not know")
    assert "diag reads" in str(unknown.fix)
    assert file.about(tmp_path / "gone").said == "does not exist"


def test_every_kind_that_is_read_has_a_name(tmp_path: Path) -> None:
    """In a file's check, and in the count of a folder's files."""
    collectives = NcclTests(on_line(400e9, 20_000)).write(tmp_path / "nccl.txt")
    topology = Topology().write(tmp_path / "topo.txt")
    assert [file.about(each).said.partition(",")[0] for each in (collectives, topology)] == [
        "measured collectives", "the topology of a host",
    ]  # fmt: skip
    assert file.about(tmp_path).said == "a folder with 1 nccl-tests result, 1 topology"


def test_what_was_not_looked_at_is_not_called_good(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op"}, {"ph"')
    assert file.about(cut).said.endswith("its beginning is as it should be, and nothing else was looked at")


@pytest.mark.parametrize(
    ("text", "is_json"),
    [
        ('{"a": 1}', True),
        (" {\n}", True),
        ("[1, 2]", True),
        ('[\n  [ {"a"', True),
        ("[true]", True),
        ("[]", True),
        ("[build-system]\nrequires = []", False),
        ("[[tool.mypy.overrides]]", False),
        ("[section]\nkey = 1", False),
        ("{{ template }}", False),
    ],
)
def test_brackets_alone_make_no_json(text: str, is_json: bool, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    assert file.about(tmp_path / "file").said.startswith("JSON") == is_json


def test_a_database_of_another_kind_cannot_be_read(tmp_path: Path) -> None:
    export = small_export()
    export.then(*(f'DROP TABLE "{table}"' for table in export.rows if not table.startswith("META")))
    other = file.about(export.write(tmp_path / "other.sqlite"))
    assert other.state == "broken"
    assert "nsys export" in str(other.fix)


CHECKS = [
    Check("Inputs", "reports", "missing", "no nsys " * 30, "Install it. " * 20),
    Check("Inputs", "a\x1b[31m\nname\udce9", "ok", "fine"),
    Check("Machine", "disk", "broken", "full"),
]


@pytest.mark.parametrize("width", [40, 80])
def test_the_text_fits_and_is_safe(width: int) -> None:
    text = render_checks(CHECKS, width=width)
    assert all(cells(line) <= width and line.isprintable() for line in text.splitlines())
    assert text.startswith("Inputs\n  missing  reports: no nsys")
    assert "\x1b[33mmissing\x1b[0m" in render_checks(CHECKS, color=True)
    unreadable = [Check("Files", "a.txt", "unreadable", "of another kind"), Check("Files", "b.json", "ok", "a trace")]
    assert render_checks(unreadable) == (
        "Files\n  cannot read  a.txt: of another kind\n  ok           b.json: a trace\n"
    )


def test_the_json_is_json() -> None:
    document = json.loads(render_checks_as_json(CHECKS))
    assert document["schema"] == "diag.doctor/1"
    assert [check["state"] for check in document["checks"]] == ["missing", "ok", "broken"]
    assert document["checks"][1]["fix"] is None

"""Cases that earlier versions left behind: each opens today, and says what its trace says when it is imported today."""

from __future__ import annotations

import asyncio
import json
import lzma
import sqlite3
import tarfile
import threading
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from diag.cli.verbs import app
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.own_case import changed
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.report import Report
from diag.store.case import SCHEMA_VERSION, Case
from diag.store.experiments import Experiment, append, log_in
from diag.store.migrations import OLDEST
from diag.tui.session import Request, Session

CASES = Path(__file__).parents[1] / "data" / "cases"
KEPT = sorted(file.name.removesuffix(".diag.xz") for file in CASES.glob("schema-*.diag.xz"))

INPUTS = {
    "nsys": "nsys.sqlite",
    "training": "training.pt.trace.json.gz",
    "kernels": "kernels.csv",
    "probes": "probes.benchmark.json",
    "job": "job",
    "server": "server.log",
}

NOT_YET_CAPTURED = {"schema-1-nsys": {"memory.thrash"}}
"""Rules that were asked today and cannot tell of that case: its schema had no place for what they need."""

ASKED = AnalysisOptions()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    with tarfile.open(CASES / "inputs.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"{request.param}.diag"
    path.write_bytes(lzma.decompress((CASES / f"{request.param}.diag.xz").read_bytes()))
    return path


def report_on(path: Path) -> Report:
    with open_inputs([path], ImportOptions(use_cache=False)) as opened:
        return analyse(opened, ASKED)


@cache
def report_today(path: Path) -> Report:
    return report_on(path)


def found(report: Report) -> dict[str, object]:
    return {each.id: (each.rule, each.title, each.claim, each.share, each.recoverable_ns) for each in report.findings}


def clear(report: Report) -> set[tuple[str, object]]:
    return {(answer.rule, answer.subject) for answer in report.clear}


def test_every_earlier_schema_has_cases() -> None:
    """One that fails here is mended by what tests/data/cases/README.md says, before the schema is changed."""
    assert {int(name.split("-")[1]) for name in KEPT} == set(range(OLDEST, SCHEMA_VERSION))
    of_the_last = {name.split("-")[2] for name in KEPT if name.startswith(f"schema-{SCHEMA_VERSION - 1}-")}
    assert of_the_last == set(INPUTS)


def columns(path: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as db:
        return set(db.execute("SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"))


@pytest.mark.parametrize("case", [name for name in KEPT if name.endswith("-nsys")], indirect=True)
def test_nothing_of_an_earlier_schema_is_gone_or_renamed(case: Path, tmp_path: Path) -> None:
    Case.create(tmp_path / "today.diag").close()
    assert columns(case) <= columns(tmp_path / "today.diag")


@pytest.mark.parametrize("case", KEPT, indirect=True)
def test_it_says_what_its_trace_says_today(case: Path, inputs: Path) -> None:
    _, schema, name = case.stem.split("-")
    with closing(sqlite3.connect(case)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (int(schema),)
    before = case.read_bytes()
    then, today = report_on(case), report_today(inputs / INPUTS[name])
    assert found(then) == found(today)
    assert found(today) or name == "server"
    assert clear(then) <= clear(today)
    assert {rule for rule, _ in clear(today) - clear(then)} == NOT_YET_CAPTURED.get(case.stem, set())
    assert (then.devices, then.kernels, then.ranks) == (today.devices, today.kernels, today.ranks)
    assert then.verdict == today.verdict
    assert case.read_bytes() == before


@pytest.mark.parametrize("case", [name for name in KEPT if name.endswith("-training")], indirect=True)
def test_every_view_of_it_opens(
    case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DIAG_CEILINGS", str(tmp_path / "none"))

    def diag(*words: str | Path) -> str:
        assert not app([str(word) for word in words], standalone_mode=False)
        return capsys.readouterr().out

    n_kernels = sum(row.count for row in report_on(case).kernels)
    assert json.loads(diag("report", case, "--format", "json"))["findings"]
    counted = diag("query", case, "SELECT COUNT(*) FROM gpu_op WHERE kind = 'kernel'", "--format", "csv")
    assert counted.split()[1] == str(n_kernels)
    diag("export", case, "--format", "perfetto", "-o", tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    assert asyncio.run(_findings_shown([case])) == len(report_on(case).findings)


async def _findings_shown(paths: Sequence[Path]) -> int:
    request = Request(paths, ImportOptions(use_cache=False), ASKED)
    session = await Session.opened(request, lambda _: None, threading.Event())
    try:
        return len(session.report.findings)
    finally:
        await session.close()


@pytest.mark.parametrize("case", [f"schema-{OLDEST}-nsys"], indirect=True)
def test_its_first_entry_in_the_log_loses_nothing_else(case: Path) -> None:
    before = report_on(case)
    entry = Experiment("less", 1)
    heard: list[str] = []
    with changed(case, heard.append) as opened:
        append(opened, entry)
    assert heard == [f"{case} was of an older schema, and is of schema {SCHEMA_VERSION} from now on."]
    assert log_in(case) == {1: entry}
    assert found(report_on(case)) == found(before)
    assert report_on(case).devices == before.devices

"""`diag compare` as people and continuous integration run it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.builders.pairs import TorchTrace
from tests.cli.conftest import Command, snapshot
from tests.compare.runs import A100, loop


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return loop().write(tmp_path / "main.sqlite")


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    return loop(gemm_us=120, pid=77).write(tmp_path / "slower.sqlite")


def test_a_run_against_itself(diag: Command, main: Path) -> None:
    before = snapshot(main.parent)
    assert diag("compare", main, main, "--fail-on-regression", "0").is_quiet_success().startswith("Within noise")
    assert snapshot(main.parent) == before


def test_the_exit_status_of_a_gate(diag: Command, main: Path, slower: Path, tmp_path: Path) -> None:
    """The kernels take 14.3 % more."""
    assert diag("compare", main, slower).status == 0
    assert diag("compare", main, slower, "--fail-on-regression", "20").status == 0
    assert diag("compare", slower, main, "--fail-on-regression", "0").status == 0
    failed = diag("compare", main, slower, "--fail-on-regression", "5")
    assert (failed.status, failed.err) == (1, "diag: kernel time grew by 14.3 %, more than 5 %.\n")
    assert failed.out.startswith("Regressed")
    other = loop(hardware=A100).write(tmp_path / "other.sqlite")
    untold = diag("compare", main, other, "--fail-on-regression", "5")
    assert untold.status == 4
    assert "not comparable" in untold.err
    assert diag("compare", main, other, "--fail-on-regression", "5", "--allow", "hardware").status == 0
    unknown = diag("compare", main, slower, "--fail-on-regression", "5", "--metric", "window")
    assert unknown.status == 4
    assert "its noise is not known" in unknown.err


def test_nothing_in_common(diag: Command, main: Path, tmp_path: Path) -> None:
    host = TorchTrace()
    host.operator("aten::mm", 0, 1000)
    ended = diag("compare", main, host.write(tmp_path / "host.json"))
    assert ended.status == 4
    assert "nothing in common" in ended.err


def test_folders_hold_repeats(diag: Command, tmp_path: Path) -> None:
    for name, durations in (("a", (100, 101, 102)), ("b", (110, 111, 112))):
        (tmp_path / name).mkdir()
        for us in durations:
            loop(gemm_us=us, pid=us).write(tmp_path / name / f"{us}.sqlite")
    shutil.copy(tmp_path / "a" / "100.sqlite", tmp_path / "a" / "copy.sqlite")
    ended = diag("compare", tmp_path / "a", tmp_path / "b", "--format", "json", "--fail-on-regression", "3")
    assert ended.status == 1
    assert "copy.sqlite has the same content as" in ended.err
    document = json.loads(ended.out)
    assert (document["verdict"]["noise"]["n_before"], document["verdict"]["noise"]["n_after"]) == (3, 3)
    assert document["verdict"]["noise"]["repeats"] == "runs"


def test_ranks_are_no_repeats(diag: Command, tmp_path: Path, main: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        trace = TorchTrace(pid=100 + rank, distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        trace.kernel("gemm", 0, 1000 + rank)
        trace.write(folder / f"rank{rank}.json")
    assert "holds ranks 0, 1 of a job" in diag("compare", folder, main).is_one_sentence(2)


def test_every_kind_of_side(diag: Command, main: Path, tmp_path: Path) -> None:
    """A trace, its case and its JSON report are the same run."""
    diag("report", main, "-o", tmp_path / "main.diag").is_quiet_success()
    (tmp_path / "main.json").write_text(diag("report", main, "--format", "json").out)
    for other in ("main.diag", "main.json"):
        for pair in ((main, tmp_path / other), (tmp_path / other, main)):
            document = json.loads(diag("compare", *pair, "--format", "json").is_quiet_success())
            assert document["verdict"]["answer"] == "within noise"
            assert {kernel["moved_ns"] for kernel in document["kernels"]} == {0}


def test_a_part_of_both(diag: Command, tmp_path: Path) -> None:
    pair = [loop(steps=True, gemm_us=us).write(tmp_path / f"{us}.sqlite") for us in (100, 150)]
    shown = diag("compare", *pair, "--range", "step #", "--metric", "kernel:gemm").is_quiet_success()
    assert "launch time of 'gemm' 100.0 µs → 150.0 µs (+50.0 %)" in " ".join(shown.split())
    shown = diag("compare", *pair, "--whole-runs", "--metric", "kernels").is_quiet_success()
    assert "Regressed: kernel time 5.6 ms → 7.6 ms" in shown


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("{main}",), 2, "AFTER"),
        (("{main}", "{main}", "--metric", "speed"), 2, "There is no --metric speed"),
        (("{main}", "{main}", "--allow", "metric"), 2, "--allow"),
        (("{main}", "{main}", "--fail-on-regression", "-1"), 2, "--fail-on-regression"),
        (("{main}", "{main}", "--window", "5"), 2, "--window"),
        (("{main}", "{main}", "--range", "nothing"), 2, "No range is called 'nothing'"),
        (("{json}", "{main}", "--range", "step #"), 2, "is a report"),
        (("{main}", "{folder}/absent"), 3, "does not exist"),
        (("{main}", "{folder}/empty"), 3, "holds no recording"),
        (("{main}", "{folder}/other.json"), 3, "is no report of diag"),
        (("{folder}/text.txt", "{main}"), 3, "of a kind that diag does not know"),
    ],
)
def test_bad_input(words: tuple[str, ...], status: int, said: str, diag: Command, main: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.json").write_text('{"schema": "diag.report/9", "findings": []}')
    (tmp_path / "report.json").write_text('{"schema": "diag.report/1", "findings": []}')
    (tmp_path / "text.txt").write_text("nothing")
    places = {"main": main, "folder": tmp_path, "json": tmp_path / "report.json"}
    ended = diag("compare", *(word.format(**places) for word in words))
    assert said in ended.is_one_sentence(status)


def test_help_has_an_example(diag: Command) -> None:
    text = diag("compare", "--help").is_quiet_success()
    assert "\nExamples:\n  diag compare main.nsys-rep branch.nsys-rep\n" in text
    assert "BEFORE" in text
    assert "--fail-on-regression" in text


def test_it_works_in_a_pipe_and_writes_markdown(diag: Command, main: Path, slower: Path) -> None:
    shown = diag("compare", main, slower).is_quiet_success()
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert diag("compare", main, slower, "-f", "markdown").is_quiet_success().startswith("## Regressed")

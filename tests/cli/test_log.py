"""`diag log`: what it keeps, where the log goes with the case, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from diag.store.case import SCHEMA_VERSION, Case
from diag.store.lock import held
from tests.cli.conftest import Command, Outcome, snapshot
from tests.docs.shown import commands

EXAMPLE = commands("docs/log.md")
EXECUTED = [shown.text for shown in EXAMPLE]
HOSTILE = "gemm\x1b[31m<script>alert(1)</script>|`x`\u202e"


def entries(diag: Command, case: Path) -> list[dict[str, object]]:
    document = json.loads(diag("log", case, "--format", "json").out)
    assert document["schema"] == "diag.log/1"
    listed: list[dict[str, object]] = document["experiments"]
    return listed


def begin(diag: Command, case: Path, *words: str | Path) -> Outcome:
    ran = diag("log", case, "--goal", "less", *words)
    assert ran.status == 0, ran.err
    return ran


def test_the_worked_example_of_the_page(diag: Command, tmp_path: Path) -> None:
    assert len(EXAMPLE) == 2
    for shown in EXAMPLE:
        program, *words = shlex.split(shown.text)
        assert program == "diag"
        ran = diag(*words, cwd=tmp_path)
        assert ran.status == 0
        assert _without_time(ran.out) == _without_time(f"{shown.printed}\n")


def _without_time(text: str) -> str:
    replaced, count = re.subn(r"begun \d{4}-\d\d-\d\d \d\d:\d\d UTC", "begun", text)
    assert count
    return replaced


def test_the_log_shows_in_a_report_of_every_form(diag: Command, export: Path, tmp_path: Path) -> None:
    case = tmp_path / "run.diag"
    diag("report", export, "-o", case)
    before = {form: diag("report", case, "--format", form).out for form in ("text", "json", "markdown", "html")}
    assert not any("xperiments" in out for form, out in before.items() if form != "html")
    assert '<section id="experiments"' not in before["html"]
    begin(diag, case, "--gained", "4 -> 3 ms", "--change", "one thing")
    after = {form: diag("report", case, "--format", form).out for form in before}
    assert after["text"].startswith(before["text"])
    assert "Experiments\n  1, undecided: less; one thing; gain 4 → 3 ms (−25.0 %)" in after["text"]
    assert "### Experiments" in after["markdown"]
    assert '<section id="experiments"' in after["html"]
    document = json.loads(after["json"])
    assert document.pop("experiments") == entries(diag, case)
    assert document == json.loads(before["json"])


def test_a_log_lives_on_in_copies_and_in_a_case_made_anew(diag: Command, export: Path, tmp_path: Path) -> None:
    case, copy = tmp_path / "run.diag", tmp_path / "copy.diag"
    begin(diag, case)
    begin(diag, case)
    assert diag("report", export, "-o", case).status == 0
    assert [entry["number"] for entry in entries(diag, case)] == [1, 2]
    begin(diag, copy, "--change", "of the copy")
    for _ in range(2):  # nothing comes twice
        assert diag("report", case, "-o", copy).status == 0
    assert [(entry["number"], entry["change"]) for entry in entries(diag, copy)] == [
        (1, "of the copy"), (2, None), (3, None)
    ]  # fmt: skip
    assert len(entries(diag, case)) == 2


def test_what_was_told_is_not_rewritten(diag: Command, tmp_path: Path) -> None:
    case = tmp_path / "run.diag"
    begin(diag, case, "--gained", "4 -> 3 ms")
    for words, why in (
        (("--gained", "4 -> 2 ms"), "has its gain_after, gain_before, gain_unit already"),
        (("--expect", "3 ms"), "was measured already"),
        ((), "What is to be added to entry 1"),
    ):
        before = case.read_bytes()
        assert why in diag("log", case, "--finish", "1", *words).is_one_sentence(2)
        assert case.read_bytes() == before
    assert diag("log", case, "--finish", "1", "--outcome", "kept").status == 0  # it was undecided
    assert "outcome" in diag("log", case, "--finish", "1", "--outcome", "refuted").is_one_sentence(2)
    assert "no entry 7" in diag("log", case, "--finish", "7", "--gain", "x").is_one_sentence(2)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--goal", " "], "begins with its goal"),
        (["--goal", "x", "--finish", "1"], "Choose one"),
        (["--change", "x"], "Whose are these?"),
        (["--goal", "x", "--expect", "9"], "no number with a unit"),
        (["--goal", "x", "--gained", "9 ms"], "before, after and unit"),
        (["--goal", "x", "--paid", "1 s -> 2 ms"], "two units"),
        (["--goal", "x", "--gain", "y", "--compare", "a", "b"], "fills in the gain"),
    ],
)
def test_wrong_words_are_one_sentence_and_leave_nothing(
    words: list[str], why: str, diag: Command, tmp_path: Path
) -> None:
    assert why in diag("log", tmp_path / "new.diag", *words).is_one_sentence(2)
    assert snapshot(tmp_path) == {}


def test_only_a_case_has_a_log(diag: Command, export: Path, tmp_path: Path) -> None:
    before = snapshot(export.parent)
    for words in ([], ["--goal", "x"], ["--finish", "1", "--gain", "x"]):
        assert "is not a diag case" in diag("log", export, *words).is_one_sentence(3)
    assert snapshot(export.parent) == before
    assert "There is no" in diag("log", tmp_path / "none.diag").is_one_sentence(3)
    assert "is a folder" in diag("log", export.parent, "--goal", "x").is_one_sentence(2)


def test_the_gain_can_be_what_a_comparison_says(diag: Command, export: Path, tmp_path: Path) -> None:
    case = tmp_path / "run.diag"
    begin(diag, case)
    assert diag("log", case, "--finish", "1", "--compare", export, export).status == 0
    (entry,) = entries(diag, case)
    assert str(entry["gain"]) == "kernel time: within noise"
    assert (entry["gain_before"], entry["gain_unit"]) == (entry["gain_after"], "µs")


def test_hostile_words_are_shown_harmless(diag: Command, export: Path, tmp_path: Path) -> None:
    case = tmp_path / "run.diag"
    diag("report", export, "-o", case)
    begin(
        diag,
        case,
        *(w for o in ("model", "evidence", "change", "gain", "cost", "recording") for w in (f"--{o}", HOSTILE)),
    )
    diag("log", case, "--goal", b"caf\xe9", "--expect", "3 \u202e")
    shown = [diag("log", case, "--format", form).out for form in ("text", "json", "markdown")]
    shown += [diag("report", case, "--format", form).out for form in ("text", "json", "markdown")]
    for out in shown:
        assert all(c.isprintable() or c == "\n" for c in out)
    page = diag("report", case, "--format", "html").out
    assert page.isascii()
    assert "<script>alert" not in page + shown[2] + shown[5]


def test_a_case_that_is_being_written_is_left_alone(diag: Command, tmp_path: Path) -> None:
    case = tmp_path / "run.diag"
    begin(diag, case)
    before = case.read_bytes()
    with held(case, exclusive=True):
        assert "is being written by another diag" in diag("log", case, "--goal", "x").is_one_sentence(3)
    assert case.read_bytes() == before
    case.with_name("run.diag-journal").write_bytes(b"left behind")
    assert "was killed" in diag("log", case, "--goal", "x").is_one_sentence(3)


def test_an_older_case_is_of_todays_schema_with_its_first_entry(diag: Command, export: Path, tmp_path: Path) -> None:
    case = tmp_path / "run.diag"
    diag("report", export, "-o", case)
    with closing(sqlite3.connect(case, isolation_level=None)) as db:
        db.execute("DROP TABLE experiment")
        db.execute("PRAGMA user_version = 8")
    assert diag("log", case).err.count("is empty") == 1
    assert f"is of schema {SCHEMA_VERSION} from now on" in begin(diag, case).err
    with Case.open(case) as opened:
        assert opened.value("SELECT COUNT(*) FROM gpu_op WHERE kind = 'kernel'") == 40
    assert len(entries(diag, case)) == 1


def test_who_reads_the_case_reads_on_and_a_link_stays_a_link(diag: Command, tmp_path: Path) -> None:
    case, link = tmp_path / "run.diag", tmp_path / "link.diag"
    begin(diag, case)
    case.chmod(0o640)
    link.symlink_to(case)
    with Case.open(case, "immutable") as reader:
        begin(diag, link)
        assert reader.value("SELECT COUNT(*) FROM experiment") == 1
    assert link.is_symlink()
    assert case.stat().st_mode & 0o777 == 0o640
    assert len(entries(diag, case)) == 2
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["link.diag", "run.diag"]

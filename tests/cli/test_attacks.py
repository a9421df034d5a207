"""Inputs and places that somebody has prepared: docs/threat-model.md names what each of them tries."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Command, small_export

ESCAPE = "\x1b[31mred\x1b]0;title\x07\u202e"
LARGE = "A" * 10_000_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return small_export().write(tmp_path / "run.sqlite")


@pytest.mark.parametrize("digits", [5_000, 1_000_000])
def test_numbers_of_any_length_cost_nothing(diag: Command, tmp_path: Path, digits: int) -> None:
    """Python takes quadratic time to read an integer of many digits, and refuses one of more than 4,300."""
    event = '{"ph":"X","cat":"kernel","name":"k","ts":%s,"dur":1,"pid":0,"tid":1}'
    trace = tmp_path / "trace.json"
    trace.write_text('{"schemaVersion": 1, "traceEvents":[%s]}' % (event % ("9" * digits)))
    outcome = diag("report", trace)
    assert outcome.status in (3, 4), outcome.err
    assert "Traceback" not in outcome.err
    assert len(outcome.out) + len(outcome.err) < 10_000


def test_a_folder_that_holds_itself_is_read_once(diag: Command, tmp_path: Path, trace: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "again").symlink_to(folder)
    (folder / "run.sqlite").symlink_to(trace)
    outcome = diag("report", "--format", "json", folder)
    assert len(json.loads(outcome.out)["sources"]) == 1


def test_a_link_to_what_is_no_case_is_not_written_through(diag: Command, tmp_path: Path, trace: Path) -> None:
    victim, link, export = tmp_path / "victim", tmp_path / "link.diag", tmp_path / "tables"
    victim.write_text("mine")
    link.symlink_to(victim)
    export.mkdir()
    (export / "source.csv").symlink_to(victim)
    diag("report", trace, "-o", link).is_one_sentence(2)
    diag("export", trace, "--format", "csv", "-o", export).is_one_sentence(2)
    diag("log", link, "--goal", "mine, too").is_one_sentence(3)
    diag("export", trace, "--format", "csv", "-o", export, "--force")
    assert victim.read_text() == "mine"


def test_an_edited_log_is_shown_harmless_and_bounded(diag: Command, tmp_path: Path) -> None:
    case = tmp_path / "log.diag"
    assert diag("log", case, "--goal", "faster").status == 0
    with closing(sqlite3.connect(case)) as db, db:
        db.execute("UPDATE experiment SET goal = ?, model = ?", (ESCAPE, LARGE))
    for verb in ("log", "report"):
        outcome = diag(verb, case)
        assert "Traceback" not in outcome.err
        assert not {"\x1b", "\x07", "\u202e"} & set(outcome.out + outcome.err)
        assert len(outcome.out) < 10_000


def test_a_case_with_nothing_but_a_log_is_no_report(diag: Command, tmp_path: Path) -> None:
    case = tmp_path / "log.diag"
    diag("log", case, "--goal", "faster")
    outcome = diag("report", case)
    assert outcome.status == 4
    assert "Traceback" not in outcome.err


def test_a_log_is_never_begun_in_an_input(diag: Command, trace: Path) -> None:
    before = trace.read_bytes()
    diag("log", trace, "--goal", "mine").is_one_sentence(3)
    assert trace.read_bytes() == before


def test_the_cache_is_for_its_user_alone(diag: Command, trace: Path) -> None:
    """Reports may tell what a program is: others on the machine need not know."""
    diag.cache.rmdir()
    assert diag("report", trace).status == 0
    assert os.stat(diag.cache).st_mode & 0o077 == 0

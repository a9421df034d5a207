"""Which recordings a side of a comparison consists of."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest import repeats
from diag.ingest.repeats import runs_in
from tests.compare.runs import loop


def test_a_file_is_one_run_whatever_it_is(tmp_path: Path) -> None:
    assert runs_in(tmp_path / "absent.sqlite") == [tmp_path / "absent.sqlite"]


def test_each_file_and_each_folder_of_a_folder_is_a_run(tmp_path: Path) -> None:
    for name in ("b.sqlite", "a.sqlite"):
        loop(2).write(tmp_path / name)
    (tmp_path / "c.json").write_text('{"schema": "diag.report/1", "findings": []}')
    (tmp_path / "d").mkdir()
    (tmp_path / ".hidden.sqlite").write_bytes(b"SQLite format 3\x00")
    (tmp_path / "notes.txt").write_text("of these runs")
    (tmp_path / "empty.sqlite").write_bytes(b"")
    said: list[str] = []
    assert [path.name for path in runs_in(tmp_path, said.append)] == ["a.sqlite", "b.sqlite", "c.json", "d"]
    assert said == [f"{tmp_path}: 4 runs; passing over 2 other files."]


def test_a_folder_without_recordings(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("of these runs")
    with pytest.raises(InputError, match="holds no recording"):
        runs_in(tmp_path)


def test_a_damaged_file_of_a_known_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(b"\x1f\x8b\x08 and no more")
    with pytest.raises(InputError, match="damaged gzip"):
        runs_in(tmp_path)


def test_a_home_is_no_folder_of_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "MOST_RUNS", 2)
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("x")
    with pytest.raises(InputError, match="more than 2 files"):
        runs_in(tmp_path)

"""Where an export may go: never in the place of an input, of other things only when forced, and whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.errors import StorageError, UsageError
from diag.export import target


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs/run.sqlite").write_text("input")
    (tmp_path / "link.json").symlink_to(tmp_path / "inputs/run.sqlite")
    (tmp_path / "old.json").write_text("old")
    (tmp_path / "old").mkdir()
    (tmp_path / "old/gpu_op.csv").write_text("old")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def refusal(place: Path, name: str, *, as_folder: bool = False, force: bool = False) -> str | None:
    try:
        target.check(place / name, [place / "inputs/run.sqlite"], as_folder=as_folder, force=force)
    except UsageError as error:
        return str(error)
    return None


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("as_folder", [False, True])
@pytest.mark.parametrize("name", ["inputs/run.sqlite", "inputs/../inputs/run.sqlite", "link.json", "inputs"])
def test_an_input_and_its_folder_are_never_replaced(place: Path, name: str, as_folder: bool, force: bool) -> None:
    said = "holds an input" if name == "inputs" else "is an input"
    assert said in str(refusal(place, name, as_folder=as_folder, force=force))


def test_what_exists_is_replaced_only_when_forced(place: Path) -> None:
    assert "--force" in str(refusal(place, "old.json"))
    assert refusal(place, "old.json", force=True) is None
    assert "--force" in str(refusal(place, "old", as_folder=True))
    assert refusal(place, "old", as_folder=True, force=True) is None


def test_what_is_of_the_wrong_kind_is_never_replaced(place: Path) -> None:
    assert "is no file" in str(refusal(place, "old", force=True))
    assert "is no file" in str(refusal(place, "pipe", force=True))
    assert "is no folder" in str(refusal(place, "old.json", as_folder=True, force=True))
    assert "there is no folder" in str(refusal(place, "none/new.json"))


def test_what_is_new_needs_no_force(place: Path) -> None:
    for name, as_folder in (("new.json", False), ("new", True), ("empty", True)):
        assert refusal(place, name, as_folder=as_folder) is None


def test_a_file_is_whole_or_as_it_was(place: Path) -> None:
    before = sorted(place.iterdir())
    with pytest.raises(KeyboardInterrupt), target.whole_file(place / "old.json") as part:
        _interrupted(part)
    assert (place / "old.json").read_text() == "old"
    assert sorted(place.iterdir()) == before
    with target.whole_file(place / "old.json") as part:
        part.write_text("new")
    assert (place / "old.json").read_text() == "new"


def _interrupted(file: Path) -> None:
    file.write_text("half")
    raise KeyboardInterrupt


def _out_of_space(file: Path) -> None:
    file.write_text("half")
    raise OSError(28, "No space left on device")


def test_a_folder_is_whole_or_as_it_was(place: Path) -> None:
    before = sorted(place.rglob("*"))
    with pytest.raises(StorageError, match="No space left"), target.whole_folder(place / "old") as part:
        _out_of_space(part / "gpu_op.csv")
    assert sorted(place.rglob("*")) == before
    with target.whole_folder(place / "old") as part:
        (part / "api_call.csv").write_text("new")
    assert sorted(file.name for file in (place / "old").iterdir()) == ["api_call.csv", "gpu_op.csv"]
    assert sorted(place.glob(".*")) == []


def test_what_an_earlier_export_left_is_removed_and_nothing_else(place: Path) -> None:
    (place / "old/notes.txt").write_text("mine")
    with target.whole_folder(place / "old", ["gpu_op.csv", "sync.csv"]) as part:
        (part / "api_call.csv").write_text("new")
    assert sorted(file.name for file in (place / "old").iterdir()) == ["api_call.csv", "notes.txt"]


def test_blocks_hold_the_same_text() -> None:
    pieces = ["a" * 10, "b", "", "c" * 25]
    blocks = list(target.in_blocks(pieces, size=11))
    assert "".join(blocks) == "".join(pieces)
    assert [len(block) for block in blocks] == [11, 25, 0]

"""`diag hang` where some of what the ranks left cannot be read: the others tell, and each such file is named."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.builders.recorder_dumps import Job
from tests.cli.conftest import Command

GUILTY = 3
HEADLINE = "Rank 3 holds up the job"
BEAT = b'{"schema": "diag.heartbeat/1", "rank": 6, "wor'


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Fifteen ranks wait for one that has not called an all-reduce."""
    Job(n_ranks=16, absent={GUILTY}).write(tmp_path / "dumps")
    return tmp_path / "dumps"


class Harm:
    """Pickled as a call that makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.file,)


def damage(folder: Path) -> Mapping[str, str]:
    """Damages files in many ways; returns what is to be said of each."""
    (folder / "_dump_5").write_bytes(b"")
    for rank, length in ((6, 3), (7, 400)):
        path = folder / f"_dump_{rank}"
        path.write_bytes(path.read_bytes()[:length])
    (folder / "_dump_8").write_bytes(pickle.dumps({"version": "2.9", "entries": [Harm(folder / "harmed")]}))
    (folder / "rank6.heartbeat.json").write_bytes(BEAT)
    (folder / "rank9.json").write_bytes(b'{"version": "2.9", "pg_')
    return {
        "_dump_5": "is empty. Was the capture interrupted, or the disk full?",
        "_dump_6": "is a Python pickle, which diag never loads",
        "_dump_7": "cannot be read as a flight-recorder dump",
        "_dump_8": "and loading can run code",
        "rank6.heartbeat.json": "is no heartbeat of diag",
        "rank9.json": "is JSON, but not a trace",
    }


def unbroken(text: str) -> str:
    """A path that is longer than a line is broken anywhere."""
    return "".join(text.split())


@pytest.fixture(params=["folder", "files"])
def as_named(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def named(folder: Path, how: str) -> Sequence[Path]:
    return [folder] if how == "folder" else sorted(folder.iterdir())


def test_files_that_cannot_be_read_are_named_and_the_others_tell(diag: Command, dumps: Path, as_named: str) -> None:
    expected = damage(dumps)
    outcome = diag("hang", *named(dumps, as_named), "--top", "9")
    assert outcome.status == 0
    assert outcome.out.startswith(HEADLINE)
    said = unbroken(outcome.out.partition("\nHow it knows")[0])
    for name, why in expected.items():
        assert unbroken(str(dumps / name)) in said
        assert unbroken(why) in said
    assert unbroken("Rank 5 counts as absent, as if it had left nothing; this is not held against it.") in said
    assert unbroken("What else rank 9 left is read; this is not held against it.") in said
    assert not (dumps / "harmed").exists()


def test_json_carries_them_and_accuses_none(diag: Command, dumps: Path, as_named: str) -> None:
    expected = damage(dumps)
    told = json.loads(diag("hang", *named(dumps, as_named), "--format", "json").out)
    assert told["hang"]["named"] == [GUILTY]
    assert {Path(each["path"]).name for each in told["hang"]["unread"]} == set(expected)
    ranks = {Path(each["path"]).name: each["rank"] for each in told["hang"]["unread"]}
    assert (ranks["_dump_5"], ranks["rank6.heartbeat.json"], ranks["rank9.json"]) == (5, 6, 9)
    assert all(expected[Path(each["path"]).name] in each["because"] for each in told["hang"]["unread"])
    assert told["hang"]["absent"] == [5, 6, 7, 8]
    assert {source["is_unread"] for source in told["sources"] if Path(source["path"]).name in expected} == {True}


def test_a_case_keeps_them(diag: Command, dumps: Path, tmp_path: Path) -> None:
    damage(dumps)
    first = diag("hang", dumps, "-o", tmp_path / "night.diag")
    assert diag("hang", tmp_path / "night.diag").out == first.out


def test_where_nothing_can_be_read_it_is_an_error(diag: Command, tmp_path: Path) -> None:
    empty = tmp_path / "_dump_0"
    empty.write_bytes(b"")
    assert f"{empty} is empty" in diag("hang", empty).is_one_sentence(3)
    (tmp_path / "rank1.heartbeat.json").write_bytes(BEAT)
    said = diag("hang", tmp_path).err
    assert f"{empty} is empty" in said
    assert "The 1 other file cannot be read either." in said


def test_a_name_that_does_not_exist_is_an_error(diag: Command, dumps: Path) -> None:
    assert "does not exist" in diag("hang", dumps, dumps / "beats").err


def test_an_empty_folder_beside_others_is_noted(diag: Command, dumps: Path, tmp_path: Path) -> None:
    (tmp_path / "beats").mkdir()
    outcome = diag("hang", dumps, tmp_path / "beats")
    assert outcome.out.startswith(HEADLINE)
    assert f"{tmp_path / 'beats'} is a folder without anything to read" in outcome.err


def test_an_empty_log_or_stack_of_a_rank_is_no_damage(diag: Command, dumps: Path) -> None:
    """faulthandler opens its file long before it writes to it."""
    for name in ("rank1.stack", "rank2.err", "rank3.log"):
        (dumps / name).write_bytes(b"")
    outcome = diag("hang", dumps)
    assert outcome.out.startswith(HEADLINE)
    assert "Could not be read" not in outcome.out


def test_a_report_of_the_folder_stays_strict(diag: Command, dumps: Path) -> None:
    """Also where `diag hang` has just kept a case of the same files."""
    (dumps / "rank6.heartbeat.json").write_bytes(BEAT)
    assert diag("hang", dumps).status == 0
    assert "is no heartbeat of diag" in diag("report", dumps).err

"""Whatever the file: one sentence, the right status, nothing left behind, the file as it was."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest import inputs
from tests.cli.conftest import Command, small_export, snapshot

Make = Callable[[Path], Path]


def _bytes(name: str, content: bytes) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def _sqlite(name: str, *statements: str) -> Make:
    def make(folder: Path) -> Path:
        with closing(sqlite3.connect(folder / name)) as db, db:
            for statement in statements:
                db.execute(statement)
        return folder / name

    return make


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def _folder(folder: Path) -> Path:
    (folder / "runs").mkdir()
    (folder / "runs" / "log.txt").write_text("nothing here")
    return folder / "runs"


def _dangling(folder: Path) -> Path:
    (folder / "link.sqlite").symlink_to(folder / "gone.sqlite")
    return folder / "link.sqlite"


def _loop(folder: Path) -> Path:
    (folder / "loop.sqlite").symlink_to(folder / "loop.sqlite")
    return folder / "loop.sqlite"


def _zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "trace.zip", "w") as archive:
        archive.writestr("trace.json", "{}")
    return folder / "trace.zip"


def _cut_export(length: int) -> Make:
    def make(folder: Path) -> Path:
        path = small_export().write(folder / "cut.sqlite")
        path.write_bytes(path.read_bytes()[:length])
        return path

    return make


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end FROM n"

UNREADABLE: dict[str, tuple[Make, str]] = {
    "missing": (lambda folder: folder / "none.sqlite", "does not exist"),
    "empty": (_bytes("empty.sqlite", b""), "is empty"),
    "empty gz": (_bytes("empty.json.gz", b""), "is empty"),
    "gz of nothing": (_bytes("nothing.json.gz", gzip.compress(b"")), "holds nothing"),
    "gz header only": (_bytes("head.json.gz", gzip.compress(b"{}")[:10]), "holds nothing"),
    "gz damaged": (_bytes("bad.json.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 100), "damaged gzip"),
    "text": (_bytes("notes.txt", b"hello\n"), "does not know"),
    "binary": (_bytes("noise.bin", bytes(range(256)) * 9), "does not know"),
    "LFS pointer": (
        _bytes("run.nsys-rep", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        "git lfs pull",
    ),
    "pickle": (_bytes("_dump_0", pickle.dumps({"version": "2.9"}, protocol=2)), "pickle"),
    "new pickle": (_bytes("dump.pkl", pickle.dumps({"version": "2.9"})), "pickle"),
    "zip": (_zip, "zip archive"),
    "zstd": (_bytes("trace.json.zst", b"\x28\xb5\x2f\xfd" + b"\0" * 50), "zstd"),
    "Nsight Compute": (_bytes("k.ncu-rep", b"NVR\x00" + b"\xff" * 50), "Nsight Compute"),
    "nsys report without events": (_bytes("run.bin", b"NVIDIA Tegra Profiler Report 2024.6.2.25"), "cut short"),
    "nsys name, other content": (_bytes("x.nsys-rep", b"hello"), "does not begin like"),
    "other JSON": (_bytes("config.json", b'{"lr": 0.1}'), "no trace events"),
    "pipe": (_pipe, "is not a file"),
    "device": (lambda folder: Path("/dev/zero"), "is not a file"),
    "folder without traces": (_folder, "without anything to read"),
    "dangling link": (_dangling, "does not exist"),
    "link to itself": (_loop, "cannot be read"),
    "name too long": (lambda folder: folder / ("n" * 300), "cannot be read"),
    "path too long": (lambda folder: folder.joinpath(*["n" * 200] * 30), "cannot be read"),
    "file as folder": (lambda folder: _bytes("a", b"x")(folder) / "b", "cannot be read"),
    "SQLite header only": (_cut_export(16), "damaged"),
    "SQLite cut in its first page": (_cut_export(1000), "damaged"),
    "SQLite cut mid page": (_cut_export(3 * 4096 + 7), "damaged"),
    "another application's database": (_sqlite("places.sqlite", "CREATE TABLE moz_places (id, url)"), "not an Nsight"),
    "no tables": (_sqlite("no.sqlite", "PRAGMA user_version = 1"), "not an Nsight"),
    "endless view": (_sqlite("view.sqlite", f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS}"), "not an Nsight"),
    "virtual table": (
        _sqlite("fts.sqlite", "CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(start, end, text)"),
        "not an Nsight",
    ),
    "newline and colours in the name": (lambda folder: folder / "a\n\x1b[31mb", "does not exist"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_unreadable_input_is_one_sentence(kind: str, diag: Command, tmp_path: Path) -> None:
    make, says = UNREADABLE[kind]
    path = make(tmp_path)
    before = snapshot(tmp_path)

    ran = diag("report", path)

    sentence = ran.is_one_sentence(3)
    assert says in sentence
    assert snapshot(tmp_path) == before
    assert not diag.leftovers()
    assert not diag.cases()


# ---- names -------------------------------------------------------------------------------------------------------

NAMES = [
    b"a b.sqlite",
    "é漢.sqlite".encode(),
    b"new\nline.sqlite",
    b"caf\xe9.sqlite",
    b"a?b#c%41&d='e\".sqlite",
    b"-x",
    b"n" * 250,
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_will_do(name: bytes, diag: Command, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = small_export().write(tmp_path / "short.sqlite").rename(folder / os.fsdecode(name))
    before = snapshot(folder)
    shown = diag("report", path, "--format", "json").is_quiet_success()
    assert diag("report", path, "--format", "json", "--no-cache").is_quiet_success() == shown
    assert snapshot(folder) == before
    (source,) = json.loads(shown)["sources"]
    assert source["path"].encode("utf-8", "strict")


def test_a_folder_of_other_things_says_what_lies_there(diag: Command, tmp_path: Path) -> None:
    for name, content in (("a.zip", b"PK\x03\x04x"), ("b.zip", b"PK\x03\x04y"), ("notes.txt", b"hello"), ("x", b"")):
        (tmp_path / name).write_bytes(content)
    said = diag("report", tmp_path).is_one_sentence(3)
    assert "It holds 2 files (each a zip archive; unpack it and pass the files inside)" in said
    assert "1 file (of a kind that diag does not know); 1 file (empty)" in said


def test_words_that_are_no_text(diag: Command, export: Path, tmp_path: Path) -> None:
    """What a terminal that is not set to UTF-8 may send."""
    word = os.fsdecode(b"caf\xe9")
    thresholds = tmp_path / f"{word}.toml"
    thresholds.write_text('["idle.gpu"]\nshare = 0.5\n')
    diag("report", export, "--thresholds", thresholds).is_quiet_success()
    diag("report", export, "-o", tmp_path / f"{word}.diag").is_quiet_success()
    assert "not UTF-8" in diag("query", export, f"SELECT '{word}'").is_one_sentence(2)
    assert "caf" in diag("report", export, "--range", word).is_one_sentence(2)
    assert "caf" in diag("explain", word).is_one_sentence(2)


def test_content_decides_and_not_the_name(diag: Command, tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 9, "pid": 1, "tid": 1}
    plain = json.dumps({"traceEvents": [event]})
    (tmp_path / "plain.json.gz").write_text(plain)
    (tmp_path / "packed.json").write_bytes(gzip.compress(plain.encode()))
    small_export().write(tmp_path / "export.nsys-rep")
    for path in sorted(tmp_path.iterdir()):
        assert diag("report", path).status in (0, 4), path


# ---- beside the input --------------------------------------------------------------------------------------------


def test_what_lies_in_a_wal_is_read_from_a_copy(diag: Command, tmp_path: Path) -> None:
    path = small_export().write(tmp_path / "live.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start < 20000")
        db.commit()
        before = snapshot(tmp_path)
        assert "live.sqlite-wal" in before
        shown = diag("report", path, "--format", "json").is_quiet_success()
        assert snapshot(tmp_path) == before
        assert json.loads(shown)["devices"][0]["n_kernels"] == 20

        db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start < 21000")
        db.commit()
        shown = diag("report", path, "--format", "json").is_quiet_success()
        assert json.loads(shown)["devices"][0]["n_kernels"] == 19, "the -wal is a part of the content"


def test_a_wal_database_without_its_wal_is_left_alone(diag: Command, tmp_path: Path) -> None:
    path = small_export().then("PRAGMA user_version = 3").write(tmp_path / "wal.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = snapshot(tmp_path)
    diag("report", path).is_quiet_success()
    assert snapshot(tmp_path) == before


def test_a_hot_journal_is_rolled_back_in_a_copy(diag: Command, tmp_path: Path) -> None:
    path = small_export().write(tmp_path / "hot.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("PRAGMA cache_spill = 1")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
        db.execute("CREATE TABLE filler AS SELECT randomblob(4000) FROM NVTX_EVENTS, CUPTI_ACTIVITY_KIND_RUNTIME")
        killed = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        db.rollback()
    for name, content in killed.items():
        (tmp_path / name).write_bytes(content)
    before = snapshot(tmp_path)
    assert "hot.sqlite-journal" in before
    shown = diag("report", path, "--format", "json").is_quiet_success()
    assert json.loads(shown)["devices"][0]["n_kernels"] == 40
    assert snapshot(tmp_path) == before


def test_a_wal_of_another_database_is_one_sentence_or_ignored(diag: Command, tmp_path: Path) -> None:
    path = small_export().write(tmp_path / "mixed.sqlite")
    (tmp_path / "mixed.sqlite-wal").write_bytes(os.urandom(9000))
    (tmp_path / "mixed.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + os.urandom(9000))
    before = snapshot(tmp_path)
    ran = diag("report", path)
    assert ran.status in (0, 3)
    if ran.status:
        ran.is_one_sentence(3)
    assert snapshot(tmp_path) == before


# ---- several inputs ----------------------------------------------------------------------------------------------


def test_the_same_file_twice_counts_once(diag: Command, export: Path) -> None:
    once = diag("report", export).is_quiet_success()
    assert diag("report", export, export).is_quiet_success() == once
    link = export.with_name("link.sqlite")
    link.symlink_to(export)
    assert diag("report", export, link).is_quiet_success() == once


def test_a_copy_of_an_input_is_refused(diag: Command, export: Path) -> None:
    copy = export.with_name("copy.sqlite")
    copy.write_bytes(export.read_bytes())
    assert "same content" in diag("report", export, copy).is_one_sentence(2)


def test_a_folder_stands_for_its_traces(diag: Command, export: Path) -> None:
    events = [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": i, "dur": 1, "pid": 1, "tid": 1} for i in range(20)]
    export.with_name("rank0.json").write_text(json.dumps({"traceEvents": events}))
    export.with_name("config.json").write_text("{}")
    export.with_name("log.txt").write_text("")
    export.with_suffix(".nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 2024.6.2.25")
    ran = diag("report", export.parent, "--format", "json")
    assert ran.err == (
        f"diag: {export.parent}: reading 1 PyTorch trace, 1 Nsight Systems export; "
        "passing over 1 already exported report, 2 other files.\n"
    )
    both = json.loads(ran.out)
    assert [Path(source["path"]).name for source in both["sources"]] == ["rank0.json", "report.sqlite"]


def test_a_case_beside_other_inputs_is_refused(diag: Command, export: Path, tmp_path: Path) -> None:
    case = tmp_path / "kept.diag"
    diag("report", export, "-o", case).is_quiet_success()
    assert "cannot be mixed" in diag("report", export, case).is_one_sentence(2)
    assert "cannot be mixed" in diag("report", case, export).is_one_sentence(2)


def test_a_case_in_a_folder_is_not_its_input(diag: Command, export: Path) -> None:
    shown = diag("report", export.parent).out
    diag("report", export, "-o", export.with_name("kept.diag")).is_quiet_success()
    again = diag("report", export.parent)
    assert again.out == shown
    assert again.err.endswith("reading 1 Nsight Systems export; passing over 1 diag case.\n")
    export.unlink()
    assert "but for 1 diag case" in diag("report", export.parent).is_one_sentence(3)


def test_folders_in_folders_links_and_copies(diag: Command, export: Path) -> None:
    """Links may lead in circles and to the same file; copies count once; what is hidden is not looked at."""
    deep = export.parent / "job" / "rank1"
    deep.mkdir(parents=True)
    (deep / "copy.sqlite").write_bytes(export.read_bytes())
    small_export(50).write(deep / "other.sqlite")
    (deep / "loop").symlink_to(export.parent)
    (deep / "self").symlink_to(deep / "self")
    (deep / "link.sqlite").symlink_to(export)
    (deep / "gone.sqlite").symlink_to(deep / "nothing")
    (export.parent / ".hidden").mkdir()
    small_export(60).write(export.parent / ".hidden" / "secret.sqlite")
    before = snapshot(export.parent)
    ran = diag("report", export.parent, "--format", "json")
    assert [Path(source["path"]).name for source in json.loads(ran.out)["sources"]] == ["report.sqlite", "other.sqlite"]
    assert ran.err.splitlines()[1:] == [
        f"diag: {deep / 'copy.sqlite'} has the same content as {export}; it is read once."
    ]
    assert snapshot(export.parent) == before
    alone = diag("report", deep / "copy.sqlite", export)
    assert "same content" in alone.is_one_sentence(2)


def test_a_folder_of_everything_is_no_folder_of_traces(
    tmp_path: Path, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MOST_FILES", 3)
    for i in range(3):
        (export.parent / f"{i}.txt").touch()
    with pytest.raises(InputError, match=r"more than 3 files\. Name the folder"):
        inputs.find_inputs([export.parent])


def test_a_folder_that_may_not_be_looked_into_is_noted(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = export.parent / "locked"
    locked.mkdir()
    really = Path.iterdir

    def iterdir(folder: Path) -> Iterator[Path]:
        if folder == locked:
            raise PermissionError(13, "Permission denied")
        return really(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    notes: list[str] = []
    assert [item.path for item in inputs.find_inputs([export.parent], notes.append)] == [export]
    assert notes[0] == f"{locked} cannot be read: Permission denied."


def test_one_bad_input_among_good_ones_leaves_nothing(diag: Command, export: Path) -> None:
    cut = export.with_name("cut.sqlite")
    cut.write_bytes(export.read_bytes()[:9000])
    before = snapshot(export.parent)
    assert "cut.sqlite" in diag("report", export, cut).is_one_sentence(3)
    assert not diag.cases()
    assert not diag.leftovers()
    assert snapshot(export.parent) == before


# ---- size ----------------------------------------------------------------------------------------------------------


def test_a_zip_bomb_stops_at_its_bound(diag: Command, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.json.gz"
    event = b'{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"pid":1,"tid":1},'
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents":[')
        for _ in range(64):
            file.write(event * 1000)
    sentence = diag("report", bomb, "--max-size", "1M").is_one_sentence(3)
    assert "--max-size" in sentence
    assert not diag.leftovers()
    assert not diag.cases()


def test_a_bad_size_is_wrong_usage(diag: Command, export: Path) -> None:
    assert "--max-size" in diag("report", export, "--max-size", "much").is_one_sentence(2)
    assert "DIAG_CACHE_BYTES" in diag("report", export, env={"DIAG_CACHE_BYTES": "-3"}).is_one_sentence(2)

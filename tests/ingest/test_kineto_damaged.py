"""The Kineto reader against files that are cut, damaged, hostile or none."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest import kineto
from diag.ingest.input_file import Bounds, InputFile
from diag.rules.analysis import analyse
from diag.store.case import Case
from tests.builders.kineto import imported
from tests.ingest.kineto_traces import operator, trace

MANY = json.dumps({"schemaVersion": 1, "traceEvents": [operator(ts=i) for i in range(100)], "traceName": "x"}).encode()


def refused(folder: Path, content: bytes, bounds: Bounds | None = None) -> str:
    """The message with which a file is refused."""
    path = folder / "trace.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised, imported(path, folder, bounds):
        pass
    message = str(raised.value)
    assert str(path) in message
    assert message.endswith(".")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_cut_short_keeps_its_whole_events(tmp_path: Path, share: float, packed: bool) -> None:
    path = tmp_path / "cut.json.gz"
    content = MANY[: int(len(MANY) * share)]
    path.write_bytes(gzip.compress(content) if packed else content)
    whole = content.count(b"}") - content.count(b'"traceName"')
    with imported(path, tmp_path) as case:
        assert case.value("SELECT COUNT(*) FROM cpu_range") == whole
        (note,) = case.notes(1)
        assert f"{whole} events" in note
        assert case.sources[0].is_cut
        report = analyse(case)
        assert "cut short" in report.verdict.summary
        assert {finding.confidence for finding in report.findings} <= {"low"}


def test_a_truncated_gzip_keeps_its_whole_events(tmp_path: Path) -> None:
    path = tmp_path / "cut.json.gz"
    packed = gzip.compress(MANY)
    path.write_bytes(packed[: len(packed) * 2 // 3])
    with imported(path, tmp_path) as case:
        count = case.value("SELECT COUNT(*) FROM cpu_range")
        assert 0 < count < 100
        assert f"; {count} events" in case.notes(1)[0]


def test_damage_after_the_events_is_noted(tmp_path: Path) -> None:
    text = MANY.replace(b'"traceName": "x"', rb'"traceName": "C:\Users\x"')
    with trace(tmp_path, text.decode()) as case:
        assert case.value("SELECT COUNT(*) FROM cpu_range") == 100
        assert not case.sources[0].is_cut
        assert case.notes(1) == ["what follows the events in the file is damaged or missing and was left out"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b" \n ", "is empty"),
        (b"hello", "is not JSON"),
        (b"\xff\xfe[\x00", "is not JSON"),
        (b"{}", "traceEvents"),
        (b'{"traceEvents": 5}', "traceEvents"),
        (b'{"schemaVersion": 1', "ends too early"),
        (b'{"a" 1}', "colon"),
        (b"\x1f\x8b" + b"garbage" * 9, "damaged gzip"),
        (gzip.compress(MANY, mtime=0)[:60] + b"\xff" * 60, "damaged gzip"),
        (MANY.replace(b'"ts": 50', b'"ts": NaN'), "NaN"),
        (MANY.replace(b'"ts": 50', b'"ts": -Infinity'), "Infinity"),
        (MANY.replace(b'"ts": 50', b'"ts": inf'), "expecting value"),
        (b'{"x": NaN, "traceEvents": []}', "NaN"),
        (MANY.replace(b'"ts": 50', b'"ts" 50'), "expecting"),
        (b'[{"ph": "X", "args": ' + b'{"a":' * 100_000, "nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'[{"name": "' + b"x" * (20 << 20), "more than 16 MB"),
        (b'{"name": "' + b"x" * (20 << 20) + b'"}', "more than 16 MB"),
    ],
)  # fmt: skip
def test_what_is_refused_and_why(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refused(tmp_path, content)


def test_a_zip_bomb_is_refused_by_the_bound(tmp_path: Path) -> None:
    bomb = zlib.compressobj(9, wbits=31)
    content = b"".join(bomb.compress(b"[" + b" " * (1 << 20)) for _ in range(64)) + bomb.flush()
    message = refused(tmp_path, content, Bounds(plain_bytes=16 << 20))
    assert str(16 << 20) in message
    assert "--max-size" in message


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    file = InputFile(tmp_path / "none", tmp_path / "none", "kineto", "", 0)
    with Case.create(tmp_path / "c.diag") as case, pytest.raises(InputError, match="Cannot read"):
        kineto.read(file, case)


def test_the_input_and_its_folder_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    path = folder / "a.json"
    path.write_bytes(MANY)
    path.chmod(0o400)
    with imported(path, tmp_path):
        pass
    assert path.read_bytes() == MANY
    assert list(folder.iterdir()) == [path]

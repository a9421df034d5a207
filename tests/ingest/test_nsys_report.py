"""Nsight Systems' native files, opened with a scripted nsys and, where one is installed, with the real one.

The synthetic reports follow what is known of the container: a first line, sections, a protobuf table of them, and a
16-byte trailer that points to the table.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sqlite3
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from diag.errors import InputError, StorageError, ToolMissing, UsageError
from diag.ingest import nsys_report, nsys_tool
from diag.ingest.nsys_rep.version import report_version
from diag.ingest.nsys_report import Nsys, exported, find_nsys
from tests import interruptible
from tests.builders.nsys_report import MAGIC, fake_nsys, old_report, script
from tests.ingest.captures import annotated_program, capture_of

NEW_HEADER = MAGIC + b"2024@6@2@25-246234924588v0.\n\x0bLocal (CLI)"
STREAM_HEADER = b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f!\n\xb7\x15"


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


WRITES = r"printf 'SQLite format 3\000rest' > "
GOOD = WRITES + '"$out"'


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything about a folder's files that reading must not change."""
    return {
        path.name: (path.stat().st_mtime_ns, path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
    }


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return write(tmp_path / "input" / "report1.nsys-rep", old_report())


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    return tmp_path / "work"


def use(monkeypatch: pytest.MonkeyPatch, nsys: Path) -> None:
    monkeypatch.setenv("DIAG_NSYS", str(nsys))


# -- the file's own version


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (NEW_HEADER, "2024.6.2.25"),
        (old_report(), "2022.4.2.1"),
        (old_report(b"2023.1.2.43-32377213v0"), "2023.1.2.43"),
        (STREAM_HEADER, "2022.4.2.1"),
        (old_report(b"unknown"), None),
        (b"", None),
        (MAGIC, None),
        (MAGIC + b"1.", None),
        (old_report()[:-1], None),
        (b"something else, 2024.6.2.25", None),
    ],
)
def test_version_is_read_from_the_header_or_the_trailer(tmp_path: Path, content: bytes, version: str | None) -> None:
    assert report_version(write(tmp_path / "x.nsys-rep", content)) == version


def test_a_file_that_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert report_version(tmp_path / "absent.nsys-rep") is None


def test_no_damaged_trailer_raises(tmp_path: Path) -> None:
    whole = old_report()
    for at in range(len(MAGIC), len(whole)):
        for byte in (0x00, 0x7F, 0x80, 0xFF):
            path = write(tmp_path / "x.nsys-rep", whole[:at] + bytes([byte]) + whole[at + 1 :])
            version = report_version(path)
            assert version is None or version.count(".") >= 2


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.nsys-rep"
    with path.open("wb") as file:
        file.write(MAGIC + b"1.")
        file.seek(1 << 40)
        # The table claims all of the file.
        file.write(struct.pack("<Q8s", 64, b"U3w[END]"))
    started = time.monotonic()
    assert report_version(path) is None
    assert time.monotonic() - started < 1


# -- finding nsys


def test_diag_nsys_is_used_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = fake_nsys(tmp_path / "named", GOOD, "2021.1.1.66-6c5c5cb")
    fake_nsys(tmp_path / "path", GOOD, "9999.1.1.1-x")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    use(monkeypatch, named)
    assert find_nsys() == Nsys(named, (2021, 1, 1, 66), None)


def test_the_newest_wins_and_those_that_do_not_answer_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "a" / "nsys", "exit 1")
    script(tmp_path / "b" / "nsys", "echo no version here")
    fake_nsys(tmp_path / "c", GOOD, "9998.10.1.1-x")
    newest = fake_nsys(tmp_path / "d", GOOD, "9999.2.1.1-x")
    fake_nsys(tmp_path / "e", GOOD, "9998.9.1.1-x")
    monkeypatch.delenv("DIAG_NSYS", raising=False)
    monkeypatch.setenv("PATH", ":".join([*(str(tmp_path / name) for name in "abcde"), os.environ["PATH"]]))
    found = find_nsys()
    assert found is not None
    assert (found.path, found.release) == (newest, "9999.2.1")


def test_nsys_is_found_in_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nsys = fake_nsys(tmp_path / "nsight-systems-2024.6.2" / "bin", GOOD, "9999.6.2.1-x")
    monkeypatch.delenv("DIAG_NSYS", raising=False)
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    found = find_nsys()
    assert found is not None
    assert found.path == nsys


def test_the_importer_is_found_beside_its_nsys_through_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nsys(tmp_path / "opt" / "target-linux-x64", GOOD)
    importer = script(tmp_path / "opt" / "host-linux-x64" / "QdstrmImporter", "exit 0")
    (tmp_path / "nsys").symlink_to(tmp_path / "opt" / "target-linux-x64" / "nsys")
    use(monkeypatch, tmp_path / "nsys")
    found = find_nsys()
    assert found is not None
    assert found.importer == importer


# -- exporting with a scripted nsys


def test_an_export_lands_in_the_work_folder_and_nothing_else(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", GOOD))
    said: list[str] = []
    export = exported(report, workdir, progress=said.append)
    assert export.parent == workdir
    assert export.read_bytes().startswith(b"SQLite format 3\x00")
    assert list(workdir.iterdir()) == [export]
    assert said[0] == "report1.nsys-rep: converting with nsys 2022.4.2"


def test_progress_is_told_while_nsys_runs(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = r"printf '\rExporting 9 events: [==41%%      ]'; sleep 1; " + GOOD
    use(monkeypatch, fake_nsys(tmp_path / "bin", body))
    said: list[str] = []
    exported(report, workdir, progress=said.append)
    assert "report1.nsys-rep: nsys 2022.4.2 41 %" in said


def test_an_nsys_that_scribbles_on_its_input_does_not_reach_the_users_file(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = 'echo scribble >> "$in"; touch "$in.side" "$(dirname "$in")/beside.sqlite"; ' + GOOD
    use(monkeypatch, fake_nsys(tmp_path / "bin", body))
    before = state(report.parent)
    exported(report, workdir)
    assert state(report.parent) == before


@pytest.mark.parametrize("name", ["-o evil.nsys-rep", "two words; rm.qdrep", "UPPER.NSYS-REP"])
def test_awkward_names(workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", GOOD))
    assert exported(write(tmp_path / "in" / name, old_report()), workdir).exists()


def test_reports_of_one_name_from_two_folders_do_not_collide(
    workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", GOOD))
    inputs = [write(tmp_path / folder / "report1.nsys-rep", old_report()) for folder in "ab"]
    assert len({exported(path, workdir) for path in inputs}) == 2


def test_an_older_nsys_is_not_even_tried(workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", f"touch {tmp_path}/ran; {GOOD}"))
    newer = write(tmp_path / "in" / "h200.nsys-rep", NEW_HEADER)
    with pytest.raises(ToolMissing) as caught:
        exported(newer, workdir)
    for part in (
        "written by Nsight Systems 2024.6.2; installed: 2022.4.2",
        "developer.nvidia.com/nsight-systems",
        "apt-get install nsight-systems-cli",
        "leave out --with-nsys-export",
    ):
        assert part in str(caught.value)
    assert not (tmp_path / "ran").exists()
    assert not workdir.exists()


@pytest.mark.parametrize(
    ("installed", "opens"), [("2022.4.1.9", False), ("2022.4.2.0", True), ("2022.10.0.1", True), ("2023.1.1.1", True)]
)
def test_builds_of_one_release_read_each_other(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str, opens: bool
) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", GOOD, installed))
    if opens:
        assert exported(report, workdir).exists()
    else:
        with pytest.raises(ToolMissing, match=r"written by Nsight Systems 2022\.4\.2; installed: 2022\.4\.1"):
            exported(report, workdir)


def test_a_file_of_unknown_version_is_tried(workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = write(tmp_path / "in" / "x.nsys-rep", MAGIC + b"1.")
    use(monkeypatch, fake_nsys(tmp_path / "good", GOOD))
    assert exported(unknown, workdir).exists()
    use(monkeypatch, fake_nsys(tmp_path / "bad", "exit 1"))
    with pytest.raises(InputError, match="or newer than this nsys"):
        exported(unknown, workdir)


def test_without_nsys_the_message_says_which_one(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsys_tool, "_ROOTS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DIAG_NSYS", raising=False)
    with pytest.raises(
        ToolMissing, match=r"Nsight Systems 2022\.4\.2; no nsys is installed here\. Install version 2022"
    ):
        exported(report, workdir)
    monkeypatch.setenv("DIAG_NSYS", "/nowhere/nsys")
    with pytest.raises(ToolMissing, match="DIAG_NSYS names /nowhere/nsys"):
        exported(report, workdir)


def test_a_failure_says_what_nsys_said_and_leaves_nothing(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = r"""
        printf 'half' > "$out"
        printf '\rExporting 9 events: [3%%  ]\nExportation error: a.cpp(73): Throw\n' >&2
        printf 'std::exception::what: \033[31mProtobufParseException\n\n' >&2
        exit 1
    """
    use(monkeypatch, fake_nsys(tmp_path / "bin", body))
    with pytest.raises(InputError, match=r"failed \(\[31mProtobufParseException\)\. The file may be damaged") as caught:
        exported(report, workdir)
    assert "\x1b" not in str(caught.value)
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("body", ["exit 0", 'echo junk > "$out"'])
def test_success_without_an_sqlite_file_is_an_error(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", body))
    with pytest.raises(InputError, match="wrote no usable file"):
        exported(report, workdir)
    assert list(workdir.iterdir()) == []


def test_a_hanging_nsys_is_stopped_with_its_children(
    report: Path, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", f'touch "$out"; sleep 60 & echo $! > {tmp_path}/child; wait'))
    with pytest.raises(InputError, match=r"did not end within 0\.5 s"):
        exported(report, workdir, timeout_s=0.5)
    assert interruptible.ended(int((tmp_path / "child").read_text()))
    assert list(workdir.iterdir()) == []


def test_an_interrupt_stops_nsys_and_leaves_nothing(report: Path, workdir: Path, tmp_path: Path) -> None:
    nsys = fake_nsys(tmp_path / "bin", f'touch "$out"; sleep 60 & echo $! > {tmp_path}/child; wait')
    code = (
        "import sys, pathlib; from diag.ingest.nsys_report import exported; exported(*map(pathlib.Path, sys.argv[1:]))"
    )
    env = {**os.environ, "DIAG_NSYS": str(nsys)}
    process = interruptible.start([sys.executable, "-c", code, report, workdir], env)
    child = tmp_path / "child"
    interruptible.wait_until(lambda: child.exists() and child.read_text().strip() != "", process)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in stderr
    assert interruptible.ended(int((tmp_path / "child").read_text()))
    assert list(workdir.iterdir()) == []


def test_what_is_not_a_report_never_reaches_nsys(
    workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", f"touch {tmp_path}/ran; {GOOD}"))
    (tmp_path / "in" / "folder.nsys-rep").mkdir(parents=True)
    os.mkfifo(tmp_path / "in" / "pipe.nsys-rep")
    write(tmp_path / "in" / "empty.nsys-rep", b"")
    write(tmp_path / "in" / "empty.qdstrm", b"")
    write(tmp_path / "in" / "junk.qdrep", b"PK\x03\x04" * 20)
    for path in (*(tmp_path / "in").iterdir(), tmp_path / "in" / "absent.qdrep"):
        with pytest.raises(InputError):
            exported(path, workdir)
    assert not (tmp_path / "ran").exists()


def test_the_inputs_own_folder_is_refused(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", GOOD))
    with pytest.raises(UsageError, match="name another folder"):
        exported(report, report.parent)


def test_a_work_folder_that_cannot_be_made_is_a_storage_error(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", GOOD))
    with pytest.raises(StorageError):
        exported(report, write(tmp_path / "file", b"") / "work")


def test_a_stream_is_imported_and_then_exported(workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "opt" / "target-linux-x64", f'cp "$in" {tmp_path}/seen; {GOOD}'))
    imports = f"""echo scribble >> "$2"; printf '{MAGIC.decode()}1.' > "$4" """
    script(tmp_path / "opt" / "host-linux-x64" / "QdstrmImporter", imports)
    stream = write(tmp_path / "in" / "run.qdstrm", STREAM_HEADER)
    before = state(stream.parent)
    assert exported(stream, workdir).exists()
    assert (tmp_path / "seen").read_bytes() == MAGIC + b"1."
    assert state(stream.parent) == before


def test_a_stream_without_an_importer(workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, fake_nsys(tmp_path / "bin", GOOD))
    with pytest.raises(ToolMissing, match=r"without QdstrmImporter.*`QdstrmImporter --input-file run\.qdstrm`"):
        exported(write(tmp_path / "in" / "run.qdstrm", STREAM_HEADER), workdir)


# -- the real nsys


@pytest.fixture(scope="module")
def reports() -> Path:
    folder = os.environ.get("DIAG_REAL_REPORTS")
    if not folder or not Path(folder, "nsys").is_dir():
        pytest.skip("DIAG_REAL_REPORTS names no folder of real reports")
    return Path(folder, "nsys")


def rows(database: Path) -> dict[str, int]:
    """Rows of each table, except those that describe the export itself."""
    with sqlite3.connect(f"file:{database}?immutable=1", uri=True) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for name in tables
            if "META_DATA" not in name and not name.startswith("ENUM_")
        }


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("h200-fuser-2024.6.nsys-rep", "2024.6.2.25"),
        ("jetson-darknet.qdrep", "2021.1.1.66"),
        ("titanrtx-nvtx-22k.nsys-rep", "2022.4.2.1"),
        ("titanrtx-nvtx-only.nsys-rep", "2022.4.2.1"),
        ("v100-julia-one-kernel.nsys-rep", "2023.1.2.43"),
    ],
)
def test_real_reports_say_their_version(reports: Path, name: str, version: str) -> None:
    assert report_version(reports / name) == version


@pytest.mark.parametrize(
    "name", ["titanrtx-nvtx-22k", "titanrtx-nvtx-only", "v100-julia-one-kernel", "h200-fuser-2024.6"]
)
def test_a_real_export_has_the_rows_of_its_sibling(nsys: Nsys, reports: Path, workdir: Path, name: str) -> None:
    report = reports / f"{name}.nsys-rep"
    before = state(reports)
    needed = nsys_tool.parse_version(report_version(report) or "0")
    if nsys.version[:3] < needed[:3]:
        with pytest.raises(ToolMissing, match=f"installed: {nsys.release}"):
            exported(report, workdir)
    else:
        ours, theirs = rows(exported(report, workdir)), rows(reports / f"{name}.sqlite")
        # Newer versions describe processes and strings in other tables; what happened stays where it was.
        events = {table for table in theirs if table.startswith(("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND", "OSRT_API"))}
        compared = events if nsys.version[:3] > needed[:3] else theirs.keys()
        assert events
        assert {table: ours[table] for table in compared} == {table: theirs[table] for table in compared}
    assert state(reports) == before


def test_a_real_qdrep(nsys: Nsys, reports: Path, workdir: Path) -> None:
    before = state(reports)
    counts = rows(exported(reports / "jetson-darknet.qdrep", workdir))
    assert counts["SAMPLING_CALLCHAINS"] > 0
    assert counts["SCHED_EVENTS"] > 0
    assert state(reports) == before


def test_a_real_report_cut_short(nsys: Nsys, reports: Path, workdir: Path, tmp_path: Path) -> None:
    whole = (reports / "titanrtx-nvtx-only.nsys-rep").read_bytes()
    with pytest.raises(InputError, match="damaged or cut short"):
        exported(write(tmp_path / "in" / "cut.nsys-rep", whole[:100_000]), workdir)
    assert list(workdir.iterdir()) == []


@pytest.fixture(scope="module")
def annotated(nsys: Nsys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with seven NVTX ranges."""
    folder = tmp_path_factory.mktemp("annotated")
    source = write(
        folder / "ranges.c",
        b"#include <nvtx3/nvToolsExt.h>\n"
        b'int main(void) { for (int i = 0; i < 7; i++) { nvtxRangePushA("step"); nvtxRangePop(); } return 0; }\n',
    )
    return annotated_program(nsys.path, source, folder)


def test_a_capture_of_our_own(nsys: Nsys, workdir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    capture = capture_of(nsys.path, folder, [sys.executable, "-c", "import time; time.sleep(0.05)"])
    before = state(folder)
    assert report_version(capture) == ".".join(map(str, nsys.version))
    assert rows(exported(capture, workdir))["OSRT_API"] > 0
    assert state(folder) == before


@pytest.fixture
def without_importer(nsys: Nsys, tmp_path: Path) -> Iterator[Path]:
    """The installed nsys as if it had been installed alone: its captures stay .qdstrm."""
    if nsys.importer is None:
        pytest.skip("this nsys comes without QdstrmImporter")
    mirror = tmp_path / "alone" / nsys.path.resolve().parent.name
    mirror.mkdir(parents=True)
    for item in nsys.path.resolve().parent.iterdir():
        # nsys looks for its importer from where its own file lies, so that one file cannot be a link.
        shutil.copy(item, mirror) if item.name == "nsys" else (mirror / item.name).symlink_to(item)
    yield mirror / "nsys"
    shutil.rmtree(mirror)


def test_a_real_stream(nsys: Nsys, without_importer: Path, annotated: Path, workdir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    capture = capture_of(without_importer, folder, [annotated])
    assert capture.suffix == ".qdstrm"
    assert report_version(capture) == ".".join(map(str, nsys.version))
    before = state(folder)
    with sqlite3.connect(exported(capture, workdir)) as db:
        # 59 is NvtxPushPopRange.
        assert db.execute("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59").fetchone() == (7,)
    assert state(folder) == before


def test_the_public_names() -> None:
    assert {"exported", "find_nsys", "Nsys"} <= set(nsys_report.__all__)

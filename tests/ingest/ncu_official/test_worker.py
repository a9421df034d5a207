"""Whatever NVIDIA's library does to its process, diag says one sentence. Libraries that misbehave are stand-ins."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from diag.errors import InputError, StorageError, ToolMissing
from diag.ingest.launch_records import (
    FocusMetric,
    Instance,
    Instruction,
    LaunchRecord,
    Metric,
    OpenRange,
    ProfiledDevice,
    RuleResult,
)
from diag.ingest.ncu_official import frames, package
from diag.ingest.ncu_official.limits import Limits
from diag.ingest.ncu_official.read import read
from tests import interruptible
from tests.cli.conftest import snapshot

QUICK = Limits(wall_s=60.0)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    folder.mkdir()
    path = folder / "kernels.ncu-rep"
    path.write_bytes(b"NVR\x00")
    return path


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module `ncu_report` that a test writes, found before any other by diag and by its workers."""
    folder = tmp_path / "library"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH")))))
    return folder / "ncu_report.py"


def end_by(number: signal.Signals) -> str:
    return f"import os\nos.kill(os.getpid(), {int(number)})"


WRITE_EVERYWHERE = """
import os
for descriptor in range(3, 20):
    try:
        os.write(descriptor, {garbage})
    except OSError:
        pass
os._exit(0)
"""
FRAMES = """
from io import BytesIO
from diag.ingest.launch_records import LaunchRecord
from diag.ingest.ncu_official.frames import End, Failure, SourceFile, write
answer = BytesIO()
"""

MISBEHAVING = {
    "a segmentation fault": (end_by(signal.SIGSEGV), QUICK, "was ended by signal 11 (Segmentation fault)"),
    "an abort": ("import os\nos.abort()", QUICK, "was ended by signal 6 (Aborted)"),
    "killed": (end_by(signal.SIGKILL), QUICK, "was ended by signal 9 (Killed)"),
    "an exit": ("import sys\nsys.exit(3)", QUICK, "ended with status 3"),
    "an exit as if all were well": ("import os\nos._exit(0)", QUICK, "makes no sense: it has no end"),
    "an exception": ("raise RuntimeError('bad\\n\\x1bfile')", QUICK, "gave up (RuntimeError: bad  file)"),
    "not loadable": ("raise ImportError('GLIBC_9.9 not found')", QUICK, "gave up (ImportError: GLIBC_9.9 not found)"),
    "waits forever": ("import signal\nsignal.pause()", Limits(wall_s=1.0), "did not come to an end within 1 s"),
    "works forever": ("while True: pass", Limits(cpu_s=1, wall_s=60.0), "took more than 1 s of a processor"),
    "takes all memory": ("taken = bytearray(1 << 40)", QUICK, "needs more memory than it may have"),
    "takes memory bit by bit": (
        "taken = []\nwhile True: taken.append(bytes(1 << 24))",
        Limits(memory_bytes=1 << 29, wall_s=60.0),
        "needs more memory than it may have",
    ),
    "prints": ("import os\nos.write(1, b'x' * 100_000)\nraise OSError('no')", QUICK, "gave up (OSError: no)"),
    "writes into the answer": (WRITE_EVERYWHERE.format(garbage="b'garbage' * 100"), QUICK, "it holds what is no frame"),
    "writes zeros into the answer": (WRITE_EVERYWHERE.format(garbage="bytes(99)"), QUICK, "it holds what is no frame"),
    "stops in the middle of a frame": (
        f"{FRAMES}write(answer, SourceFile('a', 'b')){WRITE_EVERYWHERE.format(garbage='answer.getvalue()[:-1]')}",
        QUICK,
        "it holds what is no frame",
    ),
    "says another thing than its frame": (
        f"{FRAMES}write(answer, SourceFile('a', 'b'))"
        f"{WRITE_EVERYWHERE.format(garbage='bytes([4]) + answer.getvalue()[1:]')}",
        QUICK,
        "a frame does not hold its record",
    ),
    "goes in circles": (
        f"{FRAMES}write(answer, End(0, 0, 0)){WRITE_EVERYWHERE.format(garbage='answer.getvalue()')}",
        QUICK,
        "it does not get on",
    ),
    "finds nothing": (
        f"{FRAMES}write(answer, End(None, 0, 0)){WRITE_EVERYWHERE.format(garbage='answer.getvalue()')}",
        QUICK,
        "finds no launch in it",
    ),
}


@pytest.mark.parametrize("kind", MISBEHAVING)
def test_a_library_that_misbehaves_is_one_sentence(kind: str, report: Path, library: Path) -> None:
    code, limits, says = MISBEHAVING[kind]
    library.write_text(code)
    before = snapshot(report.parent)

    with pytest.raises(InputError) as raised:
        read(report, limits=limits)

    sentence = str(raised.value)
    assert says in sentence
    assert sentence.startswith("kernels.ncu-rep: ncu-report ")
    assert sentence.endswith("Copy the file again, or leave out --with-ncu-report: diag reads reports itself.")
    assert sentence.isprintable()
    assert snapshot(report.parent) == before


def test_a_launch_that_is_none_is_found_when_it_is_taken(report: Path, library: Path) -> None:
    head = "frames._HEAD.pack(frames.Kind.LAUNCH, 1) + b'x'"
    code = f"{FRAMES}from diag.ingest.ncu_official import frames\nanswer.write({head})\nwrite(answer, End(None, 0, 0))"
    library.write_text(code + WRITE_EVERYWHERE.format(garbage="answer.getvalue()"))
    launches = read(report, limits=QUICK).launches
    with pytest.raises(InputError, match="makes no sense: a frame does not hold its record"):
        next(launches)


def test_what_is_lost_is_counted(report: Path, library: Path) -> None:
    code = f"{FRAMES}write(answer, LaunchRecord('kernel', 'stencil'))\nwrite(answer, End(None, 2, 1))"
    library.write_text(code + WRITE_EVERYWHERE.format(garbage="answer.getvalue()"))
    found = read(report, limits=QUICK)
    assert [launch.name for launch in found.launches] == ["stencil"]
    assert found.problems == [
        "2 damaged launches left out.",
        "1 metric value left out, of metrics whose names are no text.",
    ]


def test_nothing_is_imported_from_the_folder_that_diag_runs_in(
    report: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.write_text("raise ValueError('the right one')")
    for name in ("ncu_report", "msgspec"):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(9)")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="the right one"):
        read(report, limits=QUICK)


def test_without_the_package_it_is_said_where_to_get_it(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "version", lambda: None)
    monkeypatch.setattr(package, "is_offered_here", lambda: True)
    with pytest.raises(ToolMissing, match=r"pip install 'gpu-diag\[ncu\]', or leave out --with-ncu-report"):
        read(report)
    monkeypatch.setattr(package, "is_offered_here", lambda: False)
    with pytest.raises(ToolMissing, match="for Linux on x86-64 only; leave out --with-ncu-report"):
        read(report)


def test_no_room_for_answers_is_a_matter_of_storage(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(StorageError, match="TMPDIR=FOLDER"):
        read(report)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_worker_ends_with_diag(number: signal.Signals, report: Path, library: Path, tmp_path: Path) -> None:
    told = tmp_path / "worker"
    library.write_text(
        "import os, pathlib, signal\n"
        f"pathlib.Path({str(told)!r} + '.part').write_text(str(os.getpid()))\n"
        f"os.rename({str(told)!r} + '.part', {str(told)!r})\n"
        "signal.pause()"
    )
    command: list[str | bytes | Path] = [Path(sys.executable).with_name("diag"), "report", report, "--with-ncu-report"]
    with interruptible.start(command, {**os.environ, "DIAG_CACHE": str(tmp_path / "cache")}) as diag:
        interruptible.wait_until(told.exists, diag)
        diag.send_signal(number)
        diag.wait(10)
    assert interruptible.ended(int(told.read_text()))


# ---- frames --------------------------------------------------------------------------------------------------------


def test_frames_are_what_was_written() -> None:
    device = ProfiledDevice(0, "H200", attributes={"name": "a", "count": 132, "clock": 1.5})
    launch = LaunchRecord(
        kind="kernel",
        name="stencil",
        grid=(1, 2, 3),
        metrics=[Metric("inst_executed", "inst", (1 << 64) - 1, [Instance(16, 2.0), Instance("FADD", None)])],
        ranges=[OpenRange(0, "push", "", "step")],
        rules=[
            RuleResult("Bottleneck", None, None, "ok", None, "é", 12.5, "local", [FocusMetric("a", None, "high", "b")])
        ],
        instructions=[Instruction(16, "FADD R1, R2, R3", "a.cu", 7)],
    )
    file = io.BytesIO()
    frames.write(file, device)
    frames.write(file, launch)
    found = list(frames.frames(file, 0, file.tell()))
    assert [frame.kind for frame in found] == [frames.Kind.DEVICE, frames.Kind.LAUNCH]
    assert frames.decoded(file, found[0], msgspec.msgpack.Decoder(ProfiledDevice)) == device
    assert frames.decoded(file, found[1], msgspec.msgpack.Decoder(LaunchRecord)) == launch


@pytest.mark.parametrize("seed", range(40))
def test_frames_of_garbage_end(seed: int) -> None:
    garbage = random.Random(seed).randbytes(2000)
    with pytest.raises(frames.Garbled):
        list(frames.frames(io.BytesIO(garbage), 0, len(garbage)))


def test_a_worker_holds_itself_to_its_limits() -> None:
    code = (
        "import resource as r; from diag.ingest.ncu_official.limits import Limits; "
        "Limits(memory_bytes=2 << 30, cpu_s=7, answer_bytes=9000).impose(); "
        "print([r.getrlimit(x)[0] for x in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_CORE)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"[{4 << 30}, 7, 9000, 0]\n"

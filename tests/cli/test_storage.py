"""Where cases are kept: the cache and -o. No half case, no leftovers, no input overwritten."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests import interruptible
from tests.cli.conftest import DIAG, Command, small_export, snapshot, stuffed_export

AS_ROOT = os.geteuid() == 0
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2  # linux/prctl.h, linux/capability.h


def _many(folder: Path, count: int) -> list[Path]:
    return [small_export(40 + i).write(folder / f"{i}.sqlite") for i in range(count)]


# ---- full disk ---------------------------------------------------------------------------------------------------


def _limited_to(n_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


@pytest.mark.parametrize("limit", [0, 30_000, 1_000_000])
@pytest.mark.parametrize("options", [(), ("--no-cache",)])
def test_no_room_for_the_case(limit: int, options: tuple[str, ...], diag: Command, tmp_path: Path) -> None:
    path = stuffed_export(tmp_path, 60_000)
    before = snapshot(tmp_path)
    ran = diag("report", path, *options, preexec_fn=lambda: _limited_to(limit))
    sentence = ran.is_one_sentence(3)
    assert "damaged" not in sentence
    assert not diag.cases()
    assert not diag.leftovers()
    assert snapshot(tmp_path) == before


@pytest.mark.skipif(not AS_ROOT, reason="mounting needs root")
def test_a_full_file_system(diag: Command, tmp_path: Path) -> None:
    path = stuffed_export(tmp_path, 60_000)
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=False, capture_output=True
    ).returncode:
        pytest.skip("cannot mount here")
    try:
        cache = Command(small / "cache")
        assert "full" in cache("report", path).is_one_sentence(3)
        assert not cache.cases()
        assert not cache.leftovers()
        assert "Cannot write" in diag("report", path, "-o", small / "kept.diag").is_one_sentence(3)
        assert [file.name for file in small.iterdir()] == ["cache"]
        (small / "filler").write_bytes(bytes((1 << 20) - (256 << 10)))
        assert cache("report", path).status == 3
    finally:
        subprocess.run(["umount", small], check=True)


def test_no_room_for_the_copy(diag: Command, export: Path, tmp_path: Path) -> None:
    kept = tmp_path / "out" / "kept.diag"
    kept.parent.mkdir()
    diag("report", export).is_quiet_success()
    ran = diag("report", export, "-o", kept, preexec_fn=lambda: _limited_to(20_000))
    ran.is_one_sentence(3)
    assert not list(kept.parent.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [("report",), ("report", "--format", "json"), ("query",)])
def test_a_full_disk_behind_stdout(words: tuple[str, ...], diag: Command, export: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [DIAG, words[0], export, *words[1:]],
            env=diag.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ran.returncode == 3
    assert ran.stderr.decode() == "diag: The output cannot be written: No space left on device.\n"


# ---- no place for a cache ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache", ["/proc/none", "/dev/null/x"])
def test_without_a_cache_it_works_all_the_same(cache: str, diag: Command, export: Path) -> None:
    shown = diag("report", export).is_quiet_success()
    assert diag("report", export, env={"DIAG_CACHE": cache}).is_quiet_success() == shown


def test_without_a_home(diag: Command, export: Path) -> None:
    shown = diag("report", export).is_quiet_success()
    homeless = {"DIAG_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/proc/nowhere"}
    assert diag("report", export, env=homeless).is_quiet_success() == shown


def test_no_cache_leaves_nothing(diag: Command, export: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    diag("report", export, "--no-cache", env={"TMPDIR": str(temporary)}).is_quiet_success()
    assert not diag.cases()
    assert not list(temporary.iterdir())


def _held_to_permissions() -> None:
    """Even root: without these two capabilities it may read and write only what the permissions say."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability)


def test_where_nothing_may_be_written(diag: Command, export: Path) -> None:
    shown = diag("report", export, "--format", "json").is_quiet_success()
    export.chmod(0o444)
    export.parent.chmod(0o555)
    (case,) = diag.cases()
    case.chmod(0o444)
    assert diag("report", export, "--format", "json", preexec_fn=_held_to_permissions).is_quiet_success() == shown
    case.unlink()
    diag.cache.chmod(0o555)
    assert diag("report", export, "--format", "json", preexec_fn=_held_to_permissions).is_quiet_success() == shown
    ran = diag("report", export, "-o", export.parent / "x.diag", preexec_fn=_held_to_permissions)
    assert "Permission denied" in ran.is_one_sentence(3)
    diag.cache.chmod(0o755)
    export.parent.chmod(0o755)


def test_what_may_not_be_read(diag: Command, export: Path) -> None:
    export.chmod(0o000)
    assert "Permission denied" in diag("report", export, preexec_fn=_held_to_permissions).is_one_sentence(3)
    export.chmod(0o644)
    export.parent.chmod(0o000)
    assert "Permission denied" in diag("report", export, preexec_fn=_held_to_permissions).is_one_sentence(3)
    assert "Permission denied" in diag("report", export.parent, preexec_fn=_held_to_permissions).is_one_sentence(3)
    export.parent.chmod(0o755)


# ---- killed --------------------------------------------------------------------------------------------------------


def _started_import(diag: Command, path: Path) -> subprocess.Popen[bytes]:
    process = diag.start("report", path)
    deadline = time.monotonic() + 20
    while not list(diag.cache.glob(".making-*/new.diag")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(0.05)
    return process


def test_a_killed_import_leaves_no_case_and_is_tidied_up(diag: Command, tmp_path: Path) -> None:
    path = stuffed_export(tmp_path, 600_000)
    process = _started_import(diag, path)
    process.kill()
    process.communicate()
    assert not diag.cases()
    assert len(diag.leftovers()) == 1

    small = small_export().write(tmp_path / "small.sqlite")
    diag("report", small).is_quiet_success()
    assert not diag.leftovers()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_conversion_that_ends_early_ends_its_tool(number: signal.Signals, diag: Command, tmp_path: Path) -> None:
    tool, report, started = tmp_path / "nsys", tmp_path / "run.nsys-rep", tmp_path / "started"
    tool.write_text(f"""#!/bin/sh
        if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2099.1.1.1-1v0"; exit; fi
        echo $$ > {started}; exec sleep 60
    """)
    tool.chmod(0o755)
    report.write_bytes(b"NVIDIA Tegra Profiler Report 2024.6.2.25" + bytes(100))
    process = diag.start("report", report, "--with-nsys-export", env={"DIAG_NSYS": str(tool)})
    deadline = time.monotonic() + 20
    while not (started.exists() and started.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert interruptible.ended(int(started.read_text()))
    if number == signal.SIGTERM:
        assert (process.returncode, err.count(b"\n")) == (128 + signal.SIGTERM, 1)
        assert not diag.leftovers()


def test_an_import_at_work_is_not_tidied_up(diag: Command, tmp_path: Path) -> None:
    process = _started_import(diag, stuffed_export(tmp_path, 600_000))
    diag("report", small_export().write(tmp_path / "small.sqlite")).is_quiet_success()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert out
    assert not diag.leftovers()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_import_ends_soon_and_leaves_nothing(
    number: signal.Signals, diag: Command, tmp_path: Path
) -> None:
    path = stuffed_export(tmp_path, 600_000)
    before = snapshot(tmp_path)
    process = _started_import(diag, path)
    process.send_signal(number)
    process.send_signal(number)
    started = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - started < 10
    assert err.decode() == "diag: interrupted; nothing was kept of what was being read.\n"
    assert (process.returncode, out) == (128 + number, b"")
    assert not diag.cases()
    assert not diag.leftovers()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("module", ["diag.cli.outcome", "typer", "diag.render", "numpy", "numpy.linalg", "pyarrow.lib"])
def test_an_interrupt_while_modules_load_is_one_line(module: str, diag: Command, export: Path) -> None:
    """NumPy, for one, cannot be loaded again after its loading was interrupted."""
    ended = subprocess.run(
        [sys.executable, Path(__file__).with_name("interrupted.py"), module, "report", export],
        check=False,
        env=diag.environment(),
        capture_output=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # no threads are involved
    )
    assert ended.stderr.decode() == "diag: interrupted; nothing was kept of what was being read.\n"
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGINT, b"")
    assert not diag.leftovers()


@pytest.mark.slow
def test_an_interrupt_at_any_time_is_one_line(diag: Command, tmp_path: Path) -> None:
    path = stuffed_export(tmp_path, 100_000)
    for step in range(60):
        process = diag.start("report", path)
        interruptible.wait_until(partial(interruptible.minds, process, signal.SIGTERM), process)
        time.sleep(step * 0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err.decode()) in (
            (0, ""),
            (130, "diag: interrupted; nothing was kept of what was being read.\n"),
            (130, "diag: interrupted; what was read is kept, and is not read again next time.\n"),
            (-signal.SIGINT, ""),  # after it was done
        ), step
        assert not diag.leftovers()
        for case in diag.cases():
            case.unlink()


# ---- several at once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [2, 6])
def test_imports_of_one_file_at_once(processes: int, diag: Command, tmp_path: Path) -> None:
    path, kept = stuffed_export(tmp_path, 30_000), tmp_path / "kept.diag"
    with ThreadPoolExecutor(processes) as pool:
        runs = list(pool.map(lambda _: diag("report", path, "-o", kept), range(processes)))
    (shown,) = {ran.is_quiet_success() for ran in runs}
    assert len(diag.cases()) == 1
    assert not diag.leftovers()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept.diag", "stuffed.sqlite"]
    assert diag("report", kept).is_quiet_success() == shown


def test_many_imports_in_a_cache_without_room(diag: Command, tmp_path: Path) -> None:
    paths = _many(tmp_path, 3)
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda i: diag("report", paths[i % 3], env={"DIAG_CACHE_BYTES": "1"}), range(9)))
    for ran in runs:
        ran.is_quiet_success()
    assert not diag.leftovers()


# ---- the bound -----------------------------------------------------------------------------------------------------


def test_the_oldest_cases_go_and_the_one_in_use_stays(diag: Command, tmp_path: Path) -> None:
    one, two, three = _many(tmp_path, 3)
    diag("report", one)
    (first,) = diag.cases()
    room = {"DIAG_CACHE_BYTES": str(int(first.stat().st_size * 2.5))}
    diag("report", two, env=room)
    diag("report", one, env=room)  # used again, so that two is the oldest now
    diag("report", three, env=room)
    assert first in diag.cases()
    assert len(diag.cases()) == 2
    diag("report", two, env={"DIAG_CACHE_BYTES": "1"}).is_quiet_success()
    assert len(diag.cases()) == 1


@pytest.mark.parametrize("bound", ["lots", "-1", "1.5", "5X"])
def test_a_bound_that_is_no_size(bound: str, diag: Command, export: Path) -> None:
    assert "DIAG_CACHE_BYTES" in diag("report", export, env={"DIAG_CACHE_BYTES": bound}).is_one_sentence(2)


def test_a_bound_may_have_a_unit(diag: Command, export: Path) -> None:
    diag("report", export, env={"DIAG_CACHE_BYTES": "2G"}).is_quiet_success()


# ---- -o ------------------------------------------------------------------------------------------------------------


def test_a_kept_case_says_the_same_and_opens_in_sqlite(diag: Command, export: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.diag"
    for output_format in ("text", "json", "markdown"):
        shown = diag("report", export, "-o", kept, "--format", output_format).is_quiet_success()
        assert diag("report", kept, "--format", output_format).is_quiet_success() == shown
        assert diag("report", kept, "--format", output_format, "--no-cache").is_quiet_success() == shown
    with closing(sqlite3.connect(kept)) as db:
        assert db.execute("SELECT COUNT(*) FROM gpu_op WHERE kind = 'kernel'").fetchone() == (40,)
    again = tmp_path / "again.diag"
    diag("report", kept, "-o", again).is_quiet_success()
    assert again.read_bytes() == kept.read_bytes()


def test_a_kept_case_replaces_an_older_one(diag: Command, export: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.diag"
    first = diag("report", export, "-o", kept).is_quiet_success()
    assert diag("report", export, "-o", kept).is_quiet_success() == first
    assert sorted(file.name for file in tmp_path.iterdir()) == ["inputs", "kept.diag"]


def test_targets_that_are_refused(diag: Command, export: Path, tmp_path: Path) -> None:
    link, hard = tmp_path / "link.diag", tmp_path / "hard.diag"
    link.symlink_to(export)
    hard.hardlink_to(export)
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    other = small_export(50).write(tmp_path / "other.sqlite")
    before = snapshot(tmp_path)
    for target, why in {
        export: "is an input",
        link: "is an input",
        hard: "is an input",
        tmp_path: "is a folder",
        notes: "is not a diag case",
        other: "is not a diag case",
        tmp_path / "none" / "x.diag": "there is no folder",
        Path("/dev/null"): "is not a diag case",
        Path("/dev/full"): "is not a diag case",
        tmp_path / ("n" * 300): "Cannot write",
    }.items():
        ran = diag("report", export, "-o", target)
        assert why in ran.is_one_sentence(3 if why == "Cannot write" else 2), target
    assert snapshot(tmp_path) == before


def test_a_case_is_not_written_over_itself(diag: Command, export: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.diag"
    diag("report", export, "-o", kept).is_quiet_success()
    assert "is an input" in diag("report", kept, "-o", kept).is_one_sentence(2)


def test_the_same_bytes_under_another_name_are_reported_under_that_name(diag: Command, export: Path) -> None:
    copy = export.with_name("copy.sqlite")
    copy.write_bytes(export.read_bytes())
    diag("report", export, "--format", "json").is_quiet_success()
    shown = diag("report", copy, "--format", "json").is_quiet_success()
    assert shown == diag("report", copy, "--format", "json", "--no-cache").is_quiet_success()
    assert "copy.sqlite" in shown


def test_a_changed_input_is_read_again(diag: Command, export: Path) -> None:
    first = diag("report", export, "--format", "json").is_quiet_success()
    stat = export.stat()
    with closing(sqlite3.connect(export)) as db, db:
        db.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start < 9000")
    os.utime(export, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert diag("report", export, "--format", "json").is_quiet_success() != first


def test_python_is_the_one_of_the_environment() -> None:
    assert DIAG.exists(), f"install diag beside {sys.executable} to run these tests"

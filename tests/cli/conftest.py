"""Runs the installed command as its users do, and holds it to what it promises about any input."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import interruptible, published, warm
from tests.builders.nsys_export import NsysExport

DIAG = Path(sys.executable).with_name("diag")

TIMEOUT_S = 120

FRESH = ("PYTHON", "LANG", "LC_", "LD_", "OMP_", "OPENBLAS_")
"""Beginnings of variables that matter when a process starts."""


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    def is_one_sentence(self, status: int) -> str:
        """The command ended with this status and said why on one line, and nothing else; returns that line."""
        assert self.err.startswith("diag: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert self.err.rstrip().endswith((".", "'", ")")) or ": " in self.err, self.err
        assert self.out == ""
        assert self.status == status, self.err
        return self.err.strip()

    def is_quiet_success(self) -> str:
        assert (self.status, self.err) == (0, "")
        return self.out


@dataclass(frozen=True)
class Command:
    """`diag` with a cache of its own. JSON that it writes is held to its schema."""

    cache: Path

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        return {
            **os.environ,
            "DIAG_CACHE": str(self.cache),
            "DIAG_CEILINGS": str(self.cache / "none"),
            **(changes or {}),
        }

    def __call__(self, *words: str | bytes | Path, env: Mapping[str, str] | None = None, **more: object) -> Outcome:
        if more.keys() <= {"cwd"} and not any(name.startswith(FRESH) for name in env or ()):
            outcome = self._warm(words, self.environment(env), str(more.get("cwd") or Path.cwd()))
        else:
            outcome = self._fresh(words, env, more)
        published.check_output(outcome.out)
        return outcome

    def _warm(self, words: Sequence[str | bytes | Path], env: Mapping[str, str], cwd: str) -> Outcome:
        """In a process that finds its modules loaded."""
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            status = warm.run([os.fsencode(word) for word in words], env, cwd, out, err, TIMEOUT_S)
            return Outcome(status, out.read_bytes().decode(), err.read_bytes().decode())

    def _fresh(
        self, words: Sequence[str | bytes | Path], env: Mapping[str, str] | None, more: Mapping[str, object]
    ) -> Outcome:
        ended = subprocess.run(  # type: ignore[call-overload]
            [DIAG, *words],
            check=False,
            env=self.environment(env),
            capture_output=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            **more,
        )
        return Outcome(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def start(self, *words: str | bytes | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        return interruptible.start([DIAG, *words], self.environment(env))

    def leftovers(self) -> list[str]:
        """What lies in the cache beside whole cases and the digests of inputs."""
        if not self.cache.exists():
            return []
        return sorted(file.name for file in self.cache.iterdir() if file.suffix != ".diag" and file.name != "digests")

    def cases(self) -> list[Path]:
        return sorted(self.cache.glob("*.diag"))


@pytest.fixture
def diag(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return Command(tmp_path_factory.mktemp("cache"))


Snapshot = Mapping[str, tuple[int, int, bytes | None]]


def snapshot(folder: Path) -> Snapshot:
    """Names, times and bytes of everything in a folder. Pipes are not opened."""
    return {
        os.fsdecode(file.relative_to(folder)): (
            file.lstat().st_mtime_ns,
            file.lstat().st_size,
            file.read_bytes() if file.is_file() else None,
        )
        for file in sorted(folder.rglob("*"))
    }


def small_export(kernels: int = 40) -> NsysExport:
    """Some kernels with gaps between them, in one range, on one thread."""
    export = NsysExport()
    main = export.process(100).thread()
    gpu = main.process.gpu(0)
    export.hardware(0)
    for i in range(kernels):
        main.launch(gpu, called=1000 * i, start=1000 * i + 300, end=1000 * i + 700, name=f"gemm_{i % 3}")
    gpu.copy(1000 * kernels, 1000 * kernels + 500, 4096)
    main.range("step", 0, 1000 * kernels)
    return export


def stuffed_export(folder: Path, rows: int) -> Path:
    """An export whose import takes a while."""
    path = small_export().write(folder / "stuffed.sqlite")
    with closing(sqlite3.connect(path)) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")]
        values = ", ".join(
            "n.i * 1000" if name == "start" else "n.i * 1000 + 400" if name == "end" else f't."{name}"'
            for name in names
        )
        db.execute(
            f"""INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
                WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
                SELECT {values} FROM n, (SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1) t"""
        )
    return path


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """An export in a folder of its own, so that a test sees what appears beside it."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    return small_export().write(folder / "report.sqlite")

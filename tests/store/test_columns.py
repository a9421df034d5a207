"""Columns read from a case that other processes use, too."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from diag.store.case import Case
from diag.store.columns import arrays

WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("writing", flush=True)
sys.stdin.readline()
db.execute("COMMIT")
"""


def test_reading_waits_for_who_writes(tmp_path: Path) -> None:
    """As when several reports of one trace are made at once: each stores what it found in the case they share."""
    path = tmp_path / "shared.diag"
    Case.create(path).close()
    pipe = subprocess.PIPE
    # Another process: SQLite's locks are those of processes.
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdin=pipe, stdout=pipe, text=True) as writer:
        assert writer.stdout
        assert writer.stdin
        assert writer.stdout.readline() == "writing\n"
        threading.Timer(0.3, writer.stdin.close).start()
        assert arrays(path, "SELECT 7 AS seven", {"seven": "i8"})["seven"].tolist() == [7]
        assert arrays(path, "SELECT COUNT(*) AS n FROM gpu_op", {"n": "i8"})["n"].tolist() == [0]
    assert writer.returncode == 0

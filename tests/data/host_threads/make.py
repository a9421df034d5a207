"""Makes the captures in this folder: programs with a known fault and their healthy twins, recorded by Nsight Systems.

    python make.py [NAME...]    (needs nsys 2022.4 or newer, gcc, and Linux that lets nsys sample)

Of each export it keeps the program's own events, the stacks and texts that they refer to, and what the file says of its
version: no environment, command line, user or host, and of paths only the last part.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent

OS_CALLS, SAMPLES = ("OSRT_API", "SCHED_EVENTS"), ("OSRT_API", "SCHED_EVENTS", "COMPOSITE_EVENTS")
"""The events that a capture is about; the others would only make it large."""
CAPTURES: dict[str, tuple[tuple[str, ...], list[str | Path]]] = {
    "gil": (OS_CALLS, [sys.executable, HERE / "gil.py", "2"]),
    "gil-alone": (OS_CALLS, [sys.executable, HERE / "gil.py", "0"]),
    "locks": (OS_CALLS, ["./locks", "shared"]),
    "locks-apart": (OS_CALLS, ["./locks", "apart"]),
    "garbage": (SAMPLES, [sys.executable, HERE / "garbage.py", "on"]),
    "garbage-off": (SAMPLES, [sys.executable, HERE / "garbage.py", "off"]),
}
RECORD = ("--trace=osrt", "--sample=process-tree", "--cpuctxsw=process-tree")

STACKS = {
    "OSRT_API": ("OSRT_CALLCHAINS", "callchainId"),
    "COMPOSITE_EVENTS": ("SAMPLING_CALLCHAINS", "id"),
}
"""Where the stacks of events are, and which column refers to them."""
DEEPEST = 8
"""Frames that are kept of each stack, from the leaf on."""
WHOLE = ("ANALYSIS_DETAILS", "ENUM_NSYS_EVENT_TYPE", "ENUM_SAMPLING_THREAD_STATE")
TEXTS = {"OSRT_API": ("nameId",), "OSRT_CALLCHAINS": ("symbol", "module"), "SAMPLING_CALLCHAINS": ("symbol", "module")}
"""Columns that refer to texts."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        build = ["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", str(HERE / "locks.c"), "-o", "locks"]
        subprocess.run(build, cwd=folder, check=True)
        for name in sys.argv[1:] or CAPTURES:
            events, command = CAPTURES[name]
            profile = ["nsys", "profile", *RECORD, "--output", name, *command]
            subprocess.run(profile, cwd=folder, check=True, timeout=60)
            export = ["nsys", "export", "--type=sqlite", f"--output={name}.sqlite", f"{name}.nsys-rep"]
            subprocess.run(export, cwd=folder, check=True, timeout=60)
            reduce(Path(folder) / f"{name}.sqlite", HERE / f"{name}.sqlite", events)


def reduce(source: Path, target: Path, events: tuple[str, ...]) -> None:
    """Copies what the capture is about: events of the process with most of them, and what these refer to."""
    target.unlink(missing_ok=True)
    stacks = [STACKS[name] for name in events if name in STACKS]
    with closing(sqlite3.connect(target)) as db:
        db.execute("ATTACH ? AS src", (str(source),))
        tables = dict(db.execute("SELECT name, sql FROM src.sqlite_master WHERE type = 'table'"))
        for name in (*events, *(name for name, _ in stacks), *WHOLE, "EXPORT_META_DATA", "PROCESSES", "StringIds"):
            db.execute(tables[name])
        process = db.execute(MOST_SWITCHES).fetchone()
        for name in events:
            db.execute(f"INSERT INTO {name} SELECT * FROM src.{name} WHERE globalTid & ~0xFFFFFF = ?", process)
            if name in STACKS:
                stack, column = STACKS[name]
                of = f"id IN (SELECT {column} FROM {name}) AND stackDepth < {DEEPEST}"
                db.execute(f"INSERT INTO {stack} SELECT * FROM src.{stack} WHERE {of}")
        for name in WHOLE:
            db.execute(f"INSERT INTO {name} SELECT * FROM src.{name}")
        db.execute("INSERT INTO EXPORT_META_DATA SELECT * FROM src.EXPORT_META_DATA WHERE name LIKE 'EXPORT_%VERSION%'")
        db.execute("INSERT INTO PROCESSES SELECT * FROM src.PROCESSES WHERE globalPid = ?", process)
        columns = [(name, column) for name in (*events, *(n for n, _ in stacks)) for column in TEXTS.get(name, ())]
        used = " UNION ".join(f"SELECT {column} FROM {name}" for name, column in columns)
        db.execute(f"INSERT INTO StringIds SELECT * FROM src.StringIds WHERE id IN ({used})")
        db.create_function("last_part", 1, lambda text: text.rpartition("/")[2], deterministic=True)
        db.execute("UPDATE StringIds SET value = last_part(value) WHERE value LIKE '/%'")
        db.execute("UPDATE PROCESSES SET name = last_part(name)")
        db.commit()
        db.execute("DETACH src")
        db.execute("VACUUM")


MOST_SWITCHES = "SELECT globalTid & ~0xFFFFFF FROM src.SCHED_EVENTS GROUP BY 1 ORDER BY COUNT(*) DESC"


if __name__ == "__main__":
    main()

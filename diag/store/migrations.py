"""Cases of older schemas: brought up to date on a copy, for a case that belongs to the user is never written."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from diag.errors import InputError
from diag.store.case import APPLICATION_ID, SCHEMA_VERSION
from diag.store.columns import sqlite_uri

STEPS: Mapping[int, str] = {}
"""For each schema version but the newest, the SQL that makes the next one of it. The first version has no past."""


def up_to_date(case: Path, folder: Path) -> Path:
    """`case` itself when there is nothing to do, else a migrated copy in `folder`.

    A file that is no case, newer than this diag or older than the first step is left to Case.open to refuse.
    """
    version = _version(case)
    if version is None or version >= SCHEMA_VERSION or any(v not in STEPS for v in range(version, SCHEMA_VERSION)):
        return case
    copy = folder / f"schema-{SCHEMA_VERSION}-{case.name}"
    shutil.copyfile(case, copy)
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as db:
            for step in range(version, SCHEMA_VERSION):
                db.executescript(f"BEGIN; {STEPS[step]}; PRAGMA user_version = {step + 1}; COMMIT;")
    except sqlite3.Error as error:
        raise InputError(f"{case} is a case of schema {version} that cannot be brought up to date: {error}.") from error
    return copy


def _version(case: Path) -> int | None:
    try:
        with closing(sqlite3.connect(sqlite_uri(case, "immutable"), uri=True)) as db:
            is_case = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
            return int(db.execute("PRAGMA user_version").fetchone()[0]) if is_case else None
    except sqlite3.Error:
        return None

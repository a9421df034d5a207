"""Files of which nothing can be read, among others that can: what a rank left may be empty, cut short or hostile.

Each is a source without rows, with a note that says why. That it is damaged is no evidence against its rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.recorder.rank import SUFFIXES, rank_of
from diag.ingest.stack_dump import rank_in_name
from diag.model.units import count
from diag.store.case import Case

KIND = "unread"
"""Of a file that is damaged so much that nothing tells what it was; the others keep theirs."""


def add_unread(file: InputFile, case: Case, why: str) -> None:
    """Adds a source for it, inside the caller's transaction. `why`: in sentences that name the file."""
    rank = rank_of((), file.path).rank if file.kind == "flight-recorder" else rank_in_name(file.path)
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, is_unread=1, rank=rank,
        rank_origin=None if rank is None else "file name", time_resolution_ns=1,
    )  # fmt: skip
    case.finish_source(source_id, {}, [why])


def check_any_read(case: Case) -> None:
    """Raises InputError, with why the first file cannot be read, where none of them can."""
    unread: Sequence[str] = [row["text"] for row in case.rows(_WHY)]
    if unread and not case.value("SELECT EXISTS (SELECT 1 FROM source WHERE NOT is_unread)"):
        n_others = len(unread) - 1
        others = f" The {count(n_others, 'other file')} cannot be read either." if n_others else ""
        raise InputError(f"{unread[0]}{others}")


_WHY = "SELECT n.text FROM source s JOIN source_note n ON n.source_id = s.id WHERE s.is_unread ORDER BY s.id"


def is_for_a_rank(path: Path) -> bool:
    """Whether a file is called as what a rank leaves behind. An empty log or stack of a rank is no sign of damage."""
    return rank_in_name(path) is not None and path.suffix.lower() in ("", *SUFFIXES)

"""What a plug-in offers that reads files of one more kind: an entry point of `diag.readers` names a `Reader`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diag.ingest.input_file import InputFile
from diag.store.case import Case


@dataclass(frozen=True)
class Reader:
    """How files of one kind are known and read."""

    kind: str
    """As the table `source` has it: lower-case words with hyphens between them, and none of diag's own."""
    name: str
    """What a person calls one such file, in the singular: 'log of nvidia-smi'."""
    looks_like: Callable[[Path, bytes], bool]
    """Whether a file is of this kind, by its first 64 KiB. It is asked only of files that diag itself does not know."""
    read: Callable[[InputFile, Case], object]
    """Adds one source and its rows to the case, inside the caller's transaction, and opens `InputFile.data` to read
    only. Raises InputError for a file that is damaged, in a sentence that says what to do.
    """

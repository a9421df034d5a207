"""The calibrations that a user keeps: one file for each device, where later reports find it."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from diag.errors import InputError, StorageError, UsageError
from diag.ingest.benchmark import load
from diag.model.benchmark import Benchmark, Machine, encoded

_SUFFIX = ".benchmark.json"


def folder() -> Path:
    """DIAG_CEILINGS, else the user's folder for data. Raises StorageError for a user without a home."""
    if chosen := os.environ.get("DIAG_CEILINGS"):
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "diag"
    except RuntimeError as error:
        raise StorageError("There is no home folder. Say where to keep ceilings with DIAG_CEILINGS=FOLDER.") from error


def file_of(machine: Machine) -> Path:
    """Where the calibration of a device lies: the same device on the same host is measured into the same file."""
    identity = repr((machine.kind, machine.name, machine.uuid, machine.host, machine.n_units))
    name = re.sub(r"[^A-Za-z0-9]+", "-", machine.name).strip("-")[:40] or machine.kind
    return folder() / f"{name}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}{_SUFFIX}"


def check_store() -> None:
    """Raises StorageError where nothing can be kept, before anything is measured."""
    place = folder()
    existing = next(path for path in (place, *place.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise StorageError(f"Cannot write in {existing}. Set DIAG_CEILINGS to a folder that you may write.")


def keep(benchmark: Benchmark) -> Path:
    """In the place of the one before. Raises StorageError."""
    file = file_of(benchmark.machine)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"Cannot make {file.parent}: {error.strerror}. Set DIAG_CEILINGS to a folder.") from error
    write(benchmark, file)
    return file


def kept(unreadable: Callable[[InputError], None]) -> list[Benchmark]:
    """All of the user, by file name; each that cannot be read is told, and left out."""
    found = []
    for file in sorted(folder().glob(f"*{_SUFFIX}")):
        try:
            found.append(load(file))
        except InputError as error:
            unreadable(error)
    return found


Kind = Literal["ceilings", "measurements"]
"""What a benchmark is about: a calibration has ceilings, and a launch latency beside them."""


def check_target(target: Path, kind: Kind) -> None:
    """Raises UsageError where a file must not be written: only another benchmark of the same kind is ever replaced."""
    if target.is_dir():
        raise UsageError(f"-o {target} is a folder. Name a file in it, for example: -o {target / 'ceilings.json'}")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"-o {target}: there is no folder {target.parent}. Make it first, or choose another name.")
    if os.path.lexists(target) and not _may_be_replaced(target, kind):
        raise UsageError(f"-o {target} exists and holds no {kind} of diag. Remove it first, or choose another name.")


def _may_be_replaced(file: Path, kind: Kind) -> bool:
    try:
        if not file.is_file():
            return False
        held = load(file)
    except (OSError, InputError):
        return False
    return kind == ("ceilings" if held.ceilings else "measurements")


def write(benchmark: Benchmark, target: Path) -> None:
    """Whole or not at all. Raises StorageError."""
    part = target.with_name(f".diag-{secrets.token_hex(8)}.part")
    try:
        part.write_bytes(encoded(benchmark))
        os.replace(part, target)
    except OSError as error:
        raise StorageError(f"Cannot write {target}: {error.strerror}. Choose another place with -o FILE.") from error
    finally:
        part.unlink(missing_ok=True)

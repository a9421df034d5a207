"""Open Nsight Systems' native files by having an installed nsys export them to SQLite.

Reports are read without it (`nsys_rep`); this way stays for streams (.qdstrm), and as a check (--with-nsys-export).
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.errors import InputError, StorageError, ToolMissing, UsageError
from diag.ingest.nsys_rep.sections import MAGIC
from diag.ingest.nsys_rep.version import report_version
from diag.ingest.nsys_tool import NAMED_BY, Nsys, find_nsys, parse_version, release, run

__all__ = ["STREAM", "SUFFIXES", "Nsys", "capable_nsys", "exported", "find_nsys"]

STREAM = ".qdstrm"
SUFFIXES = (".nsys-rep", ".qdrep", STREAM)
_SQLITE_MAGIC = b"SQLite format 3\x00"
_FIRST_TO_WRITE_NSYS_REP = (2021, 4)


@dataclass(frozen=True)
class _Job:
    """One conversion: the user's file, the tool for it, how long each run may take, and who hears how far it is."""

    path: Path
    nsys: Nsys
    timeout_s: float
    say: Callable[[str], None]


def exported(
    path: Path, workdir: Path, *, timeout_s: float = 1800.0, progress: Callable[[str], None] | None = None
) -> Path:
    """Path of an SQLite export of the .nsys-rep, .qdrep or .qdstrm at `path`, written into `workdir`.

    nsys works on a private copy: it opens its input for writing, and QdstrmImporter does change it. `timeout_s` bounds
    each run of a tool; `progress` hears one line at a time. Raises InputError (not a report, damaged, or too slow),
    ToolMissing (no nsys, or one older than the file), StorageError (`workdir` cannot be written) and UsageError
    (`workdir` is the input's own folder).
    """
    _check_input(path)
    if workdir.resolve() == path.resolve().parent:
        raise UsageError(f"{workdir} holds the input itself; name another folder for its export.")
    job = _Job(path, capable_nsys(path), timeout_s, progress or (lambda _: None))
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".nsys-", dir=workdir) as folder:
            private = Path(folder, "input" + path.suffix.lower())
            shutil.copyfile(path, private)
            report = _import(job, private) if _is_stream(path) else private
            return _export(job, report).replace(workdir / export_name(path))
    except OSError as error:
        raise StorageError(f"Cannot export {path.name} into {workdir}: {error.strerror or error}.") from error


def _check_input(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path.name} is not named like an Nsight Systems report ({', '.join(SUFFIXES)}).")
    if not path.is_file():
        raise InputError(f"{path} does not exist or is not a file.")
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    # Streams of old versions are not known well enough to turn one away by its first bytes.
    if not magic or (magic != MAGIC and not _is_stream(path)):
        raise InputError(f"{path.name} does not begin like an Nsight Systems report; it may be empty or damaged.")


def _is_stream(path: Path) -> bool:
    return path.suffix.lower() == STREAM


def export_name(path: Path) -> str:
    """Differs for two reports of the same name in two folders: `report1` is what nsys calls everything."""
    return f"{path.stem}-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:8]}.sqlite"


# -- which nsys


def capable_nsys(path: Path) -> Nsys:
    """The nsys that will convert this report. Raises ToolMissing, saying what to do, when none here can."""
    written_by = report_version(path)
    needed = parse_version(written_by) if written_by else ()
    nsys = find_nsys()
    if nsys is None:
        named = os.environ.get(NAMED_BY)
        why = "does not answer `--version`" if named and Path(named).exists() else "does not exist"
        silent = f"{NAMED_BY} names {named}, which {why}: correct or unset it"
        raise ToolMissing(_needs(path, needed, silent if named else "no nsys is installed here"))
    if nsys.version[:3] < needed[:3]:
        raise ToolMissing(_needs(path, needed, f"installed: {nsys.release}"))
    if _is_stream(path) and nsys.importer is None:
        raise ToolMissing(_needs(path, needed, f"nsys {nsys.release} at {nsys.path} comes without QdstrmImporter"))
    return nsys


def _needs(path: Path, needed: tuple[int, ...], here: str) -> str:
    author = f"written by Nsight Systems {release(needed)}" if needed else "an Nsight Systems report"
    return (
        f"{path.name}: {author}; {here}. Install {f'version {release(needed)} or newer' if needed else 'it'} "
        "(developer.nvidia.com/nsight-systems, `apt-get install nsight-systems-cli` from NVIDIA's repository, or a "
        f"newer CUDA toolkit), or {_by_hand(path)}."
    )


def _by_hand(path: Path) -> str:
    name, report = shlex.quote(path.name), shlex.quote(path.stem + ".nsys-rep")
    first = f"`QdstrmImporter --input-file {name}` and then " if _is_stream(path) else ""
    target = report if _is_stream(path) else name
    return f"run {first}`nsys export --type sqlite {target}` on the machine that made it and open the .sqlite"


# -- conversion


def _import(job: _Job, stream: Path) -> Path:
    """The report that QdstrmImporter makes of a .qdstrm."""
    assert job.nsys.importer is not None
    report = stream.with_name("imported" + (".nsys-rep" if job.nsys.version >= _FIRST_TO_WRITE_NSYS_REP else ".qdrep"))
    _convert(job, [job.nsys.importer, "--input-file", stream, "--output-file", report], report, MAGIC)
    return report


def _export(job: _Job, report: Path) -> Path:
    """The SQLite file that `nsys export` makes of a report."""
    export = report.with_name("export.sqlite")
    options: list[str | Path] = ["--type", "sqlite", "--output", export, "--force-overwrite", "true"]
    _convert(job, [job.nsys.path, "export", *options, report], export, _SQLITE_MAGIC)
    return export


def _convert(job: _Job, command: Sequence[str | Path], product: Path, magic: bytes) -> None:
    name, tool = job.path.name, f"{Path(command[0]).name} {job.nsys.release}"
    job.say(f"{name}: converting with {tool}")
    try:
        outcome = run(command, timeout_s=job.timeout_s, on_percent=lambda done: job.say(f"{name}: {tool} {done} %"))
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{name}: {tool} did not end within {job.timeout_s:g} s and was stopped. "
            f"To let it take its time, {_by_hand(job.path)}."
        ) from error
    except OSError as error:
        raise ToolMissing(f"Cannot start {command[0]}: {error.strerror or error}.") from error
    if outcome.status != 0:
        said = _last_words(outcome.output) or f"exit status {outcome.status}, no message"
        raise InputError(f"{name}: {tool} failed ({said}). {_advice(job.path)}")
    if not _begins_with(product, magic):
        raise InputError(f"{name}: {tool} reported success but wrote no usable file. {_advice(job.path)}")


def _advice(path: Path) -> str:
    if _is_stream(path):
        return f"A .qdstrm wants the importer of the very version that wrote it: {_by_hand(path)}."
    newer = "" if report_version(path) else ", or newer than this nsys"
    return f"The file may be damaged or cut short{newer}: copy it again, or {_by_hand(path)}."


def _last_words(output: str) -> str:
    """The last line that a person can use: no progress bar, no blank, no control characters."""
    lines = (re.sub(r"[^ -~]", "", line).strip() for line in re.split(r"[\r\n]+", output))
    spoken = [line for line in lines if line and not re.search(r"\d% *\]?$", line)]
    return spoken[-1].removeprefix("std::exception::what: ").rstrip(".")[:300] if spoken else ""


def _begins_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except FileNotFoundError:
        return False

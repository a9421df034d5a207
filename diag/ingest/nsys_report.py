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
from diag.ingest.nsys_rep.magic import MAGIC, STREAM_MAGIC
from diag.ingest.nsys_tool import NAMED_BY, Nsys, find_nsys, parse_version, release, run

__all__ = ["STREAM", "SUFFIXES", "Nsys", "capable_nsys", "exported", "find_nsys"]

REPORTS = (".nsys-rep", ".qdrep")
STREAM = ".qdstrm"
SUFFIXES = (*REPORTS, STREAM)

_HEAD_BYTES = 64
_SQLITE_MAGIC = b"SQLite format 3\x00"
_FIRST_TO_WRITE_NSYS_REP = (2021, 4)


@dataclass(frozen=True)
class _Job:
    """One conversion: the user's file, the tool for it, how long each run may take, and who hears how far it is."""

    path: Path
    is_stream: bool
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
    return _converted(path, workdir, export_name(path), _export, timeout_s, progress)


def imported(
    path: Path, workdir: Path, *, timeout_s: float = 1800.0, progress: Callable[[str], None] | None = None
) -> Path:
    """As `exported`, the report that a stream (.qdstrm) becomes."""
    name = Path(export_name(path)).with_suffix(".nsys-rep").name
    return _converted(path, workdir, name, lambda _, report: report, timeout_s, progress)


def _converted(
    path: Path,
    workdir: Path,
    name: str,
    finish: Callable[[_Job, Path], Path],
    timeout_s: float,
    progress: Callable[[str], None] | None,
) -> Path:
    is_stream_ = is_stream(path, _checked_head(path))
    if workdir.resolve() == path.resolve().parent:
        raise UsageError(f"{workdir} holds the input itself; name another folder for its export.")
    job = _Job(path, is_stream_, capable_nsys(path), timeout_s, progress or (lambda _: None))
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".nsys-", dir=workdir) as folder:
            # The tools go by the name.
            ending = STREAM if is_stream_ else path.suffix.lower() if path.suffix.lower() in REPORTS else REPORTS[0]
            private = Path(folder, "input" + ending)
            shutil.copyfile(path, private)
            report = _import(job, private) if is_stream_ else private
            return finish(job, report).replace(workdir / name)
    except OSError as error:
        raise StorageError(f"Cannot export {path.name} into {workdir}: {error.strerror or error}.") from error


def _checked_head(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(f"{path} does not exist or is not a file.")
    try:
        head = _head(path)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not head or not (head.startswith(MAGIC) or is_stream(path, head)):
        raise InputError(f"{path.name} does not begin like an Nsight Systems report; it may be empty or damaged.")
    return head


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def is_stream(path: Path, head: bytes) -> bool:
    """Whether a file that begins with `head` was never made a report.

    Streams of old versions are not known well enough to go by their first bytes alone.
    """
    return head.startswith(STREAM_MAGIC) or (path.suffix.lower() == STREAM and not head.startswith(MAGIC))


def export_name(path: Path) -> str:
    """Differs for two reports of the same name in two folders: `report1` is what nsys calls everything."""
    return f"{path.stem}-{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:8]}.sqlite"


# -- which nsys


def capable_nsys(path: Path) -> Nsys:
    """The nsys that will convert this report. Raises ToolMissing, saying what to do, when none here can."""
    from diag.ingest.nsys_rep.version import report_version

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
    if nsys.importer is None and is_stream(path, _head(path)):
        raise ToolMissing(_needs(path, needed, f"nsys {nsys.release} at {nsys.path} comes without QdstrmImporter"))
    return nsys


def _needs(path: Path, needed: tuple[int, ...], here: str) -> str:
    author = f"written by Nsight Systems {release(needed)}" if needed else "an Nsight Systems report"
    return (
        f"{path.name}: {author}; {here}. Install {f'version {release(needed)} or newer' if needed else 'it'} "
        "(developer.nvidia.com/nsight-systems, `apt-get install nsight-systems-cli` from NVIDIA's repository, or a "
        f"newer CUDA toolkit), or {_otherwise(path)}."
    )


def _otherwise(path: Path) -> str:
    """What can be done without this nsys."""
    if is_stream(path, _head(path)):
        name = shlex.quote(path.name)
        return f"run `QdstrmImporter --input-file {name}` on the machine that made it and open the .nsys-rep"
    return "leave out --with-nsys-export: diag reads reports itself"


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
            f"To let it take its time, {_otherwise(job.path)}."
        ) from error
    except OSError as error:
        raise ToolMissing(f"Cannot start {command[0]}: {error.strerror or error}.") from error
    if outcome.status != 0:
        said = _last_words(outcome.output) or f"exit status {outcome.status}, no message"
        raise InputError(f"{name}: {tool} failed ({said}). {_advice(job)}")
    if not _begins_with(product, magic):
        raise InputError(f"{name}: {tool} reported success but wrote no usable file. {_advice(job)}")


def _advice(job: _Job) -> str:
    from diag.ingest.nsys_rep.version import report_version

    written_by = report_version(job.path)
    is_of_this_version = written_by is not None and parse_version(written_by)[:3] == job.nsys.version[:3]
    if job.is_stream and not is_of_this_version:
        return f"A .qdstrm wants the importer of the very version that wrote it: {_otherwise(job.path)}."
    newer = "" if written_by else ", or newer than this nsys"
    return f"The file may be damaged or cut short{newer}: copy it again, or {_otherwise(job.path)}."


def _last_words(output: str) -> str:
    """The last line that a person can use: no progress bar, no brace alone, no control characters."""
    lines = (re.sub(r"[^ -~]", "", line).strip() for line in re.split(r"[\r\n]+", output))
    spoken = [line for line in lines if re.search(r"\w{2}", line) and not re.search(r"\d% *\]?$", line)]
    return spoken[-1].removeprefix("std::exception::what: ").rstrip(".")[:300] if spoken else ""


def _begins_with(path: Path, magic: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(magic)) == magic
    except FileNotFoundError:
        return False

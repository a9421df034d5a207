"""What kind of file an input is, decided by its content and never by its name alone."""

from __future__ import annotations

import re
import stat
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from diag.errors import InputError, PluginError
from diag.ingest import kineto, nsys_report, plugin_readers, topology
from diag.ingest.benchmark import looks_like_benchmark
from diag.ingest.heartbeat import looks_like_heartbeat
from diag.ingest.job_log.ras_json import looks_like_ras
from diag.ingest.job_log.signs import looks_like_job_log
from diag.ingest.memory_snapshot import magic as memory_snapshot
from diag.ingest.memory_snapshot.magic import looks_like_snapshot
from diag.ingest.nccl_tests import read as nccl_tests
from diag.ingest.nccl_tests.written import looks_like_json
from diag.ingest.ncu_output import detect as ncu_output
from diag.ingest.ncu_output.lines import decoded, lines_of
from diag.ingest.ncu_rep import magic as ncu
from diag.ingest.nsys_rep.magic import MAGIC
from diag.ingest.recorder.magic import is_pickle, looks_like_dump
from diag.ingest.serving.signs import kind_of_serving
from diag.ingest.stack_dump import looks_like_stack_dump
from diag.store.kept_file import is_case

HEAD_BYTES = 64 << 10

_JSON = re.compile(rb"\s*(\{\s*[\"}]|[\[\s]*\[\s*([]{\"\d-]|true\b|false\b|null\b))")
"""How an object or a list begins, as a table of TOML does not."""

_SQLITE = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"
_LFS_POINTER = b"version https://git-lfs.github.com/spec"
_OTHER_KINDS = {
    **{
        bytes((0x80, protocol)): "a Python pickle, which diag never loads because loading one can run code"
        for protocol in range(2, 6)
    },
    b"PK\x03\x04": "a zip archive; unpack it and pass the files inside",
    b"(\xb5/\xfd": "compressed with zstd; decompress it with: unzstd FILE",
}


class UnknownKind(InputError):
    """The file may be whole, but diag has no reader for it. `what` says what it is, without its name."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} is {what}. diag reads: {READABLE}.{plugin_readers.said()}")
        self.what = what


def detect(path: Path) -> str:
    """The kind of an input, e.g. 'nsys-sqlite' or 'kineto'; or 'case'.

    Raises InputError, saying what the file is and what to do, for anything else.
    """
    head = read_head(path)
    if head.startswith(_SQLITE):
        return "case" if is_case(head) else "nsys-sqlite"
    if head.startswith(ncu.MAGIC):
        return "ncu-report"
    if nsys_report.is_stream(path, head):
        return "nsys-stream"
    if head.startswith(MAGIC) or path.suffix.lower() in nsys_report.REPORTS:
        return "nsys-report"
    plain = _plain_head(path, head) if head.startswith(_GZIP) else head
    if kineto.looks_like_kineto(plain):
        return "kineto"
    if looks_like_snapshot(head):
        return memory_snapshot.KIND
    if looks_like_benchmark(head):
        return "benchmark"
    if looks_like_heartbeat(head):
        return "heartbeat"
    if (serving := kind_of_serving(head)) is not None:
        return serving
    if looks_like_dump(head):
        return "flight-recorder"
    if looks_like_ras(head):
        return "nccl-ras"
    if looks_like_json(head):
        return nccl_tests.KIND
    if path.suffix.lower() == ".gz" and not head.startswith(_GZIP):
        raise InputError(f"{path} is named .gz but is no gzip file. Copy it again from where it was made.")
    if (printed := _printed_by_ncu(path, head)) is not None:
        return printed
    if (text := decoded(head)) is not None and (kind := _kind_of_text(text.splitlines())) is not None:
        return kind
    if looks_like_job_log(path, head):
        return "job-log"
    if looks_like_stack_dump(head):
        return "stack-dump"
    return _kind_by_plugins(path, head, _name_of(plain))  # last: what diag reads itself stays its own


def _kind_by_plugins(path: Path, head: bytes, what: str) -> str:
    try:
        kind = plugin_readers.kind_of(path, head)
    except PluginError as error:
        raise UnknownKind(path, f"{what}, and {error}") from error
    if kind is None:
        raise UnknownKind(path, what)
    return kind


def is_other_json(path: Path) -> bool:
    """Whether a file holds a JSON object that is no trace or serving result, as a report of diag does.

    Raises InputError as `detect`.
    """
    head = read_head(path)
    is_input = kineto.looks_like_kineto(head) or kind_of_serving(head) is not None
    return head.lstrip()[:1] == b"{" and not is_input


def is_begun_data(path: Path) -> bool:
    """Whether a file of no known kind begins as a pickle or JSON, whose rest may be lost. Raises as `detect`."""
    head = read_head(path)
    return is_pickle(head) or _JSON.match(head) is not None


READABLE = (
    "Nsight Systems reports (.nsys-rep, .qdrep, .qdstrm) and their SQLite exports, Nsight Compute reports (.ncu-rep) "
    "and what ncu prints (with or without --csv), PyTorch profiler traces (.json, .json.gz), dumps of its "
    "flight recorder and snapshots of its allocator (pickle or JSON), stacks (of py-spy dump and Python's "
    "faulthandler), heartbeats (of diag.collect.heartbeat), logs of distributed jobs (lines of NCCL, PyTorch's "
    "watchdog, torchrun or Slurm), the status that ncclras prints (as text or JSON), what nccl-tests prints or writes "
    "as JSON, nvidia-smi topo -m, benchmarks (of diag calibrate and diag probe run), serving logs (of diag probe "
    "serve), results of serving benchmarks (of vLLM, SGLang, GenAI-Perf, AIPerf and guidellm), metrics pages and logs "
    "of vLLM and SGLang, and diag cases"
)


def read_head(path: Path) -> bytes:
    """The first bytes of a file. Raises InputError when it is missing, no file, empty, or a Git LFS pointer."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its other end
            raise InputError(f"{path} is not a file but a pipe, device or folder. Save it to a file first.")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    if not head:
        raise InputError(f"{path} is empty. Was the capture interrupted, or the disk full?")
    if head.startswith(_LFS_POINTER):
        raise InputError(f"{path} is a Git LFS pointer, not the file itself. Fetch it with: git lfs pull")
    return head


def _printed_by_ncu(path: Path, head: bytes) -> str | None:
    """'ncu-csv' or 'ncu-text'. A program may print much before ncu prints its results: then ncu's own remarks tell."""
    if (text := decoded(head)) is None:
        return None
    lines = text.splitlines()
    kind = ncu_output.kind_of(lines)
    if kind is None and any(map(ncu_output.is_remark, lines)):
        kind = ncu_output.kind_of(islice(lines_of(path), LINES_OF_LOG))
    if kind is None and (what := ncu_output.other_output(lines)) is not None:
        raise UnknownKind(path, what)
    return kind


def _kind_of_text(lines: Sequence[str]) -> str | None:
    """Of what programs print. Logs come last: NCCL writes its own into the output of nccl-tests, too."""
    if nccl_tests.looks_like_nccl_tests(lines):
        return nccl_tests.KIND
    if topology.looks_like_topology(lines):
        return topology.KIND
    return None


LINES_OF_LOG = 1_000_000
"""Lines in which results are looked for."""


def _plain_head(path: Path, head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error as error:
        raise InputError(f"{path} is a damaged gzip file: {error}. Copy it again from where it was made.") from error


def _name_of(head: bytes) -> str:
    for mark, name in _OTHER_KINDS.items():
        if head.startswith(mark):
            return name
    if not head:
        return "a gzip file that holds nothing"
    if _JSON.match(head):
        return "JSON, but not a trace of the PyTorch profiler: it has no trace events"
    return "of a kind that diag does not know"

"""The JSON file that nccl-tests writes with -J, in versions since 2025. Its environment variables are not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from diag.errors import InputError
from diag.ingest.nccl_tests.timed import MOST_ROWS, PROGRAMS, Found, Timed, program_in
from diag.model.collective import Primitive

MOST_BYTES = 64 << 20


class _Device(msgspec.Struct):
    hostname: str = ""
    device_info: str = ""


class _Config(msgspec.Struct):
    nthreads: int = 1
    ngpus: int = 1
    iterations: int | None = None
    devices: list[_Device] = []


class _Result(msgspec.Struct):
    time: float | str | None = None  # µs; absent where the time of the CPU was asked for
    nwrong: float | None = None


class _Row(msgspec.Struct):
    size: int
    type: str = ""
    redop: str = "none"
    out_of_place: _Result | None = None
    in_place: _Result | None = None


class _File(msgspec.Struct):
    args: list[str]
    config: _Config
    results: list[_Row] = []


def looks_like_json(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"version"' in head[:64] and b'"start_time"' in head[:128]


def read_json(path: Path) -> Found:
    """Raises InputError when the file is damaged, too large, or written by another program."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than results of nccl-tests can be ({MOST_BYTES >> 20} MiB).")
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(f"{path} is no whole result of nccl-tests ({said}). Was the test interrupted?") from error
    program = program_in(PurePosixPath(file.args[0]).name) if file.args else None
    op = PROGRAMS.get(program or "")
    if op is None:
        return Found([], [f"{program or 'The program'} is no collective that diag compares."])
    return Found([timed for row in file.results[:MOST_ROWS] for timed in _timed(file.config, op, row)])


def _timed(config: _Config, op: Primitive, row: _Row) -> Iterator[Timed]:
    """nccl-tests lists one device of each process, whatever number of GPUs that has."""
    names = {device.device_info for device in config.devices}
    for is_in_place, result in ((False, row.out_of_place), (True, row.in_place)):
        if result is None or not isinstance(result.time, float):
            continue
        found = Timed(
            op=op,
            n_ranks=len(config.devices) * config.nthreads * config.ngpus,
            size_bytes=row.size,
            time_ns=result.time * 1e3,
            is_in_place=is_in_place,
            n_hosts=len({device.hostname for device in config.devices}),
            device_name=next(iter(names)) if len(names) == 1 else None,
            dtype=row.type,
            reduction=None if row.redop == "none" else row.redop,
            repeats=config.iterations,
            n_wrong=_whole(result.nwrong),
        )
        if found.is_possible:
            yield found


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and 0 <= value < 2**62 else None

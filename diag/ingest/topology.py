"""Reader of `nvidia-smi topo -m`: how the GPUs and network cards of a host reach each other.

A matrix whose header names the devices and then columns about CPUs, of which versions have different ones; network
cards are NIC0 … with a legend behind, or go by their own names in versions before 2021. The header may be underlined
with escape codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.ncu_output.lines import lines_of
from diag.model import units
from diag.store.case import Case

KIND = "topology"
MOST_DEVICES = 512

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
_KIND = re.compile(r"NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC|PSB|C2C")
_ITSELF = "X"


@dataclass(frozen=True)
class Link:
    a: str
    b: str
    kind: str


@dataclass(frozen=True)
class Matrix:
    """`links` has each pair once, in the order of the header."""

    devices: Sequence[str]
    links: Sequence[Link]
    notes: Sequence[str]


def looks_like_topology(lines: Sequence[str]) -> bool:
    """Whether a header is followed by the row of a device."""
    return any(
        devices and _is_row(devices, _cells(row)) for devices, row in zip(map(_header, lines), lines[1:], strict=False)
    )


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id."""
    matrix = read_matrix(lines_of(file.data))
    if not matrix.links:
        raise InputError(
            f"{file.path} holds no link between two devices. On a host with several GPUs: nvidia-smi topo -m > FILE"
        )
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool="nvidia-smi",
        time_resolution_ns=1,
    )  # fmt: skip
    case.insert(
        "link", [{"source_id": source_id, "a": each.a, "b": each.b, "kind": each.kind} for each in matrix.links]
    )
    case.finish_source(source_id, {"link": len(matrix.links)}, matrix.notes)
    return source_id


def read_matrix(lines: Iterable[str]) -> Matrix:
    """The first matrix of a text; what of it is damaged is noted and left out."""
    devices: list[str] = []
    kinds: dict[tuple[str, str], str] = {}
    notes: list[str] = []
    for line in lines:
        if header := _header(line):
            if devices:
                notes.append("The file holds several matrices; the first one was read.")
                break
            devices = header
            continue
        cells = _cells(line)
        if not devices or not cells or cells[0] not in devices:
            continue
        if not _is_row(devices, cells):
            notes.append(f"The row of {cells[0]} is damaged and was left out.")
            continue
        pairs = {(cells[0], other): kind for other, kind in zip(devices, cells[1:], strict=False) if other != cells[0]}
        known = {pair: kind for pair, kind in pairs.items() if _KIND.fullmatch(kind)}
        if len(known) < len(pairs):
            notes.append(f"{units.count(len(pairs) - len(known), 'cell')} of {cells[0]} name no kind of link.")
        kinds |= known
    return Matrix(devices, list(_pairs(devices, kinds)), notes)


def _pairs(devices: Sequence[str], kinds: dict[tuple[str, str], str]) -> Iterator[Link]:
    """Each pair once, from the row of either."""
    for at, a in enumerate(devices):
        for b in devices[at + 1 :]:
            if kind := kinds.get((a, b)) or kinds.get((b, a)):
                yield Link(a, b, kind)


def _header(line: str) -> list[str]:
    """The devices that a header names, before the columns about CPUs; none for another line."""
    cells = _cells(line)
    if not cells or cells[0] != "GPU0" or _ITSELF in cells:
        return []
    before = cells[: cells.index("CPU")] if "CPU" in cells else cells
    return before if len(before) <= MOST_DEVICES and all(map(_DEVICE.fullmatch, before)) else []


def _is_row(devices: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether it is whole: a device has itself at its own place."""
    if not cells or cells[0] not in devices or len(cells) <= len(devices):
        return False
    return cells[1 + devices.index(cells[0])] == _ITSELF


def _cells(line: str) -> list[str]:
    return _ESCAPE.sub("", line[:100_000]).split()

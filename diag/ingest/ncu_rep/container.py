"""The file of a report: a mark, a header, and blocks, each a header of its own and a payload of messages.

Sizes are the file's own claims and are checked before anything is read (Customization Guide, tables 1 to 3).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO, Literal

from google.protobuf.message import DecodeError

from diag.errors import InputError
from diag.ingest.ncu_rep.magic import MAGIC
from diag.ingest.ncu_rep.messages import BlockHeader, FileHeader

LARGEST_MESSAGE_BYTES = 1 << 30
"""protobuf itself refuses messages of 2 GiB."""

Kind = Literal["source", "kernel", "range", "command list", "graph", "unknown"]
RESULTS: Sequence[Kind] = ("kernel", "range", "command list", "graph")

MOST_BLOCKS = 1 << 20
"""A report has one for each launch, and a dozen others."""

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Block:
    """A block's header, decoded, and where its payload lies."""

    header: Any
    start: int
    end: int

    def kinds(self) -> Iterator[Kind]:
        """What the messages of the payload are, in their order; endless, for there may be more than the header says."""
        header = self.header
        numbers: Mapping[Kind, int] = {
            "source": header.n_sources,
            "kernel": header.n_results,
            "range": header.n_ranges,
            "command list": header.n_command_lists,
            "graph": header.n_graphs,
        }
        for kind, n in numbers.items():
            yield from repeat(kind, n)
        yield from repeat("unknown")


@dataclass(frozen=True)
class Container:
    """What the file holds, without its payloads. `is_cut`: it ends before its last block does."""

    path: Path
    version: int
    blocks: tuple[Block, ...]
    is_cut: bool

    def messages(self) -> Iterator[tuple[Kind, Block, bytes]]:
        """The whole messages of all payloads; of a payload that is cut, or whose lengths are wrong, the first ones."""
        with self.path.open("rb") as file:
            for block in self.blocks:
                file.seek(block.start)
                kinds = block.kinds()
                while file.tell() < block.end:
                    try:
                        message = _message(file, block.end)
                    except ValueError:
                        break
                    yield next(kinds), block, message


def opened(path: Path) -> Container:
    """Raises InputError when the file is no report or holds no whole block."""
    with path.open("rb") as file:
        n_bytes = file.seek(0, os.SEEK_END)
        file.seek(0)
        if file.read(len(MAGIC)) != MAGIC:
            raise InputError(f"{path} is not an Nsight Compute report: it does not begin as one.")
        try:
            header = FileHeader.FromString(_message(file, n_bytes))
        except (ValueError, DecodeError) as error:
            raise InputError(f"{path} is a damaged Nsight Compute report: {error}. Copy it again.") from error
        if not header.HasField("version"):
            raise InputError(f"{path} is a damaged Nsight Compute report: its header says nothing. Copy it again.")
        blocks, is_cut = _blocks(file, n_bytes)
    if not blocks:
        raise InputError(f"{path} is an Nsight Compute report that is cut before its first launch. Copy it again.")
    return Container(path, header.version, blocks, is_cut)


def _blocks(file: BinaryIO, n_bytes: int) -> tuple[tuple[Block, ...], bool]:
    blocks: list[Block] = []
    while file.tell() < n_bytes:
        if len(blocks) == MOST_BLOCKS:
            return tuple(blocks), True
        try:
            header = BlockHeader.FromString(_message(file, n_bytes))
        except (ValueError, DecodeError):
            return tuple(blocks), True
        start = file.tell()
        blocks.append(Block(header, start, min(start + header.payload_bytes, n_bytes)))
        if start + header.payload_bytes > n_bytes:
            return tuple(blocks), True
        file.seek(start + header.payload_bytes)
    return tuple(blocks), False


def _message(file: BinaryIO, end: int) -> bytes:
    """The message behind its length. Raises ValueError when it is longer than what holds it."""
    prefix = file.read(_LENGTH.size)
    if len(prefix) < _LENGTH.size:
        raise ValueError("a length is cut")
    (length,) = _LENGTH.unpack(prefix)
    if length > min(end - file.tell(), LARGEST_MESSAGE_BYTES):
        raise ValueError("a message is longer than what holds it")
    return file.read(length)

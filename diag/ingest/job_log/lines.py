"""The lines of a log that hold one of some marks, found without looking at the others one by one.

A log of a long job has gigabytes of which a thousandth means something. `bytes.find` runs through a megabyte in less
than a millisecond; what Python itself touches are the lines that it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

BLOCK_BYTES = 1 << 20

_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,20}m")
"""Launchers colour the labels that they put before lines."""

LONGEST_LINE = 8 << 10
"""Bytes around a mark that are looked at. NCCL's longest lines, of trees over 32 channels, have one kilobyte."""


@dataclass(frozen=True, slots=True)
class Line:
    number: int  # from 1
    text: str


@dataclass(frozen=True)
class Marks:
    """What a family of messages is found by: without any of its gates in a block, none of its marks is looked for."""

    gates: Sequence[bytes]
    marks: Sequence[bytes]

    @cached_property
    def _texts(self) -> Sequence[str]:
        return [mark.decode() for mark in self.marks]

    def are_in(self, text: str) -> bool:
        """Whether a line has one of the marks, whichever family it was found by."""
        return any(mark in text for mark in self._texts)


def marked_lines(stream: BinaryIO, families: Sequence[Marks]) -> Iterator[Line]:
    """Each line with a mark, once. Of a line that is longer than any message only the part around the mark is given."""
    for first, block in blocks(stream):
        number, counted, done = first, 0, 0
        for at in sorted(_marked(block, families)):
            if at < done:
                continue
            start = max(block.rfind(b"\n", max(at - LONGEST_LINE, done), at) + 1, at - LONGEST_LINE, done)
            end = block.find(b"\n", at, at + LONGEST_LINE)
            done = end if end >= 0 else min(at + LONGEST_LINE, len(block))
            number += block.count(b"\n", counted, start)
            counted = start
            line = _rewritten(block[start:done], at - start)
            yield Line(number, _COLOUR.sub(b"", line).decode("utf-8", "replace"))


def blocks(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Whole lines, and the number of the first of them."""
    number, rest = 1, b""
    while data := stream.read(BLOCK_BYTES):
        end = data.rfind(b"\n") + 1
        if end:
            block = rest + data[:end]
            yield number, block
            number += block.count(b"\n")
            rest = data[end:]
        else:
            rest = (rest + data)[:BLOCK_BYTES]
    if rest:
        yield number, rest


def _marked(block: bytes, families: Sequence[Marks]) -> set[int]:
    found: set[int] = set()
    for family in families:
        if any(gate in block for gate in family.gates):
            for mark in family.marks:
                found.update(_places(block, mark))
    return found


def _places(block: bytes, mark: bytes) -> Iterator[int]:
    at = block.find(mark)
    while at >= 0:
        yield at
        at = block.find(mark, at + len(mark))


def _rewritten(line: bytes, at: int) -> bytes:
    """The part between carriage returns: a progress bar writes its line again and again, and others write into it."""
    if b"\r" not in line:
        return line
    end = line.find(b"\r", at)
    return line[line.rfind(b"\r", 0, at) + 1 : end if end >= 0 else len(line)]

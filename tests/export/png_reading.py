"""Just enough PNG to look at pixels: eight bits a channel, not interlaced."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Picture:
    width: int
    height: int
    mode: int  # colour type of the format: 6 is RGBA
    pixels: NDArray[np.uint8]  # rows × columns × channels

    def ink(self, left: float, top: float, right: float, bottom: float) -> float:
        """Share of the pixels of an area that differ from its corner."""
        area = self.pixels[round(top) : round(bottom), round(left) : round(right)]
        return float((area != area[0, 0]).any(axis=2).mean())


def picture(png: bytes) -> Picture:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        data = png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length)[0] == zlib.crc32(kind + data)
        chunks[kind] = chunks.get(kind, b"") + data
        at += 12 + length
    assert at == len(png)
    width, height, depth, mode, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, interlaced) == (8, 0)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[mode]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    return Picture(width, height, mode, _unfiltered(rows, channels).reshape(height, width, channels))


def _unfiltered(rows: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """PNG specification, section 9: each row is a difference to the pixel before it, above it or both."""
    made = np.zeros((len(rows) + 1, rows.shape[1] - 1 + channels), np.int64)
    for number, row in enumerate(rows, 1):
        kind, here, above = int(row[0]), made[number], made[number - 1]
        for at in range(channels, len(here)):
            left, up, corner = int(here[at - channels]), int(above[at]), int(above[at - channels])
            guess = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
            here[at] = (int(row[1 + at - channels]) + guess) % 256
    return made[1:, channels:].astype(np.uint8)


def _paeth(left: int, up: int, corner: int) -> int:
    about = left + up - corner
    return min((left, up, corner), key=lambda value: abs(about - value))

"""What a PCIe link can carry in one direction, before the headers of packets."""

from __future__ import annotations

from collections.abc import Mapping

LANE_BYTES_PER_S: Mapping[int, float] = {
    1: 2.5e9 * 8 / 10 / 8,
    2: 5e9 * 8 / 10 / 8,
    3: 8e9 * 128 / 130 / 8,
    4: 16e9 * 128 / 130 / 8,
    5: 32e9 * 128 / 130 / 8,
    6: 64e9 * 242 / 256 / 8,
}
"""By generation: transfers/s x encoding (PCI Express Base Specification: 8b/10b, 128b/130b, from 6.0 on flits)."""


def link_bytes_per_s(generation: int, width: int) -> float | None:
    """Of `width` lanes; None for a generation that is not known here.

    >>> round(link_bytes_per_s(5, 16) / 1e9, 1), link_bytes_per_s(9, 16)
    (63.0, None)
    """
    lane = LANE_BYTES_PER_S.get(generation)
    return None if lane is None else lane * width

"""Which seeds are tried: a few each time, a thousand in `make test-all`. The same seed makes the same mutation."""

from __future__ import annotations

import random
import zlib

import pytest

FEW, ALL = 40, 1000

every_seed = pytest.mark.parametrize(
    "seed", [*range(FEW), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(FEW, ALL))]
)
"""Marks a test that is tried with every seed; the one that failed runs alone as `pytest 'FILE::TEST[SEED]'`."""


def chance_of(reader: str, seed: int) -> random.Random:
    """A generator of its own for each reader, so that none repeats what another has tried."""
    return random.Random(zlib.crc32(reader.encode()) << 32 | seed)

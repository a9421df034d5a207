"""Shapes of probes that work on the rows of a matrix."""

from __future__ import annotations

from collections.abc import Mapping

from diag.probes.probe import Device, Scale, Shape

ROWS: Mapping[Device, Mapping[Scale, Shape]] = {
    "cpu": {
        "tiny": {"rows": 256, "columns": 512},
        "small": {"rows": 4096, "columns": 1024},
        "full": {"rows": 16384, "columns": 1024},
    },
    "cuda": {
        "tiny": {"rows": 256, "columns": 512},
        "small": {"rows": 32768, "columns": 2048},
        "full": {"rows": 65536, "columns": 4096},
    },
}

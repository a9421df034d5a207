"""Tests of NVIDIA's package run wherever NVIDIA publishes it: there, it is one of the tools of development."""

from __future__ import annotations

import pytest

from diag.ingest.ncu_official import package


def official_reader() -> None:
    """Skips the test where the package does not exist, and fails it where it does and is not installed."""
    if package.version() is None:
        if not package.is_offered_here():
            pytest.skip("NVIDIA publishes ncu-report for Linux on x86-64 only")
        pytest.fail("ncu-report is not installed. Run: make dev")

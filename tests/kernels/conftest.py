"""Where kernels run: on a GPU, or without one in Triton's interpreter (tests/conftest.py chooses it)."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("torch") is None or find_spec("triton") is None:
    pytest.skip("torch and triton are not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

import torch


@pytest.fixture
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def generator(device: str) -> torch.Generator:
    """Random numbers that are the same in every run."""
    return torch.Generator(device).manual_seed(20)

"""Kernels run in Triton's interpreter where there is no GPU, which must be chosen before any kernel is decorated."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

if find_spec("torch") is None or find_spec("triton") is None:
    pytest.skip("torch and triton are not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def generator(device: str) -> torch.Generator:
    """Random numbers that are the same in every run."""
    return torch.Generator(device).manual_seed(20)

"""Probes need PyTorch; what they measure on this machine is small here."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from diag.probes.probe import Probe, Setup

if find_spec("torch") is None:
    pytest.skip("torch is not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

import torch

torch.set_num_threads(1)  # which wait for no other one when tests share a machine

CACHE_BYTES = 1 << 20
"""Of tests: few sets of buffers are past it."""


def tiny(probe: Probe, **sizes: int) -> Setup:
    shape = {**probe.shapes["cpu"]["tiny"], **sizes}
    return Setup("cpu", probe.dtypes["cpu"][0], shape, CACHE_BYTES)

"""The real pynvml over a small library in C: what diag passes arrives, and what comes back is read as written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pynvml", reason="needs nvidia-ml-py")

ROOT = Path(__file__).parents[2]
STUB = Path(__file__).with_name("nvml_stub.c")

PROGRAM = """
from dataclasses import replace

from diag.collect.nvml import Nvml
from diag.model.live import GpuProcess, Xid

processes = (GpuProcess(41, 1 << 33, "compute"), GpuProcess(42, None, "compute"))
with Nvml() as nvml:
    assert (nvml.untold, nvml.driver) == ({}, "570.1"), nvml.untold
    assert [gpu.xids for gpu in nvml.read(7)] == [(), (Xid(79, 7),), ()]
    first, second, instance = nvml.read(8)
    assert (first.uuid, first.name) == ("GPU-1000", "GPU \\\\xff"), first.name
    assert (instance.uuid, instance.parent_uuid, instance.mig_profile) == ("GPU-2000", "GPU-1001", None)
    assert (first.resident_pct, first.memory_active_pct, second.resident_pct) == (77, 11, None)
    assert [gpu.memory_used_bytes for gpu in (first, second, instance)] == [0x1000, 0x1001, 0x2000]
    assert [gpu.memory_total_bytes for gpu in (first, second, instance)] == [1 << 40] * 3
    assert tuple(replace(each, state=None) for each in first.processes) == processes, first.processes
    assert (first.sm_clock_hz, first.memory_clock_hz) == (1_001_000_000, 1_002_000_000)
    assert abs(first.power_w - 123.456) < 1e-9
    assert first.clock_reasons == ("hw_thermal_slowdown", "bit_63")
    assert (first.ecc_corrected, first.ecc_uncorrected) == (1 << 32, (1 << 32) + 1)
    assert (first.pcie_rx_bytes_per_s, first.pcie_tx_bytes_per_s) == (3e6, 3e6)
    assert first.nvlink_rx_bytes == first.nvlink_tx_bytes > 3 * 1024 * 1_000_000
    assert (first.sm_active_pct, first.tensor_active_pct) == (21.0, 52.5)
    assert (instance.sm_active_pct, instance.tensor_active_pct) == (21.0, 52.5)
    assert "too old" in first.untold["temperature_c"], first.untold
"""


def test_pynvml_passes_on_what_it_is_given(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-o", library, STUB], check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "0 samples held\n", "GPM's samples are given back"

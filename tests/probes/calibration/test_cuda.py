"""What can be said of the calibration of a GPU without one."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

if find_spec("torch") is None or find_spec("triton") is None:
    pytest.skip("torch and triton are not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

import torch

from diag.probes.calibration import cuda
from diag.probes.calibration.calibrate import calibrate
from diag.probes.calibration.clocks import Clocks
from diag.probes.calibration.sampling import Sampled, Trial, Visit


def test_a_gpu_is_known_by_what_its_driver_says() -> None:
    properties = SimpleNamespace(name="NVIDIA H200", multi_processor_count=132, uuid="aa-11", major=9, minor=0)
    machine = cuda.machine_of(properties)
    assert (machine.kind, machine.uuid, machine.n_units, machine.compute_capability) == (
        "cuda",
        "GPU-aa-11",
        132,
        (9, 0),
    )
    del properties.uuid
    assert cuda.machine_of(properties).uuid is None


class FakeNvml(SimpleNamespace):
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    class NVMLError(Exception):
        pass

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes) -> bytes:  # noqa: N802
        return uuid

    def nvmlDeviceGetClockInfo(self, device: bytes, domain: int) -> int:  # noqa: N802
        if domain == self.NVML_CLOCK_MEM:
            raise self.NVMLError("not supported")
        return 1980 if device == b"GPU-1" else 0


def test_clocks_are_in_hertz_and_none_where_nvml_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    clocks = Clocks("GPU-1")
    assert (clocks.sm_hz(), clocks.memory_hz()) == (1.98e9, None)


def test_without_nvml_clocks_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    clocks = Clocks("GPU-1")
    assert (clocks.sm_hz(), clocks.memory_hz()) == (None, None)


def test_the_range_of_clocks_is_among_the_conditions() -> None:
    def at(hz: float | None) -> Sampled:
        return Sampled(Trial(lambda: None, 1, ""), [Visit([1.0], sm_clock_hz=hz)])

    assert cuda._clock_range([at(1.755e9), at(1.98e9)]) == "SMs at 1.8 GHz to 2.0 GHz"
    assert "nvidia-ml-py" in cuda._clock_range([at(None)])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU")
def test_a_gpu_obeys_the_order_of_its_levels_and_types() -> None:
    found = calibrate("cuda", quick=True)
    by_name = {each.ceiling.name: each.ceiling.per_s for each in found.ceilings}
    assert by_name["L2"] > by_name["DRAM"]
    assert by_name["BF16 tensor"] > by_name["FP32"] > by_name["FP64"] / 2

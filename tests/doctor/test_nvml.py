"""`diag doctor` on NVML: which devices, whether their SMs tell their activity, whose processes are seen."""

from __future__ import annotations

import pytest

from diag.collect.nvml import Nvml
from diag.doctor import nvml
from tests.collect.fake_nvml import FakeNvml


def test_everything_that_it_offers() -> None:
    check = nvml.offers(FakeNvml("h100", "h100"), sees_all=True)
    assert (check.state, check.fix) == ("ok", None)
    assert check.said == (
        "driver 560.35.03; 2 × NVIDIA H100 80GB HBM3; activity of SMs (GPM); processes of the whole machine"
    )


def test_parts_of_gpus_and_those_that_tell_less() -> None:
    check = nvml.offers(FakeNvml("a100", "h100"), sees_all=False)
    assert check.state == "limited"
    assert "1 × NVIDIA A100-SXM4-80GB, 1 × NVIDIA H100 80GB HBM3, 2 MIG instances" in check.said
    assert "on 1 of 4" in check.said
    assert "this container only" in check.said
    assert "--pid=host" in str(check.fix)


def test_a_lost_gpu_limits() -> None:
    check = nvml.offers(FakeNvml("v100", "lost"), sees_all=True)
    assert check.state == "limited"
    assert str(check.fix).startswith("GPU 1: The GPU is lost")
    assert "no activity of SMs" in check.said


def test_a_library_that_does_not_start_is_told_with_its_remedy() -> None:
    check = nvml.offers(FakeNvml(at_start="LibRmVersionMismatch"), sees_all=True)
    assert (check.state, check.said.endswith("as after an update")) == ("limited", True)
    assert str(check.fix).startswith("Reboot")


def test_no_library_is_loaded_where_no_device_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "gpu_devices", list)
    assert list(nvml.checks()) == []
    monkeypatch.setattr(nvml, "gpu_devices", lambda: ["nvidia0"])
    opened = Nvml(FakeNvml("t4"))
    monkeypatch.setattr(nvml, "Nvml", lambda _: opened)
    (check,) = nvml.checks()
    assert "1 × Tesla T4" in check.said

"""Without GPUs NVML opens, too, and says why there are none; and what is used of pynvml exists in it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from diag.collect import nvml_library
from diag.collect.nvml import Nvml
from tests.collect.fake_nvml import RECORDED, FakeNvml, pynvml

COLLECT = Path(__file__).parents[2] / "diag" / "collect"


def why(library: object) -> str:
    with Nvml(library) as nvml:
        assert (nvml.read(1), list(nvml.devices)) == ((), [])
        return nvml.untold["gpus"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DriverNotLoaded", "modprobe nvidia"),
        ("LibRmVersionMismatch", "different versions"),
        ("NoPermission", "/dev/nvidiactl"),
        ("Unknown", "start it anew"),
        ("GpuIsLost", "XID 79"),
        ("InsufficientPower", "nvmlReturn_t 8"),
    ],
)
def test_a_library_that_does_not_start_says_why(name: str, said: str) -> None:
    assert said in why(FakeNvml("h100", at_start=name))


@pytest.mark.parametrize(("devices", "said"), [([], "No GPU of NVIDIA here"), (["nvidia0"], "A GPU is here (nvidia0)")])
def test_without_the_library_the_device_files_tell(
    devices: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml_library, "gpu_devices", lambda: devices)
    assert why(FakeNvml(at_start="LibraryNotFound")).startswith(said)


def test_a_driver_without_a_gpu_says_so() -> None:
    assert "--gpus all" in why(FakeNvml())


def test_the_package_may_be_absent_or_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Nvml() as nvml:
        assert nvml.untold["gpus"].endswith("pip install 'gpu-diag[live]'.")
    monkeypatch.setitem(sys.modules, "pynvml", ModuleType("pynvml"))
    with Nvml() as nvml:
        assert "Update it" in nvml.untold["gpus"]


def test_the_real_library_opens_or_says_why() -> None:
    with Nvml() as nvml:
        readings = nvml.read(1)
        assert bool(readings) or nvml.untold["gpus"].endswith(".")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        (b"Tesla V100", "Tesla V100"),
        (b"Tesla\xff V100", "Tesla\\xff V100"),
        ("<script>\x1b[31m", "<script>\x1b[31m"),  # made harmless by those who show it
        ("", "GPU"),
    ],
)
def test_names_are_text_whatever_pynvml_gives(name: bytes | str, read: str) -> None:
    fake = FakeNvml("v100")
    fake.gpus[0]["nvmlDeviceGetName"] = name
    with Nvml(fake) as nvml:
        assert nvml.read(1)[0].name == read


def test_names_at_which_pynvml_raises_are_read() -> None:
    def not_utf_8() -> str:
        return b"GPU-\xfe".decode()

    fake = FakeNvml("v100")
    fake.gpus[0]["nvmlDeviceGetUUID"] = not_utf_8
    with Nvml(fake) as nvml:
        assert nvml.read(1)[0].uuid == "GPU-\\xfe"


def used_of_pynvml() -> Iterator[str]:
    """Attributes of what is called nvml or _nvml, and names of functions in text."""
    for file in COLLECT.glob("nvml*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "nvml":
                yield node.attr
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "_nvml":
                yield node.attr
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("nvmlDevice"):
                yield from () if node.value == "nvmlDeviceGet" else [node.value]


def test_the_real_package_has_all_that_is_used() -> None:
    used = set(used_of_pynvml())
    assert len(used) > 60
    assert [name for name in sorted(used) if not hasattr(pynvml, name)] == []
    for kind in ("Compute", "Graphics", "MPSCompute"):
        assert all(hasattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses_v{version}") for version in (2, 3))


def test_the_fake_is_like_the_real_package() -> None:
    methods = {name: method for name, method in vars(FakeNvml).items() if name.startswith("nvml")}
    for name, method in methods.items():
        ours = list(inspect.signature(method).parameters)[1:]
        assert len(ours) == len(inspect.signature(getattr(pynvml, name)).parameters), name
    for device, answers in RECORDED.items():
        for each in [answers, *answers.get("instances", [])]:
            functions = {*each, *each.get("errors", {})} - {"errors", "fields", "gpm", "instances", "number"}
            constants = {*each.get("fields", {}), *each.get("gpm", {})}
            lacking = {name for name in functions | constants if not hasattr(pynvml, name)}
            assert lacking <= {"nvmlDeviceGetMemoryInfo_v2"}, device  # a function of NVML that pynvml calls itself

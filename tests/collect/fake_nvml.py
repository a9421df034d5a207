"""A stand-in for the module pynvml that plays recorded answers, in pynvml's own structs and with its own errors.

Constants, structs and error classes are those of the real package, so that a name which it lacks is missing here, too.
"""

from __future__ import annotations

import copy
import ctypes
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pynvml: Any = pytest.importorskip("pynvml", reason="needs nvidia-ml-py, whose errors and structs are tested")

RECORDED = tomllib.loads(Path(__file__).with_name("nvml_devices.toml").read_text())
"""By the name of a device its answers: see there."""

Answers = dict[str, Any]
Handle = Any
_CHOOSING = {
    "nvmlDeviceGetClockInfo": "NVML_CLOCK_",
    "nvmlDeviceGetMaxClockInfo": "NVML_CLOCK_",
    "nvmlDeviceGetPcieThroughput": "NVML_PCIE_UTIL_",
    "nvmlDeviceGetTemperatureThreshold": "NVML_TEMPERATURE_THRESHOLD_",
    "nvmlDeviceGetTotalEccErrors": "NVML_MEMORY_ERROR_TYPE_",
}
"""Functions whose second argument chooses, and how the names of its constants begin."""


def error(name: str) -> Exception:
    """'NotSupported' as the real package raises it."""
    raised: Exception = getattr(pynvml, f"NVMLError_{name}")()
    return raised


class FakeNvml:
    """Of the devices that are named, in that order. `calls` counts each function; `samples` are those not yet freed."""

    def __init__(self, *devices: str, at_start: str | None = None) -> None:
        self.gpus: list[Answers] = [copy.deepcopy(RECORDED[name]) for name in devices]
        self.calls: Counter[str] = Counter()
        self.now_us = 1_700_000_000_000_000
        self.xids: deque[tuple[int, int]] = deque()  # index of a GPU, number
        self.samples: dict[int, int] = {}  # of GPM, by their pointers: as the how many-th of all each was taken
        self._taken = 0
        self.watched: set[int] = set()
        self.is_open = False
        self._at_start = at_start

    def __getattr__(self, name: str) -> Any:
        real = getattr(pynvml, name)  # AttributeError where pynvml has none
        if not callable(real) or isinstance(real, type):
            return real
        return lambda *arguments: self._answer(name, *arguments)

    def lose(self, index: int) -> None:
        """From now on every question to a GPU is answered as by one that fell off the bus."""
        self.gpus[index]["is_lost"] = True

    # The library ---------------------------------------------------------------------------------------------------

    def nvmlInit(self) -> None:  # noqa: N802
        if self._at_start:
            raise error(self._at_start)
        self.is_open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_open = False

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "560.35.03"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Handle:  # noqa: N802
        if refusal := self.gpus[index].get("errors", {}).get("nvmlDeviceGetHandleByIndex"):
            raise error(refusal)
        return _handle(index + 1)

    # Answers by device ---------------------------------------------------------------------------------------------

    def _answer(self, name: str, device: Handle, *arguments: Any) -> Any:
        self.calls[name] += 1
        answers = self._of(device)
        if name == "nvmlDeviceGetMemoryInfo" and arguments and arguments[0]:
            return self._memory(answers, "nvmlDeviceGetMemoryInfo_v2", pynvml.c_nvmlMemory_v2_t)
        if name == "nvmlDeviceGetMemoryInfo":
            return self._memory(answers, name, pynvml.c_nvmlMemory_t)
        answer = self._recorded(answers, name)
        if prefix := _CHOOSING.get(name):
            chosen = [value for key, value in answer.items() if getattr(pynvml, key) == arguments[0]]
            assert all(key.startswith(prefix) for key in answer)
            if not chosen:
                raise error("NotSupported")
            return chosen[0]
        return _shaped(name, answer)

    def _memory(self, answers: Answers, name: str, struct: Callable[..., Any]) -> Any:
        if refusal := answers.get("errors", {}).get(name):
            raise error(refusal)
        recorded = self._recorded(answers, "nvmlDeviceGetMemoryInfo")
        known = {field for field, _ in struct()._fields_}
        return struct(**{key: value for key, value in recorded.items() if key in known})

    def _of(self, device: Handle) -> Answers:
        number = ctypes.cast(device, ctypes.c_void_p).value or 0
        gpu = self.gpus[number % 0x100 - 1]
        if gpu.get("is_lost"):
            raise error("GpuIsLost")
        instances: list[Answers] = gpu.get("instances", [])
        return instances[number // 0x100 - 1] if number >= 0x100 else gpu

    def _recorded(self, answers: Answers, name: str) -> Any:
        if refusal := answers.get("errors", {}).get(name):
            raise error(refusal)
        if name not in answers:
            raise error("NotSupported")
        return answers[name]

    # Fields by number ----------------------------------------------------------------------------------------------

    def nvmlDeviceGetFieldValues(self, device: Handle, wanted: Sequence[tuple[int, int]]) -> Any:  # noqa: N802
        self.calls["nvmlDeviceGetFieldValues"] += 1
        recorded = {getattr(pynvml, key): value for key, value in self._of(device).get("fields", {}).items()}
        values = (pynvml.c_nvmlFieldValue_t * len(wanted))()
        for value, (number, scope) in zip(values, wanted, strict=True):
            is_of_links = 138 <= number <= 141 or 201 <= number <= 204
            assert scope == (pynvml.c_uint(-1).value if is_of_links else 0), "a link's own counter is not the sum"
            value.fieldId, value.scopeId, value.timestamp = number, scope, self.now_us
            answer = recorded.get(number, "NotSupported")
            if isinstance(answer, str):
                value.nvmlReturn = error(answer).value  # type: ignore[attr-defined]
            else:
                names = [name for name, _ in pynvml.c_nvmlValue_t._fields_]
                value.valueType = names.index(answer[0])
                setattr(value.value, *answer)
        return values

    # MIG -----------------------------------------------------------------------------------------------------------

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Handle, number: int) -> Handle:  # noqa: N802
        for at, instance in enumerate(self._of(device)["instances"]):
            if instance["number"] == number:
                return _handle((ctypes.cast(device, ctypes.c_void_p).value or 0) + 0x100 * (at + 1))
        raise error("NotFound")

    # GPM -----------------------------------------------------------------------------------------------------------

    def nvmlGpmSampleAlloc(self) -> Any:  # noqa: N802
        sample = _pointer(0x5000 + len(self.samples), pynvml.c_nvmlGpmSample_t)
        self.samples[_number(sample)] = 0
        return sample

    def nvmlGpmSampleFree(self, sample: Any) -> None:  # noqa: N802
        del self.samples[_number(sample)]

    def nvmlGpmSampleGet(self, device: Handle, sample: Any) -> Any:  # noqa: N802
        self._of(device)
        self._taken += 1
        self.samples[_number(sample)] = self._taken
        return sample

    def nvmlGpmMigSampleGet(self, device: Handle, gpu_instance: int, sample: Any) -> Any:  # noqa: N802
        assert gpu_instance in [each["nvmlDeviceGetGpuInstanceId"] for each in self._of(device)["instances"]]
        return self.nvmlGpmSampleGet(device, sample)

    def nvmlGpmMetricsGet(self, asked: Any) -> Any:  # noqa: N802
        assert asked.version == pynvml.NVML_GPM_METRICS_GET_VERSION
        assert self.samples[_number(asked.sample1)] < self.samples[_number(asked.sample2)], "the later sample is first"
        gpm = next(gpu["gpm"] for gpu in self.gpus if "gpm" in gpu)
        values = {getattr(pynvml, key): value for key, value in gpm.items()}
        for metric in asked.metrics[: asked.numMetrics]:
            answer = values[metric.metricId]
            if isinstance(answer, str):
                metric.nvmlReturn = error(answer).value  # type: ignore[attr-defined]
            else:
                metric.value = answer
        return asked

    # Events --------------------------------------------------------------------------------------------------------

    def nvmlEventSetCreate(self) -> Any:  # noqa: N802
        return _pointer(0x9000, pynvml.c_nvmlEventSet_t)

    def nvmlDeviceRegisterEvents(self, device: Handle, kinds: int, _set: Any) -> None:  # noqa: N802
        assert kinds == pynvml.nvmlEventTypeXidCriticalError
        self.watched.add(_number(device))

    def nvmlEventSetWait_v2(self, _set: Any, timeout_ms: int) -> Any:  # noqa: N802
        assert timeout_ms == 0, "a reading must not wait"
        if not self.xids:
            raise error("Timeout")
        index, number = self.xids.popleft()
        assert index + 1 in self.watched
        return pynvml.c_nvmlEventData_t(_handle(index + 1), pynvml.nvmlEventTypeXidCriticalError, number)

    def nvmlEventSetFree(self, _set: Any) -> None:  # noqa: N802
        self.watched.clear()


def _shaped(name: str, answer: Any) -> Any:
    """As the real function gives it."""
    if "RunningProcesses" in name:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in answer]
    if name == "nvmlDeviceGetUtilizationRates":
        return pynvml.c_nvmlUtilization_t(**answer)
    if name == "nvmlDeviceGetAttributes_v2":
        return pynvml.c_nvmlDeviceAttributes(**answer)
    if name == "nvmlGpmQueryDeviceSupport":
        return pynvml.c_nvmlGpmSupport_t(pynvml.NVML_GPM_SUPPORT_VERSION, answer)
    return answer() if callable(answer) else answer


def _pointer(number: int, kind: Any) -> Any:
    return ctypes.cast(ctypes.c_void_p(number), kind)


def _number(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def _handle(number: int) -> Handle:
    return _pointer(number, pynvml.c_nvmlDevice_t)

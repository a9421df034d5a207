"""What is asked of a GPU, one call for each, in the units of a GpuReading. Functions: NVML API Reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from diag.collect.nvml_errors import ABSENT
from diag.collect.nvml_fields import field_values
from diag.collect.nvml_library import Handle, call
from diag.model.clock_reasons import keys_of

HZ_PER_MHZ = 1_000_000
W_PER_MW = 1e-3


@dataclass(frozen=True)
class Question:
    """Fields of a GpuReading, and what gives their values in that order."""

    fields: tuple[str, ...]
    ask: Callable[[Any, Handle], Sequence[Any]]


def utilization(nvml: Any, gpu: Handle) -> Sequence[int]:
    rates = nvml.nvmlDeviceGetUtilizationRates(gpu)
    return rates.gpu, rates.memory


def memory(nvml: Any, device: Handle) -> Sequence[int]:
    """Used and total. Since version 2 what the driver reserves for itself is not among what is used."""
    try:
        info = nvml.nvmlDeviceGetMemoryInfo(device, nvml.nvmlMemory_v2)
    except nvml.NVMLError as error:
        if error.value not in ABSENT:
            raise
        info = nvml.nvmlDeviceGetMemoryInfo(device)
    return info.used, info.total


def sm_clock(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM) * HZ_PER_MHZ,)


def memory_clock(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM) * HZ_PER_MHZ,)


def sm_clock_max(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM) * HZ_PER_MHZ,)


def memory_clock_max(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_MEM) * HZ_PER_MHZ,)


def clock_reasons(nvml: Any, gpu: Handle) -> Sequence[Sequence[str]]:
    """Drivers before 535 have them under their former name."""
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    return (keys_of(call(nvml, names, gpu)),)


def power(nvml: Any, gpu: Handle) -> Sequence[float]:
    """A mean over a second since Ampere (not on GA100), else of the moment."""
    return (nvml.nvmlDeviceGetPowerUsage(gpu) * W_PER_MW,)


def power_limit(nvml: Any, gpu: Handle) -> Sequence[float]:
    """The lowest of all limits that are in force, whoever set them."""
    return (nvml.nvmlDeviceGetEnforcedPowerLimit(gpu) * W_PER_MW,)


def temperature(nvml: Any, gpu: Handle) -> Sequence[float]:
    """The first function leaves NVML with CUDA 14, older drivers have not the second."""
    names = ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV")
    return (call(nvml, names, gpu, nvml.NVML_TEMPERATURE_GPU),)


def slowdown_temperature(nvml: Any, gpu: Handle) -> Sequence[float]:
    """Where the hardware slows down. Since Ada drivers may tell only the distance to it, so that the two are added."""
    try:
        return (nvml.nvmlDeviceGetTemperatureThreshold(gpu, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),)
    except nvml.NVMLError as error:
        if error.value not in ABSENT:
            raise
        (limit,) = field_values(nvml, gpu, [(nvml.NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, 0)])
        (now,) = temperature(nvml, gpu)
        return (now + nvml.nvmlDeviceGetMarginTemperature(gpu) - limit.value,)


def pcie_generation(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu),)


def pcie_width(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu),)


def pcie_generation_max(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu),)


def pcie_width_max(nvml: Any, gpu: Handle) -> Sequence[int]:
    return (nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu),)


def ecc_corrected(nvml: Any, gpu: Handle) -> Sequence[int]:
    kind = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
    return (nvml.nvmlDeviceGetTotalEccErrors(gpu, kind, nvml.NVML_VOLATILE_ECC),)


def ecc_uncorrected(nvml: Any, gpu: Handle) -> Sequence[int]:
    kind = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    return (nvml.nvmlDeviceGetTotalEccErrors(gpu, kind, nvml.NVML_VOLATILE_ECC),)


OF_BOTH = (Question(("memory_used_bytes", "memory_total_bytes"), memory),)
"""Asked at each reading, of GPUs and of MIG instances."""

OF_GPU = (
    Question(("resident_pct", "memory_active_pct"), utilization),
    Question(("sm_clock_hz",), sm_clock),
    Question(("memory_clock_hz",), memory_clock),
    Question(("clock_reasons",), clock_reasons),
    Question(("power_w",), power),
    Question(("temperature_c",), temperature),
    Question(("pcie_generation",), pcie_generation),
    Question(("pcie_width",), pcie_width),
    Question(("ecc_corrected",), ecc_corrected),
    Question(("ecc_uncorrected",), ecc_uncorrected),
)
"""Asked at each reading."""

FACTS = (
    Question(("sm_clock_max_hz",), sm_clock_max),
    Question(("memory_clock_max_hz",), memory_clock_max),
    Question(("power_limit_w",), power_limit),
    Question(("slowdown_temperature_c",), slowdown_temperature),
    Question(("pcie_generation_max",), pcie_generation_max),
    Question(("pcie_width_max",), pcie_width_max),
)
"""Asked of a GPU until they have been answered once."""

"""Clocks of a GPU while it works, from NVML, which is optional: a ceiling holds at the clocks of its measurement."""

from __future__ import annotations

from typing import Any


class Clocks:
    """Of the SMs and of the memory in Hz; None where NVML is not installed or does not tell."""

    def __init__(self, uuid: str | None) -> None:
        self._nvml: Any = None
        self._device: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._device = pynvml.nvmlDeviceGetHandleByUUID((uuid or "").encode())
            self._nvml = pynvml
        except Exception:  # noqa: BLE001  # whatever NVML or its absence raises: then the clocks are not known
            self._nvml = None

    def sm_hz(self) -> float | None:
        return self._read("NVML_CLOCK_SM")

    def memory_hz(self) -> float | None:
        return self._read("NVML_CLOCK_MEM")

    def _read(self, domain: str) -> float | None:
        if self._nvml is None:
            return None
        try:
            return 1e6 * float(self._nvml.nvmlDeviceGetClockInfo(self._device, getattr(self._nvml, domain)))
        except self._nvml.NVMLError:
            return None

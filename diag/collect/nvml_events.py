"""XIDs: errors that the driver reports as events, read without waiting.

An event set holds what happened since its registration; of several XIDs between two readings NVML counts each and may
give all of them the last one's number (NVML API Reference, nvmlEventSetWait).
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from diag.collect.nvml_errors import code_of, sentence
from diag.collect.nvml_library import Handle

_MOST_PER_READING = 256
"""A GPU in trouble may report without end."""

_NO_EVENTS = "The driver reports no XIDs of this GPU: look for them in `dmesg`."


def address(device: Handle) -> int:
    """By which two handles of one device are alike: ctypes makes a new pointer for each."""
    return ctypes.cast(device, ctypes.c_void_p).value or 0


class XidEvents:
    """Of several devices. `untold`: by the address of a device why none of its XIDs will be seen."""

    def __init__(self, nvml: Any, devices: Sequence[Handle]) -> None:
        self._nvml = nvml
        self.untold: dict[int, str] = {}
        self._set: Any = None
        try:
            self._set = nvml.nvmlEventSetCreate()
        except (nvml.NVMLError, AttributeError) as error:
            self.untold = {address(device): sentence(code_of(error), "xids") for device in devices}
            return
        for device in devices:
            self._register(device)

    def _register(self, device: Handle) -> None:
        nvml, wanted = self._nvml, self._nvml.nvmlEventTypeXidCriticalError
        try:
            if nvml.nvmlDeviceGetSupportedEventTypes(device) & wanted:
                nvml.nvmlDeviceRegisterEvents(device, wanted, self._set)
            else:
                self.untold[address(device)] = _NO_EVENTS
        except nvml.NVMLError_NotSupported:
            self.untold[address(device)] = _NO_EVENTS
        except nvml.NVMLError as error:
            self.untold[address(device)] = sentence(error.value, "xids")

    def read(self) -> Mapping[int, Sequence[int]]:
        """Numbers of the XIDs since the last reading, oldest first, by the address of the device."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        if self._set is None:
            return found
        for _ in range(_MOST_PER_READING):
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._set, 0)
            except self._nvml.NVMLError:
                # A timeout: no more of them. An error: a lost GPU, which its own questions tell of.
                break
            if event.eventType == self._nvml.nvmlEventTypeXidCriticalError:
                found[address(event.device)].append(event.eventData)
        return found

    def close(self) -> None:
        if self._set is not None:
            self._nvml.nvmlEventSetFree(self._set)
            self._set = None

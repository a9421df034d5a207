"""What goes over PCIe and NVLink.

PCIe: newer drivers count bytes (nvml.h, NVML_FI_DEV_PCIE_COUNT_RX_BYTES), so that two readings give the mean between
them. What older ones have, nvmlDeviceGetPcieThroughput, counts during 20 ms in each direction while the caller waits
(NVML API Reference), and sees nothing of the rest of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diag.collect.nvml_errors import ABSENT, Code, NvmlReturn, Untold
from diag.collect.nvml_fields import ALL_LINKS, FieldValue, field_values
from diag.collect.nvml_library import Handle

KIB = 1024
"""NVML's KB and KiB are both 1024 bytes."""

_US_PER_S = 1_000_000
_FIRST = "A rate needs two readings: from the second one on."
_RESTARTED = "The driver's counter began anew, or has no newer value: with the next reading."
_IN_TURN = "This driver measures PCIe traffic for 40 ms at a time, so that each reading asks only one GPU in turn."


class Turns:
    """Who may keep a reading waiting: one GPU each time, all that want to in turn."""

    def __init__(self) -> None:
        self._asked: set[object] = set()
        self._served: set[object] = set()
        self._is_taken = False

    def next(self) -> None:
        """A reading begins."""
        self._is_taken = False
        if self._asked <= self._served:
            self._served.clear()
        # Who no longer asks, because it was refused, is not waited for.
        self._asked.clear()

    def take(self, who: object) -> bool:
        self._asked.add(who)
        if self._is_taken or who in self._served:
            return False
        self._is_taken = True
        self._served.add(who)
        return True


class PcieTraffic:
    """Bytes per second into and out of one GPU: since the last reading where the driver counts, else over 20 ms."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._counts = True
        self._last: list[FieldValue] | None = None

    def read(self, nvml: Any, gpu: Handle) -> Sequence[float]:
        if self._counts:
            try:
                return self._by_counters(nvml, gpu)
            except NvmlReturn as error:
                if error.value not in ABSENT:
                    raise
                self._counts = False
        if not self._turns.take(self):
            raise Untold(_IN_TURN)
        directions = (nvml.NVML_PCIE_UTIL_RX_BYTES, nvml.NVML_PCIE_UTIL_TX_BYTES)
        return [nvml.nvmlDeviceGetPcieThroughput(gpu, each) * KIB for each in directions]

    def _by_counters(self, nvml: Any, gpu: Handle) -> Sequence[float]:
        fields = (nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES)
        now = field_values(nvml, gpu, [(field, 0) for field in fields])
        if not all(each.is_wide for each in now):
            # 32 bits wrap within a second at the rate of any link, so that no difference of theirs is a rate.
            raise NvmlReturn(Code.NOT_SUPPORTED)
        before, self._last = self._last, now
        if before is None:
            raise Untold(_FIRST)
        return [_rate(*pair) for pair in zip(before, now, strict=True)]


def _rate(before: FieldValue, now: FieldValue) -> float:
    if now.time_us <= before.time_us or now.value < before.value:
        raise Untold(_RESTARTED)
    return (now.value - before.value) * _US_PER_S / (now.time_us - before.time_us)


def nvlink_bytes(nvml: Any, gpu: Handle) -> Sequence[int]:
    """Bytes received and sent over all links: data without protocol, or all bytes on devices that count only those.

    The first pair of fields counts KiB; devices with NVLink 5 have the second (nvml.h, NVLink throughput counters).
    """
    data = (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX)
    every = (nvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, nvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES)
    try:
        counted, unit = field_values(nvml, gpu, [(field, ALL_LINKS) for field in data]), KIB
    except NvmlReturn as error:
        if error.value not in ABSENT:
            raise
        counted, unit = field_values(nvml, gpu, [(field, ALL_LINKS) for field in every]), 1
    return [int(each.value) * unit for each in counted]

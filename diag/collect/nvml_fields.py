"""Values that NVML gives by number (nvmlDeviceGetFieldValues), several in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from diag.collect.nvml_errors import NvmlReturn
from diag.collect.nvml_library import Handle

ALL_LINKS = 0xFFFFFFFF
"""As scope of an NVLink counter: the sum over all links. pynvml's default, 0, is link 0 alone (nvml.h)."""

_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Of the union nvmlValue_t, in the order of nvmlValueType_t."""
_WIDE = frozenset({"ulVal", "ullVal", "sllVal"})


@dataclass(frozen=True)
class FieldValue:
    value: float
    time_us: int  # since 1970, when the driver took it
    is_wide: bool  # a counter of 64 bits, which does not wrap within a run


def field_values(nvml: Any, device: Handle, fields: Sequence[tuple[int, int]]) -> list[FieldValue]:
    """The values of (number, scope), in that order; NvmlReturn when the driver has one of them not."""
    return [_value(nvml, each) for each in nvml.nvmlDeviceGetFieldValues(device, list(fields))]


def _value(nvml: Any, field: Any) -> FieldValue:
    if field.nvmlReturn != nvml.NVML_SUCCESS:
        raise NvmlReturn(field.nvmlReturn)
    member = _MEMBERS[field.valueType]
    return FieldValue(getattr(field.value, member), field.timestamp, member in _WIDE)

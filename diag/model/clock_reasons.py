"""Why a GPU's clocks are not at their maximum: the clock event reasons of NVML, formerly called throttle reasons.

Keys are those of `nvidia-smi --query-gpu=clocks_event_reasons.KEY` where it has one. Bits and meanings: NVML API
Reference, NvmlClocksEventReasons (board_limit and reliability have no more than their names there).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["thermal", "power", "hardware", "setting", "harmless", "unknown"]
"""`hardware`: heat, or power, and this bit alone does not say which; `setting`: somebody chose these clocks."""

_UNKNOWN = "bit_"


@dataclass(frozen=True)
class ClockReason:
    key: str
    bit: int  # its number: the mask is 1 << bit
    kind: Kind
    means: str
    do: str


_COOL = "Look at fans, air flow and inlet temperature, and at whether neighbouring GPUs are as hot."

_ALL = (
    ClockReason(
        "gpu_idle",
        0,
        "harmless",
        "nothing runs on the GPU, so its clocks fall",
        "Nothing about the clocks: find out what the GPU waits for.",
    ),
    ClockReason(
        "applications_clocks_setting",
        1,
        "setting",
        "the clocks are held at the application clocks that somebody set",
        "Look with `nvidia-smi -q -d CLOCK`; undo it with `sudo nvidia-smi -rac` (or `-rgc` for locked clocks).",
    ),
    ClockReason(
        "sw_power_cap",
        2,
        "power",
        "the driver lowers the clocks to keep to the power limit",
        "Usual under full load. Somebody may have lowered the limit: see its default with `nvidia-smi -q -d POWER`.",
    ),
    ClockReason(
        "hw_slowdown",
        3,
        "hardware",
        "the hardware has halved the core clocks, or worse: too hot, an external power brake, or too much power drawn",
        "Look which of hw_thermal_slowdown and hw_power_brake_slowdown stands beside it; seen once, alone, it may have "
        "been a change of clocks.",
    ),
    ClockReason(
        "sync_boost",
        4,
        "setting",
        "the GPU is in a sync boost group, whose members all take the clocks of the slowest",
        "Look at the other members of the group (`dcgmi config --get`), or take it out of the group.",
    ),
    ClockReason(
        "sw_thermal_slowdown",
        5,
        "thermal",
        "the driver lowers the clocks to keep GPU and memory below their highest operating temperatures",
        _COOL,
    ),
    ClockReason(
        "hw_thermal_slowdown",
        6,
        "thermal",
        "the GPU is so hot that the hardware has halved the core clocks, or worse",
        _COOL,
    ),
    ClockReason(
        "hw_power_brake_slowdown",
        7,
        "power",
        "the server's power supply has asked for less, so the hardware has halved the core clocks, or worse",
        "Look at the power supplies and the power cap of the chassis in its management controller (BMC).",
    ),
    ClockReason(
        "display_clock_setting",
        8,
        "setting",
        "the clocks are limited by the setting of the display's clocks",
        "Compute on a GPU that drives no display.",
    ),
    ClockReason(
        "board_limit",
        9,
        "hardware",
        "a limit of the board holds the clocks down",
        "Look whether all power connectors are plugged in, then ask the vendor of the board.",
    ),
    ClockReason(
        "reliability",
        10,
        "hardware",
        "the clocks are held down for the sake of reliable operation",
        "Look whether the GPU has been overclocked; there is nothing else to set.",
    ),
)

REASONS: Mapping[str, ClockReason] = {reason.key: reason for reason in _ALL}
_BY_BIT = {reason.bit: reason for reason in _ALL}


def keys_of(mask: int) -> tuple[str, ...]:
    """Keys of the reasons in force, lowest bit first. A bit that a newer driver sets is kept under its number.

    >>> keys_of(0), keys_of(0x4 | 0x40), keys_of(1 << 33)
    ((), ('sw_power_cap', 'hw_thermal_slowdown'), ('bit_33',))
    """
    bits = (bit for bit in range(mask.bit_length()) if mask >> bit & 1)
    return tuple(_BY_BIT[bit].key if bit in _BY_BIT else f"{_UNKNOWN}{bit}" for bit in bits)


def reason_of(key: str) -> ClockReason:
    """The reason of a key that `keys_of` gave, also of a bit that nobody here knows.

    >>> reason_of("hw_thermal_slowdown").kind, reason_of("bit_33").kind
    ('thermal', 'unknown')
    """
    if known := REASONS.get(key):
        return known
    number = key.removeprefix(_UNKNOWN)
    return ClockReason(
        key,
        int(number) if number.isdecimal() else -1,
        "unknown",
        f"the driver gives a reason that this diag does not know ({key})",
        "Look it up among nvmlClocksEventReason in the driver's nvml.h.",
    )

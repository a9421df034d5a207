"""How much the power limit holds the devices of ranks back, by readings of NVML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model.clock_reasons import reason_of
from diag.model.live import GpuReading
from diag.ranks.rank_devices import FEWEST_READINGS, RankDevice


@dataclass(frozen=True)
class PowerOfRank:
    """Of the readings in which kernels were resident and all of it could be read."""

    device: RankDevice
    n_readings: int
    capped: float  # share of them in which power held the clocks down
    sm_clock_hz: float  # mean
    power_w: float  # mean
    limit_w: float  # mean


def powers_of(devices: Mapping[int, RankDevice]) -> Mapping[int, PowerOfRank]:
    """By rank, where its device is known and was read often enough."""
    found = {rank: _power_of(device) for rank, device in devices.items()}
    return {rank: power for rank, power in found.items() if power is not None}


def _power_of(device: RankDevice) -> PowerOfRank | None:
    told = [reading for _, reading in device.readings if _is_told(reading)]
    if len(told) < FEWEST_READINGS:
        return None
    return PowerOfRank(
        device=device,
        n_readings=len(told),
        capped=sum(map(_is_capped, told)) / len(told),
        sm_clock_hz=_mean([reading.sm_clock_hz for reading in told]),
        power_w=_mean([reading.power_w for reading in told]),
        limit_w=_mean([reading.power_limit_w for reading in told]),
    )


def _is_told(reading: GpuReading) -> bool:
    needed = (reading.clock_reasons, reading.sm_clock_hz, reading.sm_clock_max_hz, reading.power_w)
    return bool(reading.resident_pct and reading.power_limit_w) and None not in needed


def _is_capped(reading: GpuReading) -> bool:
    is_named = any(reason_of(key).kind == "power" for key in reading.clock_reasons or ())
    return is_named and (reading.sm_clock_hz or 0) < (reading.sm_clock_max_hz or 0)


def _mean(values: Sequence[float | None]) -> float:
    return float(np.mean([value for value in values if value is not None]))


def usual_of(powers: Mapping[int, PowerOfRank], rank: int) -> tuple[float, float]:
    """Median over the other ranks: share of readings in which they were capped, and SM clock."""
    others = [power for other, power in powers.items() if other != rank]
    return float(np.median([each.capped for each in others])), float(np.median([each.sm_clock_hz for each in others]))

"""Sampled metrics as step functions of time: a value holds from its sample to the next one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline.intervals import Intervals, Times

LONGEST_HOLD = 2
"""A value holds for this many usual periods at most: where samples were lost, nothing is known."""


@dataclass(frozen=True, eq=False)
class Counter:
    """One figure over time: parallel arrays sorted by time, without equal times. `value` is in `unit`."""

    name: str
    unit: str | None
    time_ns: Times
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time_ns)

    @cached_property
    def period_ns(self) -> int:
        """The usual time between two samples: their median."""
        return int(np.median(np.diff(self.time_ns))) if len(self) > 1 else 0

    @cached_property
    def end_ns(self) -> Times:
        """Until when each value holds."""
        last = self.time_ns[-1:] + self.period_ns
        return np.minimum(np.concatenate((self.time_ns[1:], last)), self.time_ns + LONGEST_HOLD * self.period_ns)

    def mean_within(self, when: Intervals) -> float | None:
        """Mean weighted by time; None where no value holds."""
        inside_ns = when.measure_within(self.time_ns, self.end_ns)
        total_ns = int(inside_ns.sum())
        return float((self.value * inside_ns).sum() / total_ns) if total_ns else None

    def settled_within(self, when: Intervals) -> NDArray[np.bool_]:
        """Samples that tell of `when` alone.

        A value is a mean over one period, and a file does not say whether over that before or behind its time: both
        must lie in the set.
        """
        start_ns = self.time_ns - self.period_ns
        return np.asarray(when.measure_within(start_ns, self.end_ns) == self.end_ns - start_ns)

    def time_of(self, samples: NDArray[np.bool_]) -> Intervals:
        """When these values hold."""
        return Intervals.union_of(self.time_ns[samples], self.end_ns[samples])


class Counters:
    """The sampled metrics of one source."""

    def __init__(self, case: Case, source_id: int) -> None:
        self._case = case
        self._source_id = source_id

    def of_device(self, meaning: str, process_id: int, ordinal: int) -> Counter | None:
        """The metrics of one meaning (counters.toml) of a process' device, added up; None if they were not sampled."""
        gpu = self._gpu_of(process_id, ordinal)
        found = [series for series in self._meaning(meaning) if series.device == gpu and gpu is not None]
        return self._sum(meanings()[meaning].says, found)

    def of_network(self, meaning: str) -> Sequence[tuple[str, Counter]]:
        """Cards with the metrics of one meaning, each card's added up."""
        found = self._meaning(meaning)
        cards = dict.fromkeys(series.nic for series in found if series.nic is not None)
        each = ((nic, self._sum(meaning, [series for series in found if series.nic == nic])) for nic in cards)
        return [(nic, counter) for nic, counter in each if counter is not None]

    def _gpu_of(self, process_id: int, ordinal: int) -> int | None:
        """The source's own number of a GPU; the only one that was sampled where the file does not map ordinals."""
        known = self._case.value(_GPU_OF, (process_id, ordinal))
        sampled = {series.device for series in self._series if series.device is not None}
        return known if known is not None else next(iter(sampled)) if len(sampled) == 1 else None

    def _meaning(self, meaning: str) -> list[_Series]:
        return [series for series in self._series if meanings()[meaning].pattern.fullmatch(series.name)]

    @cached_property
    def _series(self) -> list[_Series]:
        return [_Series(**dict(row)) for row in self._case.rows(_SERIES, (self._source_id,))]

    def _sum(self, name: str, series: Sequence[_Series]) -> Counter | None:
        parts = [self._samples[each.id] for each in series]
        parts = [(time_ns, value) for time_ns, value in parts if len(time_ns)]
        if not parts:
            return None
        # Metrics of one device are sampled together: what was sampled at the same time adds up.
        time_ns, at = np.unique(np.concatenate([time_ns for time_ns, _ in parts]), return_inverse=True)
        value = np.bincount(at, np.concatenate([value for _, value in parts]), len(time_ns))
        return Counter(name, series[0].unit, time_ns, value.astype(np.float64))

    @cached_property
    def _samples(self) -> Mapping[int, tuple[Times, NDArray[np.float64]]]:
        """Samples by series, of those that mean something; all are read at once, for the table has no index."""
        wanted = [s.id for s in self._series if any(m.pattern.fullmatch(s.name) for m in meanings().values())]
        columns = self._case.arrays(_SAMPLES.format(series=", ".join(map(str, wanted)) or "NULL"), _SAMPLES_COLUMNS)
        order = np.lexsort((columns["time_ns"], columns["series_id"]))
        series_id, time_ns, value = (columns[name][order] for name in _SAMPLES_COLUMNS)
        bounds = np.searchsorted(series_id, [wanted, [series + 1 for series in wanted]])
        return {
            series: (time_ns[first:stop], value[first:stop])
            for series, first, stop in zip(wanted, *bounds.tolist(), strict=True)
        }


@dataclass(frozen=True)
class _Series:
    id: int
    device: int | None
    nic: str | None
    name: str
    unit: str | None


@dataclass(frozen=True)
class Meaning:
    says: str
    pattern: re.Pattern[str]


@cache
def meanings() -> Mapping[str, Meaning]:
    """By the keys of counters.toml."""
    tables = tomllib.loads(resources.files("diag.timeline").joinpath("counters.toml").read_text("utf-8"))
    return {key: Meaning(table["says"], re.compile(table["name"], re.IGNORECASE)) for key, table in tables.items()}


_GPU_OF = """
    SELECT d.gpu_index
      FROM process_device pd JOIN device d ON d.id = pd.device_id
     WHERE pd.process_id = ? AND pd.ordinal = ?
"""
_SERIES = """
    SELECT s.id, s.device, s.nic, n.text AS name, s.unit
      FROM counter_series s JOIN name n ON n.id = s.name_id
     WHERE s.source_id = ?
     ORDER BY s.id
"""
_SAMPLES_COLUMNS = {"series_id": "i4", "time_ns": "i8", "value": "f8"}
_SAMPLES = "SELECT series_id, time_ns, value FROM counter WHERE series_id IN ({series})"

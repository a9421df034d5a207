"""What a benchmark writes down: the machine, its ceilings, and how fast probes ran. The file `diag.benchmark/1`.

`diag calibrate` and `diag probe run` write such files, a reader takes them into the case like any other evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.communication import CollectiveMeasurement, Communication

SCHEMA = "diag.benchmark/1"

MachineKind = Literal["cpu", "cuda"]

LEAST, MOST = 1e-3, 1e30
"""Of rates per second and times in ns, and MOST of errors, too; a file may claim anything."""

MOST_COUNTED = 1 << 60
"""Of bytes, operations, repeats and units."""

MOST_RANKS = 1 << 24
"""Of a group."""


@dataclass(frozen=True)
class Machine:
    """Where something was measured: the cores of a CPU that took part, or one GPU."""

    kind: MachineKind
    name: str
    n_units: int  # cores, or SMs
    uuid: str | None = None
    host: str | None = None
    compute_capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class MeasuredCeiling:
    """The most that a micro-benchmark reached, with what it takes to reach it again."""

    ceiling: Ceiling  # its origin is 'measured'
    repeats: int
    conditions: str  # for people: threads, governor, clocks held or not, ECC
    working_set_bytes: int | None = None
    is_disturbed: bool = False  # other programs had cores of its machine all the time: it can do more


@dataclass(frozen=True)
class Measurement:
    """One probe in one variant, type and shape. Times are medians and percentiles over `repeats` runs."""

    probe: str
    variant: str
    shape: str  # in words: 'M=4096 N=4096 K=4096'
    repeats: int
    median_ns: float  # on the device; of a CPU, of the call
    p5_ns: float
    p95_ns: float
    conditions: str
    dtype: str | None = None
    end_to_end_ns: float | None = None  # median, from the call until its result is there
    flops: int | None = None
    n_bytes: int | None = None  # the least that must move at `level`
    work_formula: str | None = None
    arithmetic: Arithmetic | None = None  # that bounds it
    level: Level | None = None
    baseline_ns: float | None = None  # median of the vendor's library on the same shape
    max_abs_error: float | None = None  # against a reference in FP64
    max_rel_error: float | None = None
    tolerance: float | None = None  # relative
    is_disturbed: bool = False  # other programs had cores of its machine during most repeats

    @property
    def intensity(self) -> float | None:
        """FLOP per byte."""
        return self.flops / self.n_bytes if self.flops and self.n_bytes else None

    @property
    def flops_per_s(self) -> float | None:
        return 1e9 * self.flops / self.median_ns if self.flops else None

    @property
    def bytes_per_s(self) -> float | None:
        return 1e9 * self.n_bytes / self.median_ns if self.n_bytes else None


@dataclass(frozen=True)
class Benchmark:
    """All of one run on one machine."""

    machine: Machine
    ceilings: Sequence[MeasuredCeiling] = ()
    measurements: Sequence[Measurement] = ()
    diag_version: str = ""
    collectives: Sequence[CollectiveMeasurement] = ()
    communications: Sequence[Communication] = ()
    schema: Literal["diag.benchmark/1"] = field(default="diag.benchmark/1")

    @property
    def is_possible(self) -> bool:
        """Whether all its figures are such as there can be: rates and times above 0 and finite, numbers of things."""
        return (
            all(LEAST <= figure <= MOST for figure in self._figures())
            and all(0 <= number <= MOST_COUNTED for number in self._counts() if number is not None)
            and all(0 <= error <= MOST for error in self._errors() if error is not None)
            and all(1 <= n <= MOST_RANKS for n in self._ranks())
        )

    def _ranks(self) -> Iterator[int]:
        for call in self.collectives:
            yield from (call.n_ranks, call.n_hosts)
        for said in self.communications:
            yield said.n_ranks
            yield from (each.n_ranks for each in said.signatures)

    def _figures(self) -> Iterator[float]:
        for each in self.ceilings:
            yield each.ceiling.per_s
            yield from (hz for hz in (each.ceiling.sm_clock_hz, each.ceiling.memory_clock_hz) if hz is not None)
        for one in self.measurements:
            yield from (one.median_ns, one.p5_ns, one.p95_ns)
            yield from (ns for ns in (one.end_to_end_ns, one.baseline_ns) if ns is not None)
        for call in self.collectives:
            yield from (call.median_ns, call.p5_ns, call.p95_ns)

    def _errors(self) -> Iterator[float | None]:
        """And what else may be 0 and need not be whole."""
        for each in self.ceilings:
            yield each.ceiling.error_share
        for one in self.measurements:
            yield from (one.max_abs_error, one.max_rel_error, one.tolerance)
        for said in self.communications:
            yield from (figure for each in said.signatures for figure in (each.size_bytes, each.calls))

    def _counts(self) -> Iterator[int | None]:
        yield self.machine.n_units
        yield from self.machine.compute_capability or ()
        for each in self.ceilings:
            yield from (each.repeats, each.working_set_bytes, each.ceiling.sm_count)
        for one in self.measurements:
            yield from (one.repeats, one.flops, one.n_bytes)
        for call in self.collectives:
            yield from (call.repeats, call.size_bytes, call.n_wrong)
        for said in self.communications:
            yield said.n_ranks_otherwise
            yield from (number for each in said.counted for number in (each.size_bytes, each.calls))


def encoded(benchmark: Benchmark) -> bytes:
    """The bytes of a file, its schema first."""
    body = {"schema": SCHEMA} | msgspec.to_builtins(benchmark)
    return msgspec.json.format(msgspec.json.encode(body), indent=1) + b"\n"

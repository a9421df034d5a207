"""Benchmarks as `diag calibrate` and `diag probe run` write them, with figures that a test chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling, Measurement, encoded
from diag.model.ceilings import Arithmetic, Ceiling, Level

CPU = Machine("cpu", "Some CPU", 8, host="here")
FP32 = Arithmetic("fp32", "fp32")

DRAM_PER_S = 100e9
FP32_PER_S = 1000e9
ERROR_SHARE = 0.01


def bandwidth(per_s: float = DRAM_PER_S, level: Level = "dram") -> MeasuredCeiling:
    return _measured(Ceiling(per_s, "bytes/s", "measured", "copy", "diag calibrate", level=level, access="copy"))


def peak(per_s: float = FP32_PER_S, of: Arithmetic = FP32) -> MeasuredCeiling:
    return _measured(Ceiling(per_s, "FLOP/s", "measured", "convolution", "diag calibrate", arithmetic=of))


def _measured(ceiling: Ceiling) -> MeasuredCeiling:
    return MeasuredCeiling(replace(ceiling, error_share=ERROR_SHARE), 100, "quiet")


CEILINGS = (bandwidth(), peak())


def streaming(share: float, variant: str = "out", **changes: object) -> Measurement:
    """One millisecond of a probe that needs memory alone, at a share of the bandwidth, with a right result."""
    return _probe("vector_add", variant, flops=1000, n_bytes=round(DRAM_PER_S * share / 1000), **changes)


def multiplying(share: float, variant: str = "tiled", **changes: object) -> Measurement:
    """One millisecond of a probe that needs arithmetic alone."""
    return _probe("gemm", variant, flops=round(FP32_PER_S * share / 1000), n_bytes=1000, **changes)


def _probe(name: str, variant: str, flops: int, n_bytes: int, **changes: object) -> Measurement:
    healthy = Measurement(
        probe=name,
        variant=variant,
        shape="n=1000",
        repeats=100,
        median_ns=1e6,
        p5_ns=0.99e6,
        p95_ns=1.01e6,
        conditions="8 threads",
        dtype="fp32",
        flops=flops,
        n_bytes=n_bytes,
        work_formula="n",
        arithmetic=FP32,
        level="dram",
        max_abs_error=1e-8,
        max_rel_error=1e-7,
        tolerance=1e-6,
    )
    return replace(healthy, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class BenchmarkFile:
    measurements: Sequence[Measurement] = ()
    ceilings: Sequence[MeasuredCeiling] = CEILINGS
    machine: Machine = field(default=CPU)

    def write(self, path: Path) -> Path:
        path.write_bytes(encoded(Benchmark(self.machine, self.ceilings, self.measurements, "0")))
        return path

    def backwards(self) -> BenchmarkFile:
        return replace(self, measurements=self.measurements[::-1], ceilings=self.ceilings[::-1])

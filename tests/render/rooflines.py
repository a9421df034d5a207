"""Rooflines as a report has them, made up."""

from __future__ import annotations

from collections.abc import Mapping

from diag.rules.roofline_report import KernelRoofline, RooflineCeiling, RooflineLimit, RooflinePoint, RooflineRow

LEVELS: Mapping[str, float] = {"DRAM": 1.5e12, "L2": 4e12, "L1": 10e12}  # bytes/s
FP32, FP64, ISSUE = 10e12, 5e12, 330e9


def ceiling(name: str, per_s: float, unit: str, origin: str = "report") -> RooflineCeiling:
    side = "memory" if unit == "bytes/s" else "compute"
    return RooflineCeiling(name, side, per_s, unit, origin, "formula", 765e6, 1215e6)  # type: ignore[arg-type]


def kernel(
    name: str = "stencil",
    *,
    intensities: Mapping[str, float] = {"DRAM": 1.0, "L2": 0.5, "L1": 0.1},
    per_s: float = 300e9,
    work_unit: str = "FLOP",
    share: float | None = 0.5,
    device: str | None = "NVIDIA A100-PCIE-40GB",
    published: bool = False,
) -> KernelRoofline:
    """A kernel of FP32, or of instructions, whose main point is over the first level."""
    precision, peak = ("instructions", ISSUE) if work_unit == "inst" else ("FP32", FP32)
    points = [
        RooflinePoint(level, precision, at, per_s, min(peak, at * LEVELS[level]), peak / LEVELS[level])
        for level, at in intensities.items()
    ]
    main = points[0]
    ceilings = [ceiling(level, per_s, "bytes/s") for level, per_s in LEVELS.items()]
    ceilings += [
        ceiling("FP32", FP32, "FLOP/s"),
        ceiling("FP64", FP64, "FLOP/s"),
        ceiling("instructions", ISSUE, "inst/s"),
    ]
    if published:
        ceilings.append(ceiling("FP32", 2 * FP32, "FLOP/s", "datasheet"))
    return KernelRoofline(
        source=1,
        launch="L1.0",
        short_name=name,
        configuration="<<<1024, 256>>>",
        count=1,
        share=share,
        device_name=device,
        sm_clock_hz=765e6,
        memory_clock_hz=1215e6,
        roofline=RooflineRow(
            level=main.level,
            precision=precision,
            intensity=main.intensity,
            work_unit=work_unit,
            work_per_s=per_s,
            attainable_work_per_s=main.attainable_work_per_s,
            ridge_point=main.ridge_point,
            bound="latency",
            headroom=0.5,
            nearest="DRAM",
            limits=[RooflineLimit("DRAM", "memory", 0.5)],
            points=points,
            ceilings=ceilings,
            uncounted=[],
        ),
    )

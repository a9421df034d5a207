"""What the details page calls metrics."""

from __future__ import annotations

import pytest

from diag.ingest.ncu_output.labels import identifier_of, metric_of

SPEED = "GPU Speed Of Light Throughput"


@pytest.mark.parametrize(
    ("section", "printed", "name"),
    [
        (SPEED, "Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
        (SPEED, "Memory [%]", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
        ("Memory Workload Analysis", "Memory Throughput", "dram__bytes.sum.per_second"),
        ("A section of tomorrow", "Duration", "gpu__time_duration.sum"),
        ("A section of tomorrow", "Memory Throughput", None),  # it stands for two metrics
        ("Compute Workload Analysis", "FMA", None),
        ("Launch Statistics", "# SMs", "launch__sm_count"),
        (SPEED, "{UNIT}: {COMPOUND_NAME} (lts__t_sectors.avg.pct)", "lts__t_sectors.avg.pct"),
        (SPEED, "Duration (gpu__time_duration.sum)", "gpu__time_duration.sum"),
        (SPEED, "Shiny gpu__time_duration.avg", "gpu__time_duration.avg"),
        (None, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
        (None, "inst_executed", "inst_executed"),
        (None, "Estimated Gain", None),
    ],
)
def test_names(section: str | None, printed: str, name: str | None) -> None:
    assert metric_of(section, printed) == name


def test_sections() -> None:
    assert identifier_of(SPEED) == "SpeedOfLight"
    assert identifier_of("SpeedOfLight") == "SpeedOfLight"

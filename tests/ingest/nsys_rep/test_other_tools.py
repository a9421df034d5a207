"""The export that diag writes of a report is one that other tools read: NVIDIA's own summaries of it are the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from diag.ingest.nsys_rep.convert import write_export
from diag.ingest.nsys_report import exported
from diag.ingest.nsys_tool import Nsys

SUMMARIES = ("osrtsum", "cudaapisum", "gpukernsum", "gpumemtimesum", "gpumemsizesum", "nvtxsum")


def summaries(nsys: Nsys, export: Path) -> list[str]:
    options = [word for name in SUMMARIES for word in ("--report", name)]
    command: list[str | Path] = [nsys.path, "stats", *options, "--format", "csv", export]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return [line for line in ended.stdout.splitlines() if "," in line]


@pytest.mark.parametrize("name", ["jetson-darknet.qdrep", "titanrtx-nvtx-22k.nsys-rep"])
def test_summaries_of_nsys(name: str, nsys: Nsys, real_reports: list[Path], tmp_path: Path) -> None:
    (report,) = (path for path in real_reports if path.name == name)
    ours = tmp_path / "ours.sqlite"
    write_export(report, ours)
    told = summaries(nsys, ours)
    assert len(told) > 5
    assert told == summaries(nsys, exported(report, tmp_path / "theirs"))

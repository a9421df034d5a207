"""Pages as ncu prints them since 2023, word for word but for made-up kernels and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.ingest.detect import detect
from diag.ingest.launch_records import LaunchRecord, Metric, Value
from diag.ingest.launches import opened

IDENTITY = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
DETAILS = (*IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value")
RULES = ("Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup")

SAXPY = "void saxpy<float>(int, float, const float *, float *)"


def row(*fields: object) -> str:
    return ",".join(f'"{field}"' for field in fields)


def identity(number: int = 0, name: str = SAXPY, pid: int = 101, device: int = 0, cc: str = "8.0") -> Sequence[object]:
    return (number, pid, "train", "127.0.0.1", name, 1, 7, "(256, 1, 1)", "(64, 2, 1)", device, cc)


def details(*rows: str, rules: bool = True) -> str:
    """The details page of `ncu --csv`."""
    return "\n".join([row(*DETAILS, *(RULES if rules else ())), *rows]) + "\n"


def figure(
    metric: str, unit: str, value: str, *, section: str = "Command line profiler metrics", name: str = SAXPY
) -> str:
    return row(*identity(name=name), section, metric, unit, value)


def message(section: str, *columns: str) -> str:
    """Of a rule: its name, type, message, kind of speed-up, and that in percent."""
    return row(*identity(), section, "", "", "", *columns)


def launches(content: str | bytes, folder: Path, name: str = "page.csv") -> list[LaunchRecord]:
    path = saved(content, folder, name)
    return list(opened(path, detect(path)).launches)


def told(content: str | bytes, folder: Path, name: str = "page.csv") -> str:
    """What is told about the file when its launches have been read."""
    path = saved(content, folder, name)
    report = opened(path, detect(path))
    list(report.launches)
    return " ".join([*report.facts.notes, *report.problems])


def saved(content: str | bytes, folder: Path, name: str = "page.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def values(launch: LaunchRecord) -> dict[str, Value | None]:
    return {metric.name: metric.value for metric in launch.metrics}


def metric(launch: LaunchRecord, name: str) -> Metric:
    return next(each for each in launch.metrics if each.name == name)

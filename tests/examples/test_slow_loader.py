"""The example trace tells the story that the documentation tells about it, and nothing about where it was made."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/data/slow-loader.pt.trace.json.gz"


def events(trace: Path) -> list[dict[str, Any]]:
    with gzip.open(trace) as file:
        found: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return [event for event in found if event.get("ph") == "X"]


def loader_share(trace: Path) -> float:
    """The share of the recorded steps that passes in the data loader's `__next__`."""
    steps_us = sum(event["dur"] for event in events(trace) if event["name"].startswith("ProfilerStep#"))
    loader_us = sum(event["dur"] for event in events(trace) if event["name"].startswith("enumerate(DataLoader)#"))
    return float(loader_us / steps_us)


def test_the_example_waits_for_its_data() -> None:
    steps = [event["name"] for event in events(EXAMPLE) if event["name"].startswith("ProfilerStep#")]
    assert steps == [f"ProfilerStep#{number}" for number in range(2, 7)]
    assert loader_share(EXAMPLE) > 0.6


def test_the_example_names_functions_of_the_script() -> None:
    names = {event["name"] for event in events(EXAMPLE) if event.get("cat") == "python_function"}
    script = (ROOT / "examples/slow_loader.py").read_text().splitlines()
    for name in ("__getitem__", "read_image", "normalise"):
        (line,) = (
            int(m[1]) for m in (re.fullmatch(rf"slow_loader\.py\((\d+)\): {name}", known) for known in names) if m
        )
        assert f"def {name}(" in script[line - 1], "the script has changed: record the example again"


def test_the_example_is_small_and_names_no_machine() -> None:
    assert EXAMPLE.stat().st_size < 300_000
    text = gzip.decompress(EXAMPLE.read_bytes()).decode()
    assert re.findall(r'"/[^"]*', text) == []
    assert re.findall(r'"host_name": "(.*)"', text) == ["example"]


@pytest.mark.slow
def test_the_script_makes_such_a_trace(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    trace = tmp_path / "trace.json.gz"
    subprocess.run([sys.executable, ROOT / "examples/slow_loader.py", trace], check=True, cwd=tmp_path)
    assert loader_share(trace) > 0.6

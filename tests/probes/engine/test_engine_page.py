"""The example of docs/engine.md prints what the page says, and the page names files that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "engine.md").read_text("utf-8")


def test_the_example_prints_what_the_page_says() -> None:
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == printed


def test_the_page_names_files_that_exist() -> None:
    folders = (ROOT / "probes" / "engine", ROOT / "tests" / "probes" / "engine", ROOT / "tests" / "bench")
    names = set(re.findall(r"`(\w+\.py)`", PAGE))
    assert names
    assert [name for name in sorted(names) if not any((folder / name).exists() for folder in folders)] == []

"""Packages that diag needs for a part of what it does only, and how to get them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from diag.collect.py_spy import find_py_spy
from diag.doctor.check import Check
from diag.doctor.machine import ITSELF


def checks() -> Iterator[Check]:
    yield stacks(find_py_spy())
    yield pictures(has_resvg=find_spec("resvg_py") is not None)


def stacks(py_spy: Path | None) -> Check:
    name = "Python stacks (diag watch)"
    if py_spy is None:
        return Check(ITSELF, name, "missing", "py-spy is not installed", "pip install 'gpu-diag[live]'")
    return Check(ITSELF, name, "ok", f"by {py_spy}")


def pictures(*, has_resvg: bool) -> Check:
    name = "Plots (diag export --plots)"
    if not has_resvg:
        return Check(ITSELF, name, "limited", "SVG only: PNG needs resvg-py", "pip install 'gpu-diag[plots]'")
    return Check(ITSELF, name, "ok", "SVG, and PNG by resvg-py")

"""Which profilers `diag run` finds here, and what of them works."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from diag.collect.descendants import adopt_orphans, end_orphans
from diag.collect.ncu_tool import Ncu
from diag.collect.nsys_capture import abilities_of, unseen_ranges
from diag.collect.nsys_options import NsysOptions, nsys_command
from diag.collect.target_python import versions
from diag.doctor.check import Check, failed
from diag.errors import DiagError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_tool import Nsys, run
from diag.store.work_folder import work_folder

TOPIC = "Profilers (diag run)"

_PACKAGES = ("torch", "triton", "nvtx")
_RANGE = "diag doctor"
_PROGRAM = f"import nvtx\nwith nvtx.annotate({_RANGE!r}):\n    pass\n"
_ATTEMPTS = 2
_LONGEST_S = 30.0


def nsys_check(nsys: Nsys | None) -> Check:
    if nsys is None:
        fix = "Install it: developer.nvidia.com/nsight-systems, `apt-get install nsight-systems-cli` or a CUDA toolkit."
        return Check(TOPIC, "Nsight Systems (nsys)", "missing", "not found on PATH or where it is usually put", fix)
    return Check(TOPIC, "Nsight Systems (nsys)", "ok", f"{nsys.release} at {nsys.path}")


def ncu_check(ncu: Ncu | None) -> Check:
    if ncu is None:
        fix = "Install it: developer.nvidia.com/nsight-compute, or a CUDA toolkit."
        return Check(TOPIC, "Nsight Compute (ncu)", "missing", "not found on PATH or where it is usually put", fix)
    return Check(TOPIC, "Nsight Compute (ncu)", "ok", f"{ncu.release} at {ncu.path}")


def packages(python: str = sys.executable) -> Mapping[str, str]:
    """Those that workloads use, by name, in this Python. None of them is loaded."""
    return versions(python, _PACKAGES)


def packages_check(found: Mapping[str, str]) -> Check:
    name = "Packages of workloads, in this Python"
    said = ", ".join(f"{package} {found.get(package, 'missing')}" for package in _PACKAGES)
    if len(found) < len(_PACKAGES):
        return Check(TOPIC, name, "missing", said, "For the probes: pip install 'gpu-diag[probes]'")
    return Check(TOPIC, name, "ok", said)


def nvtx_check(nsys: Nsys | None, found: Mapping[str, str], python: str = sys.executable) -> Check:
    """Records a range with nsys and reads it again: nothing else tells whether ranges are recorded."""
    name = "NVTX ranges under nsys"
    if nsys is None or "nvtx" not in found:
        return Check(TOPIC, name, "missing", f"not tried, without {'nsys' if nsys is None else 'the package nvtx'}")
    together = f"nvtx {found['nvtx']} and nsys {nsys.release}"
    try:
        texts = _recorded_ranges(nsys, python)
    except DiagError as error:
        return failed(TOPIC, name, error, state="limited")
    if texts is None:
        fix = "Try again when the machine is less busy: nsys now and then loses its own agent."
        return Check(TOPIC, name, "limited", f"nsys {nsys.release} wrote no report in {_ATTEMPTS} attempts", fix)
    if _RANGE in texts:
        return Check(TOPIC, name, "ok", f"recorded and read, with {together}")
    known = unseen_ranges(nsys.version, found)
    fix = "pip install 'nvtx<0.2.12', or use an nsys of 2024 or newer." if known else "Use another version of either."
    return Check(TOPIC, name, "limited", f"not recorded with {together}, and nsys does not say so", fix)


def _recorded_ranges(nsys: Nsys, python: str) -> set[str] | None:
    """The names of the ranges that nsys recorded of a small program; None when it wrote no report."""
    options, abilities = NsysOptions(with_gpu=False), abilities_of(nsys)
    adopt_orphans()
    for _ in range(_ATTEMPTS):
        with work_folder(None) as folder:
            try:
                run(
                    nsys_command(nsys.path, abilities, options, folder / "ranges", [python, "-c", _PROGRAM]),
                    timeout_s=_LONGEST_S,
                )
            except (OSError, subprocess.TimeoutExpired):
                continue
            finally:
                end_orphans()
            if reports := _reports(folder):
                with open_inputs(reports, ImportOptions(use_cache=False)) as case:
                    rows = case.rows("SELECT text FROM cpu_range JOIN name ON name.id = name_id")
                    return {text for (text,) in rows}
    return None


def _reports(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in (".nsys-rep", ".qdrep", ".qdstrm"))[:1]

"""The check of a machine with a GPU goes on when a step fails, and says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples/gpu_check.sh"

STAND_IN = """#!/usr/bin/env bash
echo "$0 $*" >> "{log}"
case "$*" in
    {fails}) echo "diag: it cannot."; exit 3 ;;
    *--output*)
        head -c {size} /dev/zero > "${{@: -1}}"
        printf 'Probes under the roofs of their machine\\n  gemm 80 %%\\n' ;;
esac
"""


def run(folder: Path, *, fails: str = "nothing", size: int = 10, ncu: str = "") -> tuple[int, str, str]:
    """Exit status, summary, and what was called, with stand-ins for all programs."""
    log, tools = folder / "log", folder / "bin"
    tools.mkdir()
    (tools / "diag").write_text(STAND_IN.format(log=log, fails=fails, size=size))
    (tools / "python").write_text(STAND_IN.format(log=log, fails=fails, size=size))
    if ncu:
        (tools / "ncu").write_text(f'#!/usr/bin/env bash\necho "ncu $*" >> "{log}"\n{ncu}\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}:/usr/bin:/bin",
        "DIAG": str(tools / "diag"),
        "PYTHON": str(tools / "python"),
        "NCU": str(tools / "ncu"),
    }
    out = folder / "out"
    ended = subprocess.run([SCRIPT, out], env=environment, capture_output=True, text=True, check=False, timeout=60)
    return ended.returncode, (out / "summary.txt").read_text(), log.read_text()


def test_all_steps_run_and_the_table_of_probes_is_in_the_summary(tmp_path: Path) -> None:
    status, summary, called = run(tmp_path)
    assert status == 0
    assert "probe run all --device cuda --report" in called
    assert "-m tests.truth" in called
    assert "gemm 80 %" in summary
    assert "not done: ncu is not installed" in summary


def test_a_step_that_fails_is_told_and_the_others_run(tmp_path: Path) -> None:
    status, summary, called = run(tmp_path, fails="calibrate*")
    assert status == 1
    assert "FAILED  calibrate: status 3: diag: it cannot." in summary
    assert "probe run all" in called
    assert "ok      truth" in summary


def test_the_good_kernels_are_profiled(tmp_path: Path) -> None:
    status, summary, called = run(tmp_path, ncu="exit 0")
    assert status == 0
    assert called.count("ncu --force-overwrite") == 6
    assert "--nvtx-include gemm pipelined fp16/" in called
    assert "ok      report-softmax" in summary


def test_counters_that_may_not_be_read_are_told_once(tmp_path: Path) -> None:
    status, summary, called = run(tmp_path, ncu="echo ERR_NVGPUCTRPERM; exit 1")
    assert status == 1
    assert called.count("ncu --force-overwrite") == 1
    assert "keeps its counters from this user" in summary


def test_what_is_too_large_to_be_committed_is_removed(tmp_path: Path) -> None:
    status, summary, _ = run(tmp_path, size=3 << 20)
    assert status == 0
    assert "removed probes.json" in summary
    assert not (tmp_path / "out/probes.json").exists()

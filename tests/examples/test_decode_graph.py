"""Calls cost time on any machine, made-up traces tell what they were made of, and the page shows what is printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from tests.examples.shown import EXAMPLES, printed_by, shown_in

COMMANDS = shown_in(EXAMPLES / "README.md")
EXECUTED = [shown.command for shown in COMMANDS]
KERNELS_US = 24 * (2.25 + 4.5 + 2.0 + 3.5 + 2.5 + 3.5 + 3.25 + 5.0 + 2.0 + 5.0)


def decoded(folder: Path) -> str:
    return subprocess.run(
        [sys.executable, EXAMPLES / "decode_graph.py", folder], capture_output=True, text=True, check=True
    ).stdout


def has_gpu() -> bool:
    return bool(pytest.importorskip("torch").cuda.is_available())


def rules_fired(trace: Path) -> set[str]:
    with open_inputs([trace], ImportOptions(use_cache=False)) as case:
        return {finding.rule for finding in report_of(case, AnalysisOptions()).findings}


def test_the_page_shows_what_the_commands_print(checkout: Path) -> None:
    """One test, for the first command makes the traces of the others."""
    assert [shown.command.split()[0] for shown in COMMANDS] == ["mkdir", "diag", "diag"]
    for shown in COMMANDS:
        printed = printed_by(shown.command, checkout)
        assert shown.fits(printed), printed


def test_without_a_gpu_calls_are_most_of_a_small_step(tmp_path: Path) -> None:
    if has_gpu():
        pytest.skip("this machine has a GPU")
    said = decoded(tmp_path)
    one_us, many_us = (int(time) for time in re.findall(r"(\d+) µs per step", said))
    (calling_pct,) = (int(share) for share in re.findall(r"(\d+)% of the step", said))
    assert one_us < many_us < 64 * one_us
    assert calling_pct > 50
    assert "synthetic" in said
    eager, graph = (tmp_path / f"synthetic-{name}.pt.trace.json.gz" for name in ("eager", "graph"))
    assert "launch.bound" in rules_fired(eager)
    assert not rules_fired(graph) & {"launch.bound", "graph.coverage"}


def test_both_made_up_runs_do_the_same_work(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "synthetic_decode.py", tmp_path], check=True)
    for trace in tmp_path.iterdir():
        with open_inputs([trace], ImportOptions(use_cache=False)) as case:
            operations = case.frame("gpu_op").query("kind == 'kernel'")
            (device,) = case.frame("device")["name"]
        assert operations["duration_ns"].sum() == 16 * KERNELS_US * 1000
        assert device == "Synthetic GPU"


def test_with_a_gpu_a_graph_decodes_the_same_tokens_and_launches_less(tmp_path: Path) -> None:
    if not has_gpu():
        pytest.skip("needs a CUDA GPU")
    said = decoded(tmp_path)
    assert "Decoded the same tokens: yes" in said
    eager_us, graph_us = (float(time) for time in re.findall(r"([\d.]+) µs per token", said))
    assert graph_us < eager_us
    assert "launch.bound" in rules_fired(tmp_path / "eager.pt.trace.json.gz")
    with open_inputs([tmp_path / "graph.pt.trace.json.gz"], ImportOptions(use_cache=False)) as case:
        assert case.frame("gpu_op")["graph_node"].notna().any()

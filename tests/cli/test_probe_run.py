"""`diag probe list` and `diag probe run`, as their users type them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from diag.ingest import benchmark
from tests.builders.benchmark import BenchmarkFile, bandwidth
from tests.cli.conftest import Command

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
TINY = ("--scale", "tiny", "--device", "cpu")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for no other one when tests share a machine."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_probes_are_listed_without_pytorch() -> None:
    """It is hidden, for an environment without it would have to be made."""
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['triton'] = None\n"
        "import importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name in ('torch', 'triton') else find(name, *more)\n"
        "from diag.cli.verbs import app; app(['probe', 'list'], standalone_mode=False)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "decode_step: the next token" in ended.stdout
    assert "CPU compiled: torch.compile" in ended.stdout


@needs_torch
def test_a_run_is_kept_and_shown_and_can_be_reported_again(diag: Command, tmp_path: Path) -> None:
    kept = tmp_path / "probes.json"
    shown = diag("probe", "run", "vector_add", *TINY, "--ceilings", "none", "-o", kept).is_quiet_success()
    assert "vector_add out fp32" in " ".join(shown.split())  # names may wrap
    assert "diag calibrate" in shown
    measurements = benchmark.load(kept).measurements
    assert [each.variant for each in measurements] == ["new", "out"]
    again = diag("report", kept, "--format", "json").is_quiet_success()
    rows = json.loads(again)["measurements"]
    assert [row["median_ns"] for row in rows] == [each.median_ns for each in measurements]


@needs_torch
def test_measured_ceilings_are_those_of_this_machine(diag: Command, tmp_path: Path) -> None:
    from diag.probes.machine import machine_of

    ceilings = BenchmarkFile(machine=replace(machine_of("cpu"), n_units=1)).write(tmp_path / "ceilings.json")
    said = diag("probe", "run", "reduce", *TINY, "--ceilings", ceilings, "--format", "json").is_quiet_success()
    rows = json.loads(said)["measurements"]
    assert {(row["nearest"], row["roof_origin"]) for row in rows} == {("DRAM", "measured")}
    assert all(row["roof_share"] == pytest.approx(row["bytes_per_s"] / 100e9) for row in rows)


@needs_torch
def test_what_a_run_found_can_be_explained(diag: Command, tmp_path: Path) -> None:
    """Every memory is faster than this one: the run is above its roof, whatever else the machine does."""
    from diag.probes.machine import machine_of

    here = replace(machine_of("cpu"), n_units=1)
    ceilings = BenchmarkFile(machine=here, ceilings=(bandwidth(1e3),)).write(tmp_path / "ceilings.json")
    said = diag("probe", "run", "reduce", *TINY, "--ceilings", ceilings, "--format", "json").is_quiet_success()
    (first, *_) = json.loads(said)["findings"]
    assert first["rule"] == "probe.above_roof"
    assert first["title"].partition(":")[0] in diag("explain", first["id"]).is_quiet_success()


@needs_torch
def test_a_report_on_traces_has_a_verdict_for_each_probe(diag: Command, tmp_path: Path) -> None:
    words = ("probe", "run", "data_pipeline", *TINY, "--ceilings", "none", "--report")
    said = diag(*words, "--variant", "in_process", "-o", tmp_path / "probes.json").is_quiet_success()
    assert "Under torch.profiler" in said
    assert "data_pipeline in_process fp32: " in said.partition("Under torch.profiler")[2]
    assert (tmp_path / "probes-data_pipeline.pt.trace.json.gz").is_file()
    document = json.loads(diag(*words, "--format", "json").is_quiet_success())
    assert document["schema"] == "diag.probe/1"
    assert list(document["traces"]) == ["data_pipeline workers fp32"]
    assert document["traces"]["data_pipeline workers fp32"]["verdict"]["title"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["sofmax"], 2, "Did you mean softmax?"),
        (["gemm", "--shape", "M=0"], 2, "is no size"),
        (["gemm", "--shape", "rows=4"], 2, "has no size 'rows'"),
        (["gemm", "--dtype", "fp99"], 2, "is no type of probes"),
        (["gemm", "--variant", "fast"], 2, "has no variant 'fast'"),
        (["gemm", "--shape", "M=2000000000,N=2000000000"], 3, "of memory, and"),
        (["gemm", "--ceilings", "missing.json"], 3, "--ceilings missing.json"),
        (["gemm", "-o", "/no/such/folder/file"], 2, "there is no folder"),
    ],
)
@needs_torch
def test_bad_input_is_one_sentence(diag: Command, words: list[str], status: int, said: str) -> None:
    assert said in diag("probe", "run", *words, *TINY).is_one_sentence(status)


@needs_torch
def test_what_was_measured_before_an_interrupt_is_kept(diag: Command, tmp_path: Path) -> None:
    kept = tmp_path / "probes.json"
    words = ("probe", "run", "vector_add", "gemm", "--device", "cpu", "--ceilings", "none", "-o", kept)
    shape = ("--shape", "M=64", "--scale", "tiny")
    sent = "import diag.probes.gemm as g, os, signal\n"
    code = (
        f"{sent}from diag.probes import measured\n"
        "make = measured.measured\n"
        "def stop(run, scale):\n"
        "    if run.probe.name == 'gemm': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return make(run, scale)\n"
        "measured.measured = stop\n"
        "import sys; sys.argv = ['diag', *sys.argv[1:]]\n"
        "from diag.cli.app import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *map(str, words), *shape[2:]],
        capture_output=True,
        text=True,
        check=False,
        env=diag.environment(),
    )
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stderr == f"diag: interrupted; what was measured until then is in {kept}.\n"
    assert [each.probe for each in benchmark.load(kept).measurements] == ["vector_add", "vector_add"]

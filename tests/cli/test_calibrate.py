"""`diag calibrate`: what is measured is stored, and reports on the device go by it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from diag.ingest.benchmark import load
from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling, encoded
from diag.model.ceilings import Ceiling
from tests.builders.benchmark import BenchmarkFile, streaming
from tests.builders.ncu_report import NcuReport
from tests.cli.conftest import Command
from tests.launches.profiles import GHZ, TIME, dram, vector

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@needs_torch
@pytest.mark.slow
def test_ceilings_are_printed_stored_and_copied(diag: Command, tmp_path: Path) -> None:
    store, copy = {"DIAG_CEILINGS": str(tmp_path / "data")}, tmp_path / "copy.json"
    ended = diag("calibrate", "--device", "cpu", "--quick", "-o", copy, env=store)
    assert ended.status == 0, ended.err
    assert "Ceilings measured on" in ended.out
    assert "Ridge points over DRAM: FP32" in ended.out
    (stored,) = (tmp_path / "data").iterdir()
    assert str(stored) in ended.err
    assert stored.read_bytes() == copy.read_bytes()
    assert load(copy).machine.kind == "cpu"


@needs_torch
@pytest.mark.parametrize("target", ["folder", "absent/ceilings.json", "notes.txt"])
def test_a_copy_takes_the_place_of_nothing_else(target: str, diag: Command, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    said = diag("calibrate", "--device", "cpu", "-o", tmp_path / target).is_one_sentence(2)
    assert str(tmp_path / target) in said
    assert (tmp_path / "notes.txt").read_text() == "mine"


@needs_torch
def test_a_gpu_that_is_not_there_is_told(diag: Command) -> None:
    said = diag("calibrate", "--device", "cuda", env={"CUDA_VISIBLE_DEVICES": ""}).is_one_sentence(3)
    assert "diag calibrate --device cpu" in said


def test_without_torch_it_says_what_to_install(diag: Command, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'torch' else found(name, package)\n"
    )
    said = diag("calibrate", env={"PYTHONPATH": str(tmp_path)}).is_one_sentence(3)
    assert "pip install 'gpu-diag[probes]'" in said


@needs_torch
def test_interrupted_it_leaves_nothing(diag: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    running = diag.start("calibrate", "--device", "cpu", "-o", tmp_path / "copy.json", env={"DIAG_CEILINGS": str(data)})
    _until_it_measures(running.pid)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGINT
    assert b"Traceback" not in err
    assert not data.exists()
    assert list(tmp_path.glob("*.json")) == list(tmp_path.glob(".diag-*")) == []


def _until_it_measures(pid: int) -> None:
    """Until it has loaded PyTorch, for then it has begun."""
    maps = Path(f"/proc/{pid}/maps")
    while "libtorch_cpu" not in maps.read_text():
        os.sched_yield()


# ---- what reports make of it -----------------------------------------------------------------------------------------

A100 = "NVIDIA A100-PCIE-40GB"


def calibration(file: Path, per_s: float = 800 * GHZ, name: str = A100) -> Path:
    """Of device memory, at the clock of the made-up launches."""
    ceiling = Ceiling(
        per_s, "bytes/s", "measured", "bytes / time", "diag calibrate", level="dram", access="copy",
        memory_clock_hz=GHZ, error_share=0.01,
    )  # fmt: skip
    machine = Machine("cuda", name, 108, compute_capability=(8, 0))
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(encoded(Benchmark(machine, [MeasuredCeiling(ceiling, 20, "clocks free")])))
    return file


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """500 bytes per ns, of at most 1,000 by the report."""
    return NcuReport.of({**TIME, **dram(500), **vector("f", fma=1000)}).write(tmp_path / "kernels.ncu-rep")


def roofs(diag: Command, *words: str | Path, **env: str) -> dict[str, tuple[str, float]]:
    found = json.loads(diag("report", *words, "--format", "json", env=env).out)
    ceilings = found["launches"][0]["roofline"]["ceilings"]
    return {each["name"]: (each["origin"], each["per_s"]) for each in reversed(ceilings)}


def test_a_calibration_beside_the_profile_makes_its_roof(diag: Command, profile: Path, tmp_path: Path) -> None:
    given = calibration(tmp_path / "ceilings.json")
    assert roofs(diag, profile)["DRAM"] == ("report", 1000 * GHZ)
    assert roofs(diag, profile, given)["DRAM"] == ("measured", 800 * GHZ)
    text = diag("report", profile, given).out
    assert f"Ceilings measured on {A100}, 108 SMs" in text
    assert "DRAM 800.0 GB/s (measured here)" in " ".join(text.split())
    listed = json.loads(diag("report", profile, given, "-f", "json").out)["ceilings"]
    assert [(each["name"], each["per_s"], each["access"]) for each in listed] == [("DRAM", 800 * GHZ, "copy")]


def test_what_is_stored_makes_the_roof_and_a_new_calibration_another(
    diag: Command, profile: Path, tmp_path: Path
) -> None:
    store = tmp_path / "data"
    calibration(store / "a.benchmark.json")
    assert roofs(diag, profile, DIAG_CEILINGS=str(store))["DRAM"] == ("measured", 800 * GHZ)
    calibration(store / "a.benchmark.json", 900 * GHZ)
    assert roofs(diag, profile, DIAG_CEILINGS=str(store))["DRAM"] == ("measured", 900 * GHZ)
    assert roofs(diag, profile, "--ceilings", "none", DIAG_CEILINGS=str(store))["DRAM"] == ("report", 1000 * GHZ)
    assert "Ceilings measured" not in diag("report", profile, env={"DIAG_CEILINGS": str(store)}).out


def test_a_file_goes_before_what_is_stored(diag: Command, profile: Path, tmp_path: Path) -> None:
    store, mine = tmp_path / "data", calibration(tmp_path / "mine.json", 700 * GHZ)
    calibration(store / "a.benchmark.json")
    assert roofs(diag, profile, "--ceilings", mine, DIAG_CEILINGS=str(store))["DRAM"] == ("measured", 700 * GHZ)


def test_another_product_says_nothing(diag: Command, profile: Path, tmp_path: Path) -> None:
    given = calibration(tmp_path / "ceilings.json", name="NVIDIA H200")
    assert roofs(diag, profile, given)["DRAM"] == ("report", 1000 * GHZ)


def test_the_same_inputs_and_ceilings_give_the_same_bytes(diag: Command, profile: Path, tmp_path: Path) -> None:
    mine = calibration(tmp_path / "mine.json")
    words = ("report", profile, "--ceilings", mine, "--format", "json")
    assert diag(*words).out == diag(*words, "--no-cache").out != ""


def test_a_damaged_store_is_told_and_no_obstacle(diag: Command, profile: Path, tmp_path: Path) -> None:
    store = tmp_path / "data"
    calibration(store / "a.benchmark.json")
    (store / "b.benchmark.json").write_text("{")
    ended = diag("report", profile, env={"DIAG_CEILINGS": str(store)})
    assert "b.benchmark.json is no benchmark" in ended.err
    assert "(measured here)" in ended.out


@pytest.mark.parametrize("named", ["absent.json", "kernels.ncu-rep"])
def test_ceilings_that_are_none_are_told(named: str, diag: Command, profile: Path, tmp_path: Path) -> None:
    said = diag("report", profile, "--ceilings", tmp_path / named).is_one_sentence(3)
    assert "diag calibrate -o FILE" in said


def test_a_picture_says_which_roof_was_measured_here(diag: Command, profile: Path, tmp_path: Path) -> None:
    calibration(tmp_path / "data" / "a.benchmark.json")
    picture = tmp_path / "roofline.svg"
    diag("export", profile, "-o", picture, env={"DIAG_CEILINGS": str(tmp_path / "data")}).is_quiet_success()
    assert "DRAM 800.0 GB/s (measured here)" in picture.read_text()


def test_an_exported_finding_is_that_of_the_report(diag: Command, tmp_path: Path) -> None:
    """Of a probe at half of a roof that only the stored calibration knows."""
    (tmp_path / "data").mkdir()
    BenchmarkFile([]).write(tmp_path / "data" / "a.benchmark.json")
    probes = BenchmarkFile([streaming(0.5)], ceilings=()).write(tmp_path / "probes.json")
    env = {"DIAG_CEILINGS": str(tmp_path / "data")}
    (reported,) = json.loads(diag("report", probes, "--format", "json", env=env).is_quiet_success())["findings"]
    table = diag("export", probes, "-o", "-", "-f", "csv", "--table", "finding", env=env).is_quiet_success()
    assert reported["rule"] == "probe.roof"
    assert reported["id"] in table


def test_doctor_tells_what_was_measured(diag: Command, tmp_path: Path) -> None:
    def said() -> tuple[str, str]:
        checks = json.loads(diag("doctor", "--quick", "-f", "json", env={"DIAG_CEILINGS": str(tmp_path / "data")}).out)
        (found,) = [check for check in checks["checks"] if check["name"] == "Measured ceilings"]
        return found["state"], found["said"]

    assert said()[0] == "missing"
    file = calibration(tmp_path / "data" / "a.benchmark.json")
    assert said() == ("ok", f"of {A100}")
    file.write_bytes(file.read_bytes()[:200])
    assert said()[0] == "limited"


@needs_torch
@pytest.mark.slow
def test_a_calibration_that_others_disturbed_is_shown_and_not_stored(tmp_path: Path) -> None:
    code = (
        "import itertools, sys; from diag.probes.calibration import host; waits = itertools.count(0, 10**12);"
        "host.waited_ns = lambda: next(waits); from diag.cli.app import main; sys.argv[0] = 'diag'; main()"
    )
    copy = tmp_path / "copy.json"
    ended = subprocess.run(
        [sys.executable, "-c", code, "calibrate", "--device", "cpu", "--quick", "-o", copy],
        env={**os.environ, "DIAG_CEILINGS": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4
    assert "Nothing is stored" in ended.stderr
    assert "~ other programs" in ended.stdout
    assert not (tmp_path / "data").exists()
    assert all(each.is_disturbed for each in load(copy).ceilings)


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(diag: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = diag("calibrate", "--quick", env={"DIAG_CEILINGS": str(tmp_path / "file" / "data")}).is_one_sentence(3)
    assert "DIAG_CEILINGS" in said

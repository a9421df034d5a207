"""`diag run` as its users run it: with the nsys of this machine, with stand-ins for what needs a GPU, with torch."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.nsys_tool import find_nsys
from tests import interruptible
from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.builders.nsys_report import script
from tests.cli.conftest import Command, Outcome, small_export
from tests.launches.profiles import TIME, dram, vector

needs_nsys = pytest.mark.skipif(find_nsys() is None, reason="needs an installed nsys")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")

ATTEMPTS = 3
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
LOST_AGENT = ("did not start the workload", "wrote no report", "did not end after the workload")
"""What is said when nsys loses its agent on a busy machine."""


def with_nsys(diag: Command, *words: str | Path, **more: Any) -> Outcome:
    """`diag run --with nsys`, again where nsys itself has failed."""
    for _ in range(ATTEMPTS):
        ran = diag("run", "--with", "nsys", "--no-overhead", *words, **more)
        if not any(said in ran.err for said in LOST_AGENT):
            break
    return ran


PROGRAM = """
import sys, time
print("to stdout", sys.argv[1:], flush=True)
print("to stderr", file=sys.stderr)
time.sleep(0.2)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return [sys.executable, str(file)]


@needs_nsys
def test_output_and_status_are_the_workloads_and_the_report_follows(
    diag: Command, program: list[str], tmp_path: Path
) -> None:
    ran = with_nsys(diag, "--keep", tmp_path / "kept", "-o", tmp_path / "run.diag", "--", *program, "7", "--top")
    assert ran.status == 7
    said, report = ran.out.split("\n", 1)
    assert said == "to stdout ['7', '--top']"
    assert ran.err == "to stderr\n"
    assert "clock_nanosleep" in report
    assert [file.name for file in (tmp_path / "kept").iterdir()] == ["program.nsys-rep"]
    assert "clock_nanosleep" in diag("report", tmp_path / "run.diag").is_quiet_success()


@needs_nsys
def test_a_workload_that_succeeds_leaves_the_status_to_the_report(
    diag: Command, program: list[str], tmp_path: Path
) -> None:
    """Without --, too: from its first word on the command line is the command's."""
    report = tmp_path / "report.json"
    ran = with_nsys(diag, "--fail-on", "critical", "-f", "json", "--report", report, *program, "0", "--report", "x")
    assert ran.status == 1
    assert ran.out == "to stdout ['0', '--report', 'x']\n"
    assert "at or above critical" in ran.err
    assert json.loads(report.read_text())["findings"]


@needs_nsys
def test_input_passes_and_is_not_read_twice(diag: Command, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("typed\n")
    for _ in range(ATTEMPTS):
        with (tmp_path / "input").open() as typed:
            command = [sys.executable, "-m", "diag.cli.app", "run", "--with", "nsys", "--", "cat"]
            ran = subprocess.run(
                command, stdin=typed, env=diag.environment(), capture_output=True, text=True, timeout=120, check=False
            )
        if not any(said in ran.stderr for said in LOST_AGENT):
            break
    assert ran.stdout.startswith("typed\n")
    assert "what the workload has read cannot be read again" in ran.stderr


@needs_nsys
def test_the_workload_goes_on_after_the_recording(diag: Command, tmp_path: Path) -> None:
    lasting = f"import time; time.sleep(2.5); open({str(tmp_path / 'done')!r}, 'w').close(); raise SystemExit(6)"
    ran = with_nsys(diag, "--duration", "1", "--", sys.executable, "-c", lasting)
    assert ran.status == 6
    assert (tmp_path / "done").exists()


@needs_nsys
@pytest.mark.parametrize(
    ("options", "why"),
    [(("--delay", "30"), "before the delay of 30 s was over"), (("--range", "no such"), "No NVTX range no such began")],
)
def test_an_empty_capture_is_explained_although_nsys_ended_well(
    options: tuple[str, ...], why: str, diag: Command, program: list[str]
) -> None:
    ran = with_nsys(diag, *options, "--", *program, "0")
    assert ran.status == 4
    assert why in ran.err


@needs_nsys
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 9), (signal.SIGTERM, 143)])
def test_a_signal_reaches_the_workload_once_and_the_capture_is_read(
    number: signal.Signals, status: int, diag: Command, tmp_path: Path
) -> None:
    lasting = """
        import os, sys, time
        try:
            print(os.getpid(), flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            time.sleep(0.5)
            print("interrupted", flush=True)
            sys.exit(9)
    """
    for _ in range(ATTEMPTS):
        process = diag.start("run", "--with", "nsys", "--", sys.executable, "-c", textwrap.dedent(lasting))
        assert process.stdout is not None
        first = process.stdout.readline()
        if first:
            process.send_signal(number)
        out, err = process.communicate(timeout=120)
        if not any(said in err.decode() for said in LOST_AGENT):
            break
    assert process.returncode == status
    assert out.startswith(b"interrupted\n") == (number == signal.SIGINT)
    assert b"NVIDIA Nsight Systems" in out or (number == signal.SIGTERM and b"a signal" in err)
    assert interruptible.ended(int(first))


@needs_nsys
def test_the_overhead_is_measured_by_a_run_that_shows_nothing(diag: Command, program: list[str]) -> None:
    ran = diag("run", "--with", "nsys", "--", *program, "0")
    assert ran.out.count("to stdout") == 1
    assert "once more without nsys" in ran.err
    assert "under nsys, its start and its writing included, and" in ran.err


# ---- with stand-ins ------------------------------------------------------------------------------------------------

AS_WITH_GPU = (
    "import diag.collect.gpu as gpu; gpu.gpu_devices = lambda *_: ['nvidia0']; from diag.cli.app import main; main()"
)
"""A machine on which ncu may be tried."""


class Tools:
    """An nsys and an ncu that run the workload and leave a report that was made beforehand."""

    def __init__(self, diag: Command, folder: Path) -> None:
        self.diag = diag
        self.folder = folder
        self.asked = folder / "asked"
        self.set_nsys(small_export().write(folder / "prepared.sqlite"))
        self.set_ncu(NcuReport([_launch("gemm_0"), _launch("gemm_1")]).write(folder / "prepared.ncu-rep"))

    def set_nsys(self, report: Path | None) -> None:
        copy = f'cp {report} "$out.nsys-rep"' if report else ":"
        script(
            self.folder / "bin" / "nsys",
            f"""\
            if [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2024.6.2.225"; exit 0; fi
            shift
            case "$1" in --help) printf -- '--output=\\n--trace=\\n'; exit 0;; esac
            while :; do case "$1" in --output=*) out=${{1#--output=}}; shift;; --*) shift;; *) break;; esac; done
            "$@"; status=$?
            {copy}
            exit $status
            """,
        )

    def set_ncu(self, report: Path | None, says: str = "", status: str = "$status") -> None:
        copy = f'cp {report} "$out.ncu-rep"' if report else ":"
        script(
            self.folder / "bin" / "ncu",
            f"""\
            if [ "$1" = --version ]; then echo "Version 2024.3.2.0 (build 1)"; exit 0; fi
            echo "$@" > {self.asked}
            while :; do
                case "$1" in
                    --export) out=$2; shift 2;;
                    --log-file) log=$2; shift 2;;
                    --force-overwrite) shift; break;;
                    *) shift;;
                esac
            done
            "$@"; status=$?
            printf '%s\\n' {shlex.quote(says)} > "$log"
            {copy}
            exit {status}
            """,
        )

    def run(self, *words: str | Path) -> Outcome:
        ran = subprocess.run(
            [sys.executable, "-c", AS_WITH_GPU, "run", *words],
            env=self.diag.environment(
                {
                    "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                    "DIAG_NSYS": str(self.folder / "bin" / "nsys"),
                    "DIAG_NCU": str(self.folder / "bin" / "ncu"),
                }
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Outcome(ran.returncode, ran.stdout, ran.stderr)


def _launch(name: str) -> KernelLaunch:
    return KernelLaunch({**TIME, **dram(300), **vector("f", fma=1000), SM: 5.0}, name)


@pytest.fixture
def tools(diag: Command, tmp_path: Path) -> Tools:
    return Tools(diag, tmp_path)


def test_deep_profiles_the_kernels_of_the_timeline_and_joins_both(tools: Tools, tmp_path: Path) -> None:
    """40 launches of 400 ns each, in turn gemm_0, gemm_1, gemm_2: all three are needed for nine tenths of the time."""
    report = tmp_path / "report.json"
    kept = tmp_path / "kept"
    ran = tools.run("--deep", "--no-overhead", "--keep", kept, "-f", "json", "--report", report, "echo", "ran")
    assert ran.status == 0, ran.err
    assert ran.out == "ran\n" * 2
    asked = tools.asked.read_text()
    assert "--kernel-name regex:^(gemm_0|gemm_1|gemm_2)$ --launch-skip 37 --launch-count 3" in asked
    assert "under ncu, for 3 launches of gemm_0, gemm_1, gemm_2" in ran.err
    document = json.loads(report.read_text())
    assert [source["kind"] for source in document["sources"]] == ["nsys-sqlite", "ncu-report"]
    assert {launch["name"] for launch in document["launches"]} == {"gemm_0", "gemm_1"}
    assert sorted(file.name for file in kept.iterdir()) == ["echo.nsys-rep", "kernels.ncu-rep"]


def test_a_profile_that_nobody_may_make_is_explained_and_the_timeline_is_told(tools: Tools) -> None:
    tools.set_ncu(None, says="==ERROR== ERR_NVGPUCTRPERM - The user does not have permission")
    ran = tools.run("--deep", "--no-overhead", "true")
    assert ran.status == 0
    assert "NVreg_RestrictProfilingToAdminUsers=0" in ran.err
    assert "kernel" in ran.out


def test_ncu_alone(tools: Tools) -> None:
    ran = tools.run("--with", "ncu", "--kernel", "gemm", "--launch-skip", "4", "--launch-count", "2", "echo", "ran")
    assert ran.status == 0, ran.err
    assert ran.out.startswith("ran\n")
    assert "--kernel-name regex:gemm --launch-skip 4 --launch-count 2" in tools.asked.read_text()
    assert "its overhead says nothing" in ran.err


def test_ncu_that_profiles_nothing_or_fails_is_explained(tools: Tools) -> None:
    tools.set_ncu(None, says="==WARNING== No kernels were profiled.")
    ran = tools.run("--with", "ncu", "true")
    assert "ncu profiled no kernel" in ran.is_one_sentence(4)
    tools.set_ncu(None, says="==ERROR== The application returned an error code (7).", status="1")
    assert tools.run("--with", "ncu", "false").status == 7
    tools.set_ncu(None, says="==ERROR== Something else.", status="1")
    assert "ncu failed with 1: Something else." in tools.run("--with", "ncu", "true").is_one_sentence(3)


def test_a_report_without_the_workload_in_it_is_no_success(tools: Tools, tmp_path: Path) -> None:
    empty = small_export()
    empty.then(*(f'DELETE FROM "{table}"' for table in empty.rows if table.startswith(("CUPTI", "NVTX"))))
    tools.set_nsys(empty.write(tmp_path / "empty.sqlite"))
    assert "holds nothing that the workload did" in tools.run("--with", "nsys", "true").is_one_sentence(4)


def test_an_nsys_that_writes_nothing_is_explained(tools: Tools) -> None:
    tools.set_nsys(None)
    assert "wrote no report although it ran the workload" in tools.run("--with", "nsys", "true").is_one_sentence(4)


def test_what_a_workload_leaves_running_is_ended(tools: Tools, tmp_path: Path) -> None:
    left = tmp_path / "left"
    ran = tools.run("--with", "nsys", "--no-overhead", "sh", "-c", f"sleep 300 >/dev/null 2>&1 & echo $! > {left}")
    assert ran.status == 0, ran.err
    assert interruptible.ended(int(left.read_text()))


# ---- with torch ----------------------------------------------------------------------------------------------------

TRAINS = """
import sys, torch
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(6):
    layer(torch.ones(8, 64)).sum().backward()
    optimizer.step()
print("trained")
sys.exit(int(sys.argv[1]))
"""


@needs_torch
def test_a_torch_program_is_recorded_by_steps_and_fails_as_it_does(diag: Command, tmp_path: Path) -> None:
    script_ = tmp_path / "train.py"
    script_.write_text(TRAINS)
    report = tmp_path / "report.json"
    options = ("--with", "torch", "--steps", "1:1:3", "--keep", tmp_path, "-f", "json", "--report", report)
    ran = diag("run", *options, sys.executable, script_, "5")
    assert (ran.status, ran.out) == (5, "trained\n"), ran.err
    assert json.loads(report.read_text())["sources"][0]["path"] == str(tmp_path / "train.pt.trace.json")


# ---- wrong usage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["no-such-program"], 2, "There is no program no-such-program"),
        (["--with", "nsys", "--kernel", "x", "true"], 2, "--kernel is for --with ncu, and this is --with nsys."),
        (["--with", "ncu", "--delay", "3", "true"], 2, "--delay is for --with nsys and --with torch and --deep"),
        (["--with", "torch", "true"], 2, "runs Python programs, and true is none"),
        (["--with", "torch", "--steps", "1:x:3", "python3", "x"], 2, "is not WAIT:WARMUP:ACTIVE"),
        (["--with", "torch", "--steps", "1:1:3", "--delay", "1", "python3", "x"], 2, "Choose one"),
        (["--with", "nsys", "-o", "/nowhere/run.diag", "true"], 2, "there is no folder /nowhere"),
        (["--with", "nsys", "--keep", "/dev/null", "true"], 2, "is a file. Name a folder"),
    ],
)
def test_wrong_usage_is_one_sentence(words: list[str], status: int, said: str, diag: Command) -> None:
    assert said in diag("run", *words).is_one_sentence(status)


def test_without_a_profiler_it_says_what_to_install(diag: Command) -> None:
    ran = diag("run", "true", env={"DIAG_NSYS": "/nowhere/nsys"})
    assert "Install Nsight Systems" in ran.is_one_sentence(3)
    assert "No nsys is installed here" in diag(
        "run", "--with", "nsys", "true", env={"DIAG_NSYS": "/nowhere/nsys"}
    ).is_one_sentence(3)


def test_ncu_without_a_gpu_does_not_run_the_workload(diag: Command, tmp_path: Path) -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("there is a GPU here")
    stand_in = script(tmp_path / "ncu", 'echo "Version 2024.3.2.0"')
    ran = diag("run", "--with", "ncu", "touch", tmp_path / "ran", env={"DIAG_NCU": str(stand_in)})
    assert "none is here" in ran.is_one_sentence(3)
    assert not (tmp_path / "ran").exists()

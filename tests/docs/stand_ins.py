"""What stands in for the files that pages name, and which commands are run elsewhere, or not at all, and why.

Every file here is synthetic, and most are small: pages speak of files that only their readers have. A name that no
pattern knows is not made, and the command that asks for it fails: add it here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name

from diag.model.heartbeat import SCHEMA, SUFFIX
from tests.builders.benchmark import BenchmarkFile
from tests.builders.job_log import CANCELLED, RAS_WELL, JobLog, Rank, nccl_log
from tests.builders.live import device, watched
from tests.builders.memory_snapshot import MemorySnapshot
from tests.builders.nccl_tests import NcclTests, on_line
from tests.builders.rank_job import RankJob
from tests.builders.server_log import ServerLog, vllm_stats
from tests.builders.serving_log import LoggedRun, ServingLog, request
from tests.builders.serving_results import vllm_page, vllm_result
from tests.builders.topology import Topology
from tests.cli.conftest import small_export
from tests.docs.shown import ROOT, Shown
from tests.model.test_hf_config import LLAMA
from tests.rules.hanging import absent_host
from tests.tui.synthetic_profile import PROFILE

Make = Callable[[Path], object]


def _export(path: Path) -> None:
    """What is called after a change is faster."""
    small_export(20 if re.search("branch|after", str(path)) else 40).write(path)


def _repeats(path: Path) -> None:
    path.mkdir(parents=True)
    for number in range(3):
        export = small_export(20 if path.name == "branch" else 40)
        export.process(200 + number)
        export.write(path / f"{number}.sqlite")


def _load(path: Path) -> None:
    ttft_ns = 30_000_000 if "branch" in path.name else 50_000_000
    ServingLog([LoggedRun([request(i, i * 10**8, ttft_ns=ttft_ns) for i in range(40)], label="synthetic")]).write(path)


def _snapshot(path: Path) -> None:
    snapshot = MemorySnapshot()
    snapshot.alloc("forward", 1 << 30)
    snapshot.write(path)


def _log(path: Path) -> None:
    if path.name == "logs":
        path.mkdir()
        path = path / "rank0.log"
    channels = 2 if "degraded" in path.name else 16
    nccl_log(Rank(0, channels=channels), Rank(1, channels=channels)).write(path)


def _heartbeats(path: Path) -> None:
    path.mkdir()
    for rank in range(3):
        told = {"schema": SCHEMA, "rank": rank, "step": 7, "phase": "forward", "host": "node0", "pid": 100 + rank}
        (path / f"rank{rank}{SUFFIX}").write_text(json.dumps({**told, "time_ns": 10**18, "written_ns": 10**18}))


def _installed(path: Path) -> None:
    """What `make` would have installed."""
    path.parent.mkdir(parents=True)
    path.symlink_to(Path(sys.executable).parent / path.name)


def _real(path: Path) -> None:
    """A log that is not ours to publish."""
    shutil.copy(Path(os.environ["DIAG_REAL_REPORTS"]) / "nccl" / path.name, path)


STAND_INS: Mapping[str, Make] = {
    ".venv/bin/diag": _installed,
    "examples/*": lambda path: shutil.copytree(ROOT / "examples", Path("examples")),
    "*.nsys-rep": _export,
    "*.sqlite": _export,
    "rank[0-9].json*": lambda path: RankJob(n_steps=3).write_rank(int(path.name[4]), path),
    "trace.json.gz": lambda path: shutil.copy(ROOT / "examples/data/synthetic-training.pt.trace.json.gz", path),
    "*.ncu-rep": PROFILE.write,
    "run.diag": lambda path: watched(lambda _: device()).write(path),
    "night.diag": lambda path: watched(lambda _: device()).write(path),
    "ceilings.json": BenchmarkFile().write,
    "config.json": lambda path: path.write_text(json.dumps(LLAMA)),
    "run.json": lambda path: path.write_text(json.dumps(vllm_result())),
    "*.jsonl": _load,
    "snapshot.pickle": _snapshot,
    "server.log": ServerLog([vllm_stats(second) for second in range(30)]).write,
    "a100x2-*.log": _real,
    "*.log": _log,
    "logs": _log,
    "nccl.[*]": lambda path: _log(path.with_suffix(".host0")),
    "slurm-4711.out": lambda path: JobLog().add(CANCELLED).write(path),
    "ras-*.txt": RAS_WELL.write,
    "nccl-tests.txt": NcclTests(on_line(350e9, 20_000)).write,
    "topo.txt": Topology().write,
    "before.txt": vllm_page(requests=60).write,
    "after.txt": vllm_page().write,
    "dumps": absent_host().write,
    "beats": _heartbeats,
    "FOLDER": RankJob(n_steps=3).write,
    "runs/*": _repeats,
}
"""By patterns of names, as they stand in commands. The first that fits."""

NOT_RUN: Mapping[str, str] = {
    r"^(git clone|pip install)\b": "needs a network",
    r"^make ": "installs from a network, or runs these tests, as .ci/run does; tests/test_docs.py looks its target up",
    r"^(nsys|ncu|nvidia-smi) ": "needs a GPU, and NVIDIA's tools",
    r"^(srun|torchrun|kubectl) ": "needs a cluster",
    r"^dask |--scheduler": "needs a cluster; tests/cluster makes one of this machine",
    r"^curl ": "needs a server",
    r"--url ": "needs a server; tests/cli/test_probe_serve.py has one",
    r"^diag probe run all --scale full": "needs a GPU; the tests run all probes at a small scale",
    r"^diag run ": "needs a program; tests/cli/test_run.py has some, for all profilers that there are",
    r"^diag tui": "needs a terminal; tests/tui drives it",
    r"^diag watch(?!.*--once)": "runs until it is ended; tests/cli/test_watch.py ends it",
    r"^diag hang 4711": "needs a job that hangs; tests/collect/test_hang_capture.py has one",
    r"^diag learn (\d|--exercise)": "asks its reader, and measures; tests/learn answers",
    r"\bexamples/slow_loader.py|^zcat raw.json.gz": "makes what tests/examples/test_slow_loader.py looks at",
    r"\bexamples/train.py|\b(healthy|sick).json.gz": "trains, as tests/examples/test_gate.py does",
    r"\bexamples/decode_graph.py": "measures for seconds; tests/examples/test_decode_graph.py looks at what it prints",
}
"""Why a command is not run but only parsed, by patterns of commands."""

EXECUTED_BY: Mapping[str, str] = {
    "docs/log.md": "tests.cli.test_log",
    "examples/README.md": "tests.examples.test_decode_graph",
    "examples/plugin/README.md": "tests.examples.test_plugin",
    "examples/postmortem/README.md": "tests.examples.test_postmortem",
}
"""Pages with a test of their own, which runs those commands that stand in its EXECUTED: here all others are."""

SLOW = re.compile(
    r"^diag (calibrate|probe (run|serve|inspect))|&& diag probe"
    r"|diag\.probes\.faults\.hang|hangs/holds-gil|TRITON_INTERPRET"
)
"""Run by `make test-all` alone: measures, compiles or hangs for seconds."""


def executed_by_its_test(page: str) -> Sequence[str]:
    """Commands of a page, as its own test lists them."""
    executed: Sequence[str] = resolve_name(f"{EXECUTED_BY[page]}:EXECUTED") if page in EXECUTED_BY else ()
    return executed


def why_not(shown: Shown) -> str | None:
    """Why it is not run here, or None."""
    command = shown.text
    for pattern, reason in NOT_RUN.items():
        if re.search(pattern, command):
            return reason
    if command in executed_by_its_test(shown.page):
        return f"{EXECUTED_BY[shown.page]} runs it"
    if "a100x2-" in command and "DIAG_REAL_REPORTS" not in os.environ:
        return "the logs are not ours to publish: set DIAG_REAL_REPORTS"
    missing = {program for program in ("jq",) if re.search(rf"\b{program}\b", command) and not shutil.which(program)}
    return f"{', '.join(missing)} is not installed" if missing else None


WRITTEN_BEHIND = ("-o", "--output", "--trace", "--evidence", "--record", ">")


def make(words: Sequence[str]) -> None:
    """What stands in for inputs among these words of a command, in the current folder; what is there stays."""
    outputs = {after for word, after in pairwise(words) if word in WRITTEN_BEHIND}
    for word in (Path(word) for word in words if word not in outputs):
        maker = next((make for pattern, make in STAND_INS.items() if fnmatch(str(word), pattern)), None)
        if maker is not None and not word.exists():
            maker(word)

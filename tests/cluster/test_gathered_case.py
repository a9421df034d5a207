"""A gathered case holds no events: whoever asks for some hears where they are, and none is said to be absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from textual.pilot import Pilot

from diag.cluster.gathering import gathered
from diag.cluster.reading import Reading
from diag.cluster.shards import shards_of
from diag.cluster.workers import ThisProcess
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.inputs import find_inputs
from diag.model.benchmark import Benchmark, Machine
from diag.rules.analysis import AnalysisOptions, analyse
from tests.builders.rank_job import RankJob
from tests.tui.driving import drive, press, shown


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gathered")
    traces = RankJob(n_ranks=3, n_steps=10, load_ns=lambda rank, step: 3_000_000 * (rank == 1)).write(folder / "traces")
    imports = ImportOptions(keep=folder / "job.diag", use_cache=False)
    reading = Reading.of(imports, AnalysisOptions())
    shards, others = shards_of(find_inputs([traces]))
    with gathered(shards, others, imports, reading, ThisProcess(), lambda _: None):
        return folder / "job.diag"


def diag(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "diag.cli.app", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_query_hears_that_events_are_elsewhere(kept: Path) -> None:
    found = diag("query", kept, "SELECT COUNT(*) FROM gpu_op")
    assert found.returncode == 0
    assert "The events of 3 traces are not in this case" in found.stderr


def test_a_trace_for_perfetto_is_refused(kept: Path, tmp_path: Path) -> None:
    found = diag("export", kept, "-o", tmp_path / "job.json")
    assert found.returncode == 2
    assert "rank0.json" in found.stderr
    assert not (tmp_path / "job.json").exists()


def test_tables_are_those_that_it_has(kept: Path, tmp_path: Path) -> None:
    found = diag("export", kept, "-o", tmp_path / "tables", "--format", "csv")
    assert found.returncode == 0
    assert "are not in this case" in found.stderr
    assert (tmp_path / "tables" / "finding.csv").exists()


def test_a_page_has_its_findings(kept: Path) -> None:
    found = diag("report", kept, "--format", "html")
    assert found.returncode == 0
    assert "wait for rank 1" in found.stdout


def test_screens_without_events_say_so(kept: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for key in ("3", "7", "8"):
            await press(pilot, key)
            assert "The events of 3 traces are not in this case" in " ".join(shown(pilot).split())
        assert "rank 1 comes last most often" in " ".join(shown(pilot).split())

    drive([kept], scenario)


def test_ceilings_of_another_machine_do_not_close_it(kept: Path) -> None:
    with open_inputs([kept], ImportOptions(use_cache=False)) as case:
        assert analyse(case, AnalysisOptions(ceilings=[Benchmark(Machine("cuda", "NVIDIA H100", 132))])).timeline_ranks

"""Native reports with damaged bytes, and whatever an nsys may write when it is asked to export one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from diag.ingest.nsys_rep.version import report_version
from tests.builders.nsys_report import fake_nsys, old_report
from tests.fuzz import byte_mutations, contract, database_mutations, samples
from tests.fuzz.seeds import chance_of, every_seed


@every_seed
def test_a_report_with_other_bytes(seed: int, scratch: Path) -> None:
    """Its version is read here, the rest by nsys."""
    content, mutation = byte_mutations.damaged(old_report(), chance_of("nsys report", seed))
    path = scratch / "run.nsys-rep"
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    with contract.bounded():
        version = report_version(path)
    assert version is None or len(version) < 60
    assert path.read_bytes() == content


@pytest.fixture(scope="module")
def whole_export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.nsys_export().write(tmp_path_factory.mktemp("whole") / "whole.sqlite")


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 60))])
def test_an_nsys_that_writes_something_odd(
    seed: int, whole_export: Path, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = chance_of("exported", seed)
    written = tmp_path / "written.sqlite"
    shutil.copyfile(whole_export, written)
    mutation = database_mutations.mutate(written, database_mutations.MUTATIONS, chance)
    if chance.random() < 0.5:
        content, mutation = byte_mutations.damaged(written.read_bytes(), chance)
        written.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    monkeypatch.setenv("DIAG_NSYS", str(fake_nsys(tmp_path / "bin", f'cp {written} "$out"')))
    path = scratch / "run.nsys-rep"
    path.write_bytes(old_report())
    contract.examine(path)

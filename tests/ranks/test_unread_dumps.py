"""A dump that cannot be read is as good as none: its rank is absent, and nobody is accused for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.hang import HangAnalysis
from diag.ranks.job import Job
from tests.builders.recorder_dumps import Job as SyntheticJob

REPORTS = os.environ.get("DIAG_REAL_REPORTS")

DAMAGES: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "a few bytes": lambda whole: whole[:5],
    "cut in half": lambda whole: whole[: len(whole) // 2],
    "zeros": lambda whole: bytes(len(whole)),
    "the end lost": lambda whole: whole[:-20],
}


def hang_of(folder: Path) -> HangAnalysis:
    with open_inputs(sorted(folder.iterdir()), ImportOptions(use_cache=False, tolerant=True)) as case:
        return Job(case).hang


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_dump_is_absent_and_not_at_fault(tmp_path: Path, damage: str) -> None:
    SyntheticJob(n_ranks=16, absent={3}).write(tmp_path)
    path = tmp_path / "_dump_5"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    hang = hang_of(tmp_path)
    assert (hang.named, hang.absent) == ((3,), (5,))


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_dump_of_the_guilty_one_may_be_the_damaged_one(tmp_path: Path, damage: str) -> None:
    SyntheticJob(n_ranks=16, absent={3}).write(tmp_path)
    path = tmp_path / "_dump_3"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    hang = hang_of(tmp_path)
    assert hang.named == ()
    assert [suspect.rank for suspect in hang.suspects] == [3]


@pytest.mark.skipif(not REPORTS, reason="DIAG_REAL_REPORTS is not set")
@pytest.mark.parametrize("damage", ["empty", "cut in half"])
def test_with_any_one_of_real_dumps_damaged_the_answer_stays(tmp_path: Path, damage: str) -> None:
    """`gpu-error`, in which ranks 12 and 14 are at fault."""
    shutil.copytree(Path(REPORTS or "") / "flight-recorder" / "gpu-error", tmp_path / "dumps")
    for rank in range(16):
        path = tmp_path / "dumps" / f"_dump_{rank}"
        path.chmod(0o644)
        path.parent.chmod(0o755)
        whole = path.read_bytes()
        path.write_bytes(DAMAGES[damage](whole))
        hang = hang_of(path.parent)
        assert set(hang.named) == {12, 14} - {rank}, rank
        assert hang.absent == (rank,)
        path.write_bytes(whole)

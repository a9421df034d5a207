"""Files of equal content: copies count once, but two ranks may leave the same."""

from __future__ import annotations

from pathlib import Path

from diag.ingest.importer import ImportOptions, open_inputs
from tests.builders.serving_results import SAMPLES

STACKS = """\
Current thread 0x00007fcd45a2eb80 (most recent call first):
  File "/home/me/train.py", line 12 in init
  File "/home/me/train.py", line 40 in <module>
"""


def _ranks(*paths: Path) -> list[int | None]:
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        return [source.rank for source in case.sources]


def test_equal_stacks_of_two_ranks_are_both_read(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.txt").write_text(STACKS)
    assert _ranks(tmp_path / "rank0.txt", tmp_path / "rank1.txt") == [0, 1]
    assert _ranks(tmp_path) == [0, 1]


def test_a_copy_in_another_folder_is_read_once(tmp_path: Path) -> None:
    for folder in ("night", "copy of night"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rank0.txt").write_text(STACKS)
    assert _ranks(tmp_path) == [0]


def test_equal_logs_that_are_named_are_read_once_and_noted(tmp_path: Path) -> None:
    """As `diag hang logs/*` names them: a rank that ended as another did has left the same text."""
    for rank in (0, 1):
        (tmp_path / f"{rank}.log").write_text("n0:1:2 [0] NCCL INFO Using network IB\n")
    said: list[str] = []
    with open_inputs(sorted(tmp_path.iterdir()), ImportOptions(use_cache=False, note=said.append)) as case:
        assert len(case.sources) == 1
    assert any("has the same content as" in note for note in said)


def test_a_copy_of_a_serving_result_is_read_once(tmp_path: Path) -> None:
    for kind, written in SAMPLES.items():
        folder = tmp_path / kind
        folder.mkdir()
        written.write(folder / "one")
        written.write(folder / "copy")
        assert _ranks(folder) == [None], kind

"""Whose dump it is: its groups tell, or its name, and where they differ that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.recorder.dump import ProcessGroup
from diag.ingest.recorder.rank import rank_of


def group(*ranks: int, name: str = "5") -> ProcessGroup:
    return ProcessGroup(1, name, "default_pg" if name == "0" else "DATA", list(ranks))


WORLD = group(*range(8), name="0")


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("_dump_14", 14),
        ("nccl_trace_rank_14", 14),
        ("rank14.json", 14),
        ("comm_lib_trace_rank_3", 3),
        ("run2-rank-5.pkl", 5),
        ("RANK7.pickle", 7),
        ("node4_rank_2_attempt_1", 2),
        ("12", 12),
        ("dump", None),
        ("fr2.txt", None),
        ("dump_99999999999", None),
    ],
)
def test_rank_in_a_name(name: str, rank: int | None) -> None:
    told = rank_of((), Path("/job.77/rank_1000") / name)
    assert (told.rank, told.origin) == (rank, None if rank is None else "file name")
    assert (told.note is None) == (rank is not None)


def test_the_only_rank_in_all_groups_is_its_own() -> None:
    told = rank_of([WORLD, group(2, 3), group(3, 7)], Path("dump"))
    assert (told.rank, told.origin, told.world_size, told.note) == (3, "groups", 8, None)


def test_groups_and_name_agree() -> None:
    told = rank_of([WORLD, group(2, 3), group(3, 7)], Path("_dump_3"))
    assert (told.rank, told.origin, told.note) == (3, "groups", None)


def test_groups_are_believed_and_the_difference_is_noted() -> None:
    told = rank_of([WORLD, group(2, 3), group(3, 7)], Path("_dump_4"))
    assert (told.rank, told.origin) == (3, "groups")
    assert told.note == "Its groups say that it is of rank 3, its name says 4: its groups are believed."


def test_the_world_alone_leaves_it_to_the_name() -> None:
    told = rank_of([WORLD], Path("_dump_4"))
    assert (told.rank, told.origin, told.world_size) == (4, "file name", 8)


def test_a_name_that_the_groups_exclude_tells_nothing() -> None:
    told = rank_of([WORLD], Path("_dump_8"))
    assert (told.rank, told.origin) == (None, None)
    assert told.note is not None
    assert "not in its groups" in told.note


def test_without_a_default_group_the_size_of_the_job_is_not_known() -> None:
    assert rank_of([group(1, 2)], Path("rank_1")).world_size is None

"""Stacks that many events have are listed once when they are shared, and are the same stacks all the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_rep import stacks
from diag.ingest.nsys_rep.stacks import Stacks, frames, stack_table
from diag.store.case import Case
from tests.builders.nsys_report import Report, message
from tests.ingest.nsys_rep.rows import tables_of

TABLE = stack_table("FRAMES", ["symbol", "originalIP"])
FRAMES = frames(4)
THREAD = (100 << 24) + 100


def stack(*symbols: int) -> bytes:
    return message({4: [{1: symbol, 2: 1, 8: symbol + 1000} for symbol in symbols]})


def listed(kept: Stacks, events: Sequence[bytes], numbers: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """The numbers that stacks are listed under; and of each frame listed now: number, symbol, depth."""
    found, rows = kept.add(events, numbers)
    listed_now = tables_of(rows).get("FRAMES", [])
    assert all(row["originalIP"] == row["symbol"] + 1000 for row in listed_now)
    return list(found), [[row["id"], row["symbol"], row["stackDepth"]] for row in listed_now]


def test_a_stack_is_listed_once_under_the_first_event_that_has_it() -> None:
    kept = Stacks(TABLE, FRAMES, shared=True)
    assert listed(kept, [stack(1, 2), stack(1), stack(1, 2)], [7, 8, 9]) == (
        [7, 8, 7],
        [[7, 1, 0], [7, 2, 1], [8, 1, 0]],
    )
    assert listed(kept, [stack(1), stack(2)], [10, 11]) == ([8, 11], [[11, 2, 0]])
    assert listed(kept, [stack(2), stack()], [12, 13]) == ([11, 13], [])


def test_as_nsight_lists_them_each_event_has_its_own() -> None:
    kept = Stacks(TABLE, FRAMES, shared=False)
    assert listed(kept, [stack(1), stack(), stack(1)], [7, 8, 9]) == ([7, 8, 9], [[7, 1, 0], [9, 1, 0]])


def test_without_numbers_stacks_are_counted_over_all_blocks() -> None:
    kept = Stacks(TABLE, FRAMES, shared=True)
    assert list(kept.add([stack(1), stack(1, 2)])[0]) == [1, 2]
    assert list(kept.add([stack(1), stack(3)])[0]) == [1, 4]


@pytest.mark.parametrize("most", [0, 60, 1 << 20])
@given(events=st.lists(st.lists(st.integers(1, 4), max_size=3), max_size=40))
def test_however_much_is_remembered_each_event_has_its_stack(most: int, events: list[list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacks, "MOST_STACKS_BYTES", most)
        patch.setattr(stacks, "MOST_FRAMES", 2)
        kept, numbers, found_frames, refers = (
            Stacks(TABLE, FRAMES, shared=True),
            count(1),
            list[list[int]](),
            list[int](),
        )
        for at in range(0, len(events), 7):
            block = [stack(*event) for event in events[at : at + 7]]
            found, more = listed(kept, block, [next(numbers) for _ in block])
            refers += found
            found_frames += more
    for event, number in zip(events, refers, strict=True):
        assert [symbol for id_, symbol, _ in found_frames if id_ == number] == event
    assert len({(id_, depth) for id_, _, depth in found_frames}) == len(found_frames)


# ---- in the case ---------------------------------------------------------------------------------------------------


def frames_of(case: Case, table: str, time: str) -> Iterator[tuple[Any, ...]]:
    """Each event's time and frames, by their texts."""
    return case.db.execute(f"""
        SELECT e.{time}, f.depth, s.text, m.text, f.is_kernel
          FROM {table} e
          JOIN stack f ON f.id = e.stack_id
          LEFT JOIN name s ON s.id = f.symbol_id
          LEFT JOIN name m ON m.id = f.module_id
         ORDER BY 1, 2, 3
    """)


def test_samples_and_calls_of_a_case_have_their_stacks(tmp_path: Path) -> None:
    leaf, root, wait = {1: 0, 2: 3, 4: 1}, {1: 1, 2: 3}, {1: 2, 2: 3}
    samples = [{1: 10 * n, 3: 0, 4: [leaf, root] if n % 2 else [root], 6: 1, 11: THREAD} for n in range(1, 4)]
    calls = [{1: 100 + n, 2: 105 + n, 6: 27, 7: 2, 8: 0, 13: THREAD, 15: [wait, root]} for n in range(2)]
    events = [*({1: 31, 104: sample} for sample in samples), {1: 31, 104: {1: 40, 11: THREAD}}]
    report = Report([*events, *({1: 48, 108: call} for call in calls)], strings=[b"leaf", b"root", b"wait", b"app"])
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(report.content())
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        assert list(frames_of(case, "cpu_sample", "time_ns")) == [
            (10, 0, "leaf", "app", 1),
            (10, 1, "root", "app", 0),
            (20, 0, "root", "app", 0),
            (30, 0, "leaf", "app", 1),
            (30, 1, "root", "app", 0),
        ]
        of_calls = [(100, 0, "wait", "app", 0), (100, 1, "root", "app", 0)]
        assert list(frames_of(case, "os_call", "start_ns")) == [*of_calls, *((101, *frame[1:]) for frame in of_calls)]
        assert case.value("SELECT COUNT(*) FROM stack") == 3 + 2
        assert case.value("SELECT COUNT(*) FROM cpu_sample") == 4


def test_stacks_of_real_reports_are_those_of_their_exports(exported_reports: Sequence[tuple[Path, Path]]) -> None:
    for report, export in exported_reports:
        if report.stem == "v100-julia-one-kernel":  # whoever made it anonymous replaced parts of names, too
            continue
        with (
            open_inputs([report], ImportOptions(use_cache=False)) as ours,
            open_inputs([export], ImportOptions(use_cache=False)) as theirs,
        ):
            for table, time in (("cpu_sample", "time_ns"), ("os_call", "start_ns")):
                assert list(frames_of(ours, table, time)) == list(frames_of(theirs, table, time))
            assert ours.value("SELECT COUNT(*) FROM stack") <= theirs.value("SELECT COUNT(*) FROM stack")

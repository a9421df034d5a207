"""Numbers and names of groups are joined where something tells that they belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from diag.errors import InputError
from diag.ingest.recorder.groups import Key, groups_of
from diag.ingest.recorder.layout import RawDump


def joined(names: str, numbers: str, told: Mapping[Key, str | None]) -> list[Key]:
    config = {name: {"name": name, "desc": "", "ranks": "[0]"} for name in names.split()}
    status = {number: {"last_enqueued_collective": 1} for number in numbers.split()}
    raw = msgspec.convert({"pg_config": config, "pg_status": status}, RawDump)
    return [(group.local_id, group.name) for group in groups_of(raw, told)]


def test_as_many_names_as_numbers_are_in_the_order_of_their_making() -> None:
    assert joined("34 7 0", "0 1 10", {}) == [(0, "0"), (1, "7"), (10, "34")]


def test_entries_tell_what_order_alone_does_not() -> None:
    assert joined("0 7 34", "0 5", {(5, "34"): "X"}) == [(0, None), (5, "34"), (None, "0"), (None, "7")]


def test_between_two_known_groups_as_many_are_the_same_ones() -> None:
    told: Mapping[Key, str | None] = {(2, "20"): None, (5, "50"): None}
    assert joined("20 30 40 50 60 70", "2 3 4 5 9", told) == [
        (2, "20"), (3, "30"), (4, "40"), (5, "50"), (9, None), (None, "60"), (None, "70"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "numbers", "told"),
    [
        pytest.param("0 tensor", "0 1", {}, id="a name that counts nothing"),
        pytest.param("0 1 2", "0 1 2", {(0, "2"): None, (2, "0"): None}, id="known ones in another order"),
        pytest.param("0 1", "0 1 2", {}, id="fewer names than numbers"),
    ],
)
def test_where_the_order_tells_nothing_both_stay_apart(
    names: str, numbers: str, told: Mapping[Key, str | None]
) -> None:
    found = set(joined(names, numbers, told))
    assert {key for key in found if None not in key} == set(told)
    assert {name for _, name in found if name} == set(names.split())
    assert {str(number) for number, _ in found if number is not None} == set(numbers.split())


def test_a_group_made_anew_has_the_members_that_are_listed_and_the_one_before_does_not() -> None:
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    raw = msgspec.convert({"pg_config": config, "pg_status": {}}, RawDump)
    before, anew = groups_of(raw, {(0, "0"): "default_pg", (3, "0"): "default_pg"})
    assert (before.local_id, before.ranks, anew.local_id, anew.ranks) == (0, None, 3, [0, 1])


@pytest.mark.parametrize("ranks", ["[0, 1", "[0; 1]", "[-1]", "[1e3]", "[" + "9" * 5000 + "]", "[٣]", "[0,,1]", "x"])
def test_ranks_that_are_no_list_of_numbers(ranks: str) -> None:
    raw = msgspec.convert({"pg_config": {"0": {"ranks": ranks}}}, RawDump)
    with pytest.raises(InputError, match="ranks that are no list"):
        groups_of(raw, {})


def test_ranks_are_read_in_any_spelling_of_a_list() -> None:
    config: dict[str, Any] = {"1": {"ranks": " [ 4,5 , 6] "}, "2": {"ranks": "[]"}, "3": {"ranks": [7]}, "4": [8, 9]}
    raw = msgspec.convert({"pg_config": config}, RawDump)
    assert {group.name: group.ranks for group in groups_of(raw, {})} == {
        "1": [4, 5, 6],
        "2": None,
        "3": [7],
        "4": [8, 9],
    }

"""Whose communicator a line belongs to, and which rank wrote it."""

from __future__ import annotations

from tests.builders.job_log import Rank
from tests.ingest.job_log.reading import events


def test_lines_belong_to_the_communicator_that_is_being_made() -> None:
    first, second = Rank(0, comm_id="0xaaa"), Rank(0, comm_id="0xbbb", n_ranks=2)
    found = [event for event in events(*first.lines(), *second.lines()) if event.kind == "nccl.channels"]
    assert [event.communicator for event in found] == ["0xaaa", "0xbbb"]


def test_before_2_16_only_the_end_is_printed() -> None:
    lines = [
        "n0:1:2 [0] NCCL INFO Channel 00 : 0[1a000] -> 1[1c000] via P2P/IPC",
        "n0:1:2 [0] NCCL INFO comm 0x10 rank 0 nranks 4 cudaDev 0 busId 1a000 - Init COMPLETE",
        "n0:1:3 [0] NCCL INFO Channel 00 : 0[1a000] -> 1[1c000] via SHM/direct/direct",
        "n0:1:3 [0] NCCL INFO comm 0x20 rank 0 nranks 4 cudaDev 0 busId 1a000 - Init COMPLETE",
    ]
    found = [event.communicator for event in events(*lines) if event.kind == "nccl.transport"]
    assert found == ["4 ranks (1)", "4 ranks (2)"]


def test_connections_made_later_are_of_the_one_communicator_of_the_gpu() -> None:
    rank = Rank(0)
    later = "n0:1000:9999 [0] NCCL INFO Channel 07/0 : 0[0] -> 1[1] via P2P/CUMEM"
    assert [event.communicator for event in events(*rank.lines(), later) if event.fields.get("channel") == 7] == [
        "0xabc1"
    ]


def test_of_two_communicators_it_is_not_known_which() -> None:
    later = "n0:1000:9999 [0] NCCL INFO Channel 07/0 : 0[0] -> 1[1] via P2P/CUMEM"
    lines = (*Rank(0, comm_id="0xaaa").lines(), *Rank(0, comm_id="0xbbb").lines(), later)
    assert [event.communicator for event in events(*lines) if event.fields.get("channel") == 7] == [None]


def test_the_rank_is_that_in_the_largest_communicator() -> None:
    pair = Rank(1, n_ranks=2, comm_id="0xbbb")
    world = Rank(5, n_ranks=8, comm_id="0xaaa", local=1)
    assert pair.pid != world.pid
    lines = [line.replace(f":{pair.pid}:", f":{world.pid}:") for line in pair.lines()]
    found = {event.place.rank for event in events(*world.lines(), *lines)}
    assert found == {5}


def test_a_label_outweighs_it() -> None:
    found = events(*Rank(1, n_ranks=2, prefix="[rank9]:").lines())
    assert {event.place.rank for event in found} == {9}

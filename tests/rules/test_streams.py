"""Streams: serial work and the legacy default stream."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, too_short

MIB = 1 << 20
NULL, SIDE = 7, 20


def in_turn(copy_stream: int = NULL, memory: tuple[str, str] = ("Pinned", "Device")) -> NsysExport:
    """Ten times a copy of 60 and then a kernel of 40: the kernels' 400 could hide as much of the copies."""
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.gpu.copy(start, start + 60, MIB, memory=memory, streamId=copy_stream)
        scene.gpu.kernel(start + 60, start + 100)
    return scene.export


def two_streams(flag: str = "Default stream", side_start: int = 40) -> NsysExport:
    """Ten times a kernel [0, 40) on the default stream and one [40, 100) beside it; both are launched before 10.

    Each waits for the other: the side's kernel from 10 to 40, the default stream's from its launch at the start.
    """
    scene = Scene()
    scene.gpu.describe_context(null_stream=NULL)
    scene.gpu.describe_stream(SIDE, flag=flag)
    for i in range(10):
        at = 100 * i
        scene.main.launch(scene.gpu, called=at - 5, start=at, end=at + 40, returns=at, name="default")
        scene.main.launch(
            scene.gpu, called=at + 5, start=at + side_start, end=at + 100, returns=at + 10, name="side", streamId=SIDE
        )
    return scene.export


CASES = {
    "streams.serial": ThreeCases(
        fires=in_turn,
        clear=lambda: in_turn(copy_stream=SIDE),
        untold=lambda: in_turn().then(
            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN streamId",
            "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN streamId",
        ),
    ),
    "streams.default": ThreeCases(
        fires=two_streams,
        clear=lambda: two_streams(flag="Non-blocking stream"),
        untold=lambda: two_streams().drop("TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_STREAM"),
    ),
}


def test_kernels_hide_the_smaller_of_both(ask: Ask) -> None:
    finding = only_finding(ask("streams.serial", in_turn()))
    assert figures(finding) == {
        "copies alone": 600, "kernels without copies": 400, "could overlap": 400, "streams with work": 1
    }  # fmt: skip
    assert finding.recoverable_ns == 400
    assert finding.title == "All work is on one stream: nothing can overlap"
    assert finding.severity == "info"


def test_pageable_copies_overlap_with_nothing_anyway(ask: Ask) -> None:
    (answer,) = ask("streams.serial", in_turn(memory=("Pageable", "Device")))
    assert isinstance(answer, Clear)


def test_streams_of_the_same_number_in_two_contexts_are_two(ask: Ask) -> None:
    export = in_turn()
    for row in export.rows["CUPTI_ACTIVITY_KIND_MEMCPY"]:
        row["contextId"] = 2
    (answer,) = ask("streams.serial", export)
    assert isinstance(answer, Clear)


def test_waiting_for_the_other_side_of_the_default_stream(ask: Ask) -> None:
    """The side waits ten times from 10 to 40; the default stream is launched when the side ends."""
    finding = only_finding(ask("streams.default", two_streams()))
    assert figures(finding) == {"waiting": 10 * 30, "default stream": 400, "blocking streams": 600}
    assert finding.share == pytest.approx(0.3)
    assert finding.recoverable_ns == 300


def test_streams_that_overlap_are_not_stopped(ask: Ask) -> None:
    (answer,) = ask("streams.default", two_streams(side_start=39))
    assert isinstance(answer, Clear)


def test_what_starts_long_after_the_default_stream_was_not_let_go_by_it(ask: Ask) -> None:
    (answer,) = ask("streams.default", two_streams(side_start=80))
    assert isinstance(answer, Clear)


def test_events_that_were_not_captured_may_be_the_reason(ask: Ask) -> None:
    export = two_streams()
    export.process(100).gpu().sync("Stream wait sync", 5, 6, streamId=SIDE, eventId=1)
    (answer,) = ask("streams.default", export)
    assert isinstance(answer, CannotTell)


def test_a_stream_that_is_not_described_may_be_blocking(ask: Ask) -> None:
    (answer,) = ask("streams.default", two_streams().drop("TARGET_INFO_CUDA_STREAM"))
    assert isinstance(answer, CannotTell)


def test_the_null_stream_is_also_known_by_its_flag(ask: Ask) -> None:
    export = two_streams().drop("TARGET_INFO_CUDA_CONTEXT_INFO")
    export.process(100).gpu().describe_stream(NULL, flag="Null stream")
    assert figures(only_finding(ask("streams.default", export)))["waiting"] == 300


def test_one_stream_stops_nobody(ask: Ask) -> None:
    for rule in ("streams.default", "streams.priority"):
        assert [type(answer) for answer in ask(rule, in_turn())] in ([Clear], [CannotTell])
        assert not any(isinstance(answer, Finding) for answer in ask(rule, in_turn()))


def test_few_operations_tell_nothing(ask: Ask) -> None:
    assert [type(answer) for answer in ask("streams.serial", too_short().export)] == [CannotTell]

"""What `diag watch` tells, and when, of a workload that a test makes up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from diag.cli import live
from diag.cli.choices import TextOrJson
from diag.cli.live import FEW, Wishes, tell_what_is_seen
from diag.collect.live_record import Recorder
from diag.collect.watching import Readers
from diag.model.live import HostReading, StackDump
from diag.model.live_run import LiveRun
from diag.rules.finding import Answer, Clear, Subject
from tests.builders.live import PID, process

WISHES = Wishes(
    pid=PID,
    period_s=0.05,
    duration_s=1.5,
    stacks_s=None,
    record=None,
    is_once=False,
    output_format=TextOrJson.JSON,
    listen=None,
    thresholds=None,
)
READERS = Readers(
    host=lambda: HostReading(2),
    gpus=lambda _: (),
    processes=lambda _: [process(1)],
    stacks=lambda pid: StackDump(pid, 0, (), 1),
    is_python=lambda _: True,
    untold=dict,
)


def judge(run: LiveRun) -> Sequence[Answer]:
    """Says of how many snapshots it was asked."""
    return [Clear(Subject(0, PID), f"{len(run.snapshots)}")]


def told(capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, object]], str]:
    out, err = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], err


def test_what_is_told_once_is_judged_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    def counting(run: LiveRun) -> Sequence[Answer]:
        seen.append(len(run.snapshots))
        return judge(run)

    tell_what_is_seen(replace(WISHES, is_once=True), READERS, counting)
    (answer,) = json.loads(capsys.readouterr().out)["clear"]
    assert int(answer["rule"]) == max(seen) > FEW


def test_new_stacks_are_judged_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    tell_what_is_seen(replace(WISHES, duration_s=3.0, stacks_s=2.0), READERS, judge)
    lines, _ = told(capsys)
    judged = [each["clear"][0]["rule"] for each in lines]  # type: ignore[index]
    assert len(set(judged[FEW:])) == 2, "they were judged when the second dump came, and at no other moment"


def test_a_full_record_is_told_and_the_watch_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "Recorder", partial(Recorder, most_bytes=2000))
    tell_what_is_seen(replace(WISHES, record=tmp_path / "night.diag"), READERS, judge)
    lines, err = told(capsys)
    records = [each["record"]["is_full"] for each in lines]  # type: ignore[index]
    assert sorted(records) == records
    assert (records[0], records[-1]) == (False, True)
    assert err == f"diag: the record {tmp_path / 'night.diag'} is full and keeps nothing more; the watch goes on\n"
    assert lines[-1]["untold"][0]["what"] == ["record"]  # type: ignore[index]

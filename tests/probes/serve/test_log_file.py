"""The log as it is written: whole at the end, readable before."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec
import pytest

from diag.errors import StorageError, UsageError
from diag.model.serving_log import Header, Record, RequestRecord, StepRecord
from diag.probes.serve.log_file import FLUSH_BYTES, LogFile, check_target, part_of

HEADER = Header(diag_version="1")
REQUEST = RequestRecord(id="0", outcome="completed", sent_ns=1, token_ns=[2, 3])
STEP = StepRecord(number=0, start_ns=1, end_ns=2)


def records(file: Path) -> list[Record]:
    decoder = msgspec.json.Decoder(Record)
    return [decoder.decode(line) for line in file.read_bytes().splitlines()]


def test_runs_follow_each_other_in_one_file(tmp_path: Path) -> None:
    target = tmp_path / "run.jsonl"
    with LogFile(target) as log:
        log.begin(HEADER)
        log.add(STEP)
        log.add(REQUEST)
        log.begin(Header(diag_version="1", label="again"))
        log.add(REQUEST)
    kinds = [type(each).__name__ for each in records(target)]
    assert kinds == ["Header", "StepRecord", "RequestRecord", "Header", "RequestRecord"]
    assert os.listdir(tmp_path) == ["run.jsonl"]


def test_records_are_on_the_disk_a_second_later_and_not_one_by_one(tmp_path: Path) -> None:
    now_s = 0.0
    target = tmp_path / "run.jsonl"
    with LogFile(target, now_s=lambda: now_s) as log:
        log.begin(HEADER)
        log.add(REQUEST)
        assert part_of(target).read_bytes() == b""
        now_s = 0.9
        log.flush_when_due()
        assert part_of(target).read_bytes() == b""
        now_s = 1.0
        log.flush_when_due()
        assert len(records(part_of(target))) == 2
        n_more = 1 + FLUSH_BYTES // len(msgspec.json.encode(REQUEST))
        for _ in range(n_more):
            log.add(REQUEST)
        assert part_of(target).stat().st_size > FLUSH_BYTES
        assert not target.exists()
    assert len(records(target)) == 2 + n_more


def test_an_interrupt_leaves_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "run.jsonl"

    def interrupted() -> None:
        with LogFile(target) as log:
            log.begin(HEADER)
            log.add(REQUEST)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(records(target)) == 2


def test_without_a_record_there_is_no_file(tmp_path: Path) -> None:
    with LogFile(tmp_path / "run.jsonl") as log:
        log.begin(HEADER)
    assert os.listdir(tmp_path) == []


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    target = tmp_path / "run.jsonl"
    with LogFile(target) as log:
        log.begin(HEADER)

        def add_many() -> None:
            for _ in range(500):
                log.add(STEP)

        threads = [threading.Thread(target=add_many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(records(target)) == 2001


def test_a_full_disk_is_one_sentence_and_leaves_what_was_written() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    log = LogFile(full)
    log._file = full.open("wb", buffering=0)
    log.add(REQUEST)
    with pytest.raises(StorageError, match="No space left on device"):
        log.__exit__(None, None, None)


def test_only_another_log_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "run.jsonl"
    check_target(target)
    with LogFile(target) as log:
        log.begin(HEADER)
        log.add(REQUEST)
    check_target(target)
    for other in (
        b"",
        b"{}",
        b'{"record":"request","id":"1","outcome":"failed"}',
        b"\xff\n",
        b'{"record":"run","x":' + b"[" * 9999,
    ):
        target.write_bytes(other)
        with pytest.raises(UsageError, match="is no serving log"):
            check_target(target)
    with pytest.raises(UsageError, match="is a folder"):
        check_target(tmp_path)
    with pytest.raises(UsageError, match="there is no folder"):
        check_target(tmp_path / "none" / "run.jsonl")


def test_two_runs_never_write_one_file(tmp_path: Path) -> None:
    target = tmp_path / "run.jsonl"
    with LogFile(target) as log:
        log.begin(HEADER)
        log.add(REQUEST)
        with pytest.raises(UsageError, match="goes on or was killed"):
            check_target(target)
        with pytest.raises(StorageError), LogFile(target):
            pass
    assert len(records(target)) == 2

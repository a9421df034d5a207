"""Dumps that PyTorch makes here and now, on Gloo: as a pickle with frames, without, and as JSON."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from diag.store.case import Case
from tests.ingest.recorder.reading import entries, opened

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")

PROGRAM = """
import json
import os
import sys
from pathlib import Path
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

folder = Path(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)

def train():
    for _ in range(2):
        dist.all_reduce(torch.ones(8, 4))
    dist.broadcast(torch.ones(3, dtype=torch.bfloat16), 0)

train()
said = {"includeCollectives": True, "onlyActive": False}
while not all(call["retired"] for call in json.loads(_dump_fr_trace_json(**said))["entries"]):
    os.sched_yield()  # a thread of Gloo's notes it, soon after the call has returned
(folder / "frames_0").write_bytes(_dump_fr_trace(includeStackTraces=True, **said))
(folder / "plain_0").write_bytes(_dump_fr_trace(includeStackTraces=False, **said))
(folder / "none_0").write_bytes(_dump_fr_trace(False, False, False))
(folder / "rank_0.json").write_bytes(_dump_fr_trace_json(**said))
"""

NAMES = ("frames_0", "plain_0", "none_0", "rank_0.json")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    folder = tmp_path_factory.mktemp("gloo")
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    subprocess.run(command, check=True, env={"TORCH_FR_BUFFER_SIZE": "100", "PATH": ""}, timeout=120)
    return [folder / name for name in NAMES]


def read(path: Path) -> tuple[list[dict[str, Any]], Case]:
    with opened(path) as case:
        assert (case.sources[0].rank, case.sources[0].tool) == (0, "PyTorch")
        return [{key: value for key, value in entry.items() if key != "stack_id"} for entry in entries(case)], case


def test_what_was_called_is_read(dumps: Sequence[Path]) -> None:
    called, _ = read(dumps[0])
    assert [(entry["op"], entry["sequence"]) for entry in called] == [
        ("gloo:all_reduce", 1),
        ("gloo:all_reduce", 2),
        ("gloo:broadcast", 3),
    ]
    assert [entry["input_sizes"] for entry in called] == ["[[8,4]]", "[[8,4]]", "[[3]]"]
    assert called[2]["input_dtypes"] == '["BFloat16"]'
    assert {entry["description"] for entry in called} == {"default_pg"}


def test_all_ways_to_dump_say_the_same(dumps: Sequence[Path]) -> None:
    with_frames, plain, _, in_json = (read(path)[0] for path in dumps)
    assert with_frames == plain == in_json


def test_frames_lead_to_the_caller(dumps: Sequence[Path]) -> None:
    with opened(dumps[0]) as case:
        symbols = (
            "SELECT n.text FROM recorder_entry e JOIN stack s ON s.id = e.stack_id JOIN name n ON n.id = symbol_id"
        )
        found = [row["text"] for row in case.rows(f"{symbols} WHERE e.sequence = 3 ORDER BY s.depth")]
        assert "broadcast" in found
        assert found[-2:] == ["train", "<module>"]


def test_a_dump_without_calls_has_the_status_of_groups(dumps: Sequence[Path]) -> None:
    with opened(dumps[2]) as case:
        assert case.sources[0].capabilities["recorder_entry"] is None
        (group,) = case.rows("SELECT local_id, last_enqueued, last_completed FROM process_group")
        assert tuple(group) == (0, 3, 3)

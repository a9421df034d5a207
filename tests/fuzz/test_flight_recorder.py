"""Flight-recorder dumps with other bytes: a report, or a sentence; and no worker that does not come back."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest

from tests.builders.recorder_dumps import Job
from tests.fuzz import byte_mutations, contract
from tests.fuzz.seeds import chance_of, every_seed

REAL = os.environ.get("DIAG_REAL_REPORTS")
DUMP = Job(n_ranks=16, n_entries=30, with_frames=True).dump(3)
WHOLE = {"_dump_3": pickle.dumps(DUMP, protocol=2), "rank_3.json": json.dumps(DUMP).encode()}


@pytest.mark.parametrize("name", WHOLE)
@every_seed
def test_a_dump_with_other_bytes(seed: int, name: str, scratch: Path) -> None:
    _examine(WHOLE[name], scratch / name, seed, f"recorder {name}")


@pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
@every_seed
def test_a_real_dump_with_other_bytes(seed: int, scratch: Path) -> None:
    whole = Path(REAL or "", "flight-recorder", "gpu-error", "_dump_12").read_bytes()
    _examine(whole, scratch / "_dump_12", seed, "recorder real")


def _examine(whole: bytes, path: Path, seed: int, reader: str) -> None:
    content, mutation = byte_mutations.damaged(whole, chance_of(reader, seed))
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)

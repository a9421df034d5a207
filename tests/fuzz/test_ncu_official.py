"""A real Nsight Compute report with other bytes, read by NVIDIA's own library, which crashes on some of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions
from tests.fuzz import byte_mutations, contract
from tests.fuzz.seeds import chance_of, every_seed
from tests.ingest.ncu_official.needs import official_reader

REAL = os.environ.get("DIAG_REAL_REPORTS")


@pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
@every_seed
def test_a_report_with_other_bytes(seed: int, scratch: Path) -> None:
    official_reader()
    whole = Path(REAL or "", "ncu", "cuda-course.ncu-rep").read_bytes()
    content, mutation = byte_mutations.damaged(whole, chance_of("ncu official", seed))
    path = scratch / "kernels.ncu-rep"
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    contract.examine(path, imports=ImportOptions(use_cache=False, with_ncu_report=True))

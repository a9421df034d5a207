"""Output of nccl-tests and matrices of nvidia-smi, with other bytes, lines and cells."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders.nccl_tests import NcclTests, on_line, written
from tests.builders.topology import Topology
from tests.fuzz import byte_mutations, contract
from tests.fuzz.seeds import chance_of, every_seed
from tests.ingest.test_nccl_tests import TRIALS

RUN = NcclTests(on_line(370e9, 20_000))

SAMPLES = {
    "printed": RUN.text.encode(),
    "old": replace(RUN, is_old=True).text.encode(),
    "log": replace(RUN, log_host="0fed198eb8ba").text.encode(),
    "json": written(RUN).encode(),
    "pytorch": TRIALS.encode(),
    "topology": Topology().text.encode(),
}

CELLS = (
    *("", "0", "-1", "nan", "inf", "1e999", "N/A", "9" * 400, "9" * 5000, "X", "NV999", "GPU0", "NIC0", "float", "#"),
    *("size count type", "# nThread", "# Collective test starting: x_perf", "\0", "\x1b[0m", "a:1:2 [0] NCCL INFO "),
)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_whole(name: str, scratch: Path) -> None:
    assert _examined(SAMPLES[name], scratch / name) == "report"


@every_seed
def test_other_bytes(seed: int, scratch: Path) -> None:
    chance = chance_of("comm bytes", seed)
    name = chance.choice(sorted(SAMPLES))
    content, mutation = byte_mutations.damaged(SAMPLES[name], chance)
    print(f"seed {seed}: {name}, {mutation}")
    _examined(content, scratch / name)


@every_seed
def test_other_cells_and_lines(seed: int, scratch: Path) -> None:
    chance = chance_of("comm cells", seed)
    name = chance.choice(sorted(SAMPLES))
    print(f"seed {seed}: {name}")
    _examined(_other_cells(SAMPLES[name], chance), scratch / name)


def _other_cells(content: bytes, chance: random.Random) -> bytes:
    lines = content.decode().split("\n")
    for _ in range(chance.choice((1, 3, 20))):
        at = chance.randrange(len(lines))
        cells = lines[at].split(" ")
        cells[chance.randrange(len(cells))] = chance.choice(CELLS)
        lines[at] = " ".join(cells)
        other = chance.randrange(len(lines))
        if chance.random() < 0.3:
            lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines).encode()


def _examined(content: bytes, path: Path) -> str:
    path.write_bytes(content or b"\0")
    return contract.examine(path)

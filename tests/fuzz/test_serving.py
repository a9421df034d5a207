"""Serving results, pages and logs, with other bytes, values and lines."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.builders.server_log import (
    OOM,
    SGLANG_START,
    VLLM_START,
    sglang_decode,
    sglang_prefill,
    traceback,
    vllm_stats,
)
from tests.builders.serving_log import LoggedRun, ServingLog, request
from tests.builders.serving_results import SAMPLES as RESULTS
from tests.fuzz import byte_mutations, contract
from tests.fuzz.json_mutations import ODD_VALUES
from tests.fuzz.seeds import chance_of, every_seed

LOG = "\n".join(
    [
        *VLLM_START, vllm_stats(10), vllm_stats(20, waiting=9), *SGLANG_START, sglang_prefill(1), sglang_decode(2),
        *traceback("execute_model"), OOM, "",
    ]
)  # fmt: skip

SAMPLES = {**{name: written.content for name, written in RESULTS.items()}, "log": LOG.encode()}

JSON = sorted(name for name in SAMPLES if name not in ("log", "vllm page", "sglang page"))
LINES = sorted(set(SAMPLES) - {name for name in JSON if "records" not in name and name != "sglang"})

CELLS = (
    "",
    "0",
    "-1",
    "NaN",
    "+Inf",
    "1e999",
    "9" * 400,
    "{",
    '"',
    "}",
    "\0",
    "\x1b[0m",
    "99:99:99",
    "13-45",
    "%",
    ",",
)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_whole(name: str, scratch: Path) -> None:
    assert _examined(SAMPLES[name], scratch / "file") == "report"


def test_our_own_log_is_whole(scratch: Path) -> None:
    log = ServingLog([LoggedRun(requests=[request(0, 0), request(1, 1_000)])])
    assert contract.examine(log.write(scratch / "file")) == "report"


@every_seed
def test_other_bytes(seed: int, scratch: Path) -> None:
    chance = chance_of("serving bytes", seed)
    name = chance.choice(sorted(SAMPLES))
    content, mutation = byte_mutations.damaged(SAMPLES[name], chance)
    print(f"seed {seed}: {name}, {mutation}")
    _examined(content, scratch / "file")


@every_seed
def test_other_values(seed: int, scratch: Path) -> None:
    chance = chance_of("serving values", seed)
    name = chance.choice(JSON)
    documents = [json.loads(line) for line in SAMPLES[name].splitlines()]
    said = [_odd(chance.choice(documents), chance) for _ in range(chance.choice((1, 2, 8)))]
    print(f"seed {seed}: {name}, {said}")
    text = "\n".join(json.dumps(document) for document in documents)
    _examined(text.encode("utf-8", "surrogatepass"), scratch / "file")


@every_seed
def test_other_lines(seed: int, scratch: Path) -> None:
    chance = chance_of("serving lines", seed)
    name = chance.choice(LINES)
    print(f"seed {seed}: {name}")
    _examined(_other_lines(SAMPLES[name], chance), scratch / "file")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("name", JSON)
def test_deep_nesting(name: str, opening: str, scratch: Path) -> None:
    closing = "]" if opening == "[" else "}"
    deep = opening * 100_000 + "1" + closing * 100_000
    text = SAMPLES[name].decode().rstrip().removesuffix("}") + f', "metrics": {deep}}}'
    _examined(text.encode(), scratch / "file")


def _odd(document: Any, chance: random.Random) -> str:
    """Replaces or drops a value somewhere, and says where."""
    place, path = document, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return "nothing"
        key = chance.choice(keys)
        path.append(str(key))
        if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.8:
            place = place[key]
            continue
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = chance.choice(ODD_VALUES)
        return "/".join(path)


def _other_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.decode().split("\n")
    for _ in range(chance.choice((1, 3, 20))):
        at = chance.randrange(len(lines))
        cells = lines[at].split(" ")
        cells[chance.randrange(len(cells))] = chance.choice(CELLS)
        lines[at] = " ".join(cells)
        other = chance.randrange(len(lines))
        if chance.random() < 0.3:
            lines[at], lines[other] = lines[other], lines[at]
        if chance.random() < 0.1:
            lines[at:at] = [lines[at]] * 50
    return "\n".join(lines).encode()


def _examined(content: bytes, path: Path) -> str:
    path.write_bytes(content or b"\0")
    return contract.examine(path)

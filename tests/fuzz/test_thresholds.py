"""Files of thresholds: numbers that no threshold is, and text that is no TOML."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import pytest

from diag.errors import UsageError
from diag.rules import thresholds
from tests.fuzz import byte_mutations, contract
from tests.fuzz.seeds import chance_of, every_seed

SHIPPED = resources.files("diag.rules").joinpath("thresholds.toml").read_bytes()


def _examine(path: Path) -> str:
    """Loads the file; returns 'loaded', or the sentence that was said instead."""
    try:
        with contract.bounded():
            values = thresholds.load(path)
    except UsageError as error:
        return contract.one_sentence(error)
    assert all(0 <= value <= thresholds.LARGEST for table in values.values() for value in table.values())
    return "loaded"


@every_seed
def test_thresholds_with_other_bytes(seed: int, scratch: Path) -> None:
    path = scratch / "mine.toml"
    content, mutation = byte_mutations.damaged(SHIPPED, chance_of("thresholds", seed))
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    _examine(path)


@pytest.mark.parametrize(
    "value",
    ["nan", "inf", "-inf", "-1", "1e400", "9" * 500, "true", '"0.1"', "[0.1]", "2020-01-01", "{ value = nan }",
     "[" * 5_000, "{a=" * 5_000, "0x" + "f" * 300, "0_1", ""],
    ids=lambda value: value[:12],
)  # fmt: skip
def test_what_is_no_threshold(value: str, scratch: Path) -> None:
    path = scratch / "mine.toml"
    path.write_text(f'["idle.gpu"]\nshare = {value}\n')
    assert str(path) in _examine(path)


def test_what_is_no_file(scratch: Path) -> None:
    os.mkfifo(scratch / "pipe")
    for path in (scratch / "pipe", scratch, scratch / "none", Path("/dev/zero")):
        assert "is not a file" in _examine(path)

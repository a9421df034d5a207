"""What ncu printed, with other bytes, lines and fields; tables that hold anything."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders.printed_pages import FOLDER, OTHERS, PAGES
from tests.fuzz import byte_mutations, contract
from tests.fuzz.seeds import chance_of, every_seed
from tests.ingest.ncu_output.pages import DETAILS, RULES, row
from tests.ingest.ncu_output.test_text_pages import NEW, OLD, SUMMARY

SAMPLES = {name: (FOLDER / name).read_bytes() for name in (*PAGES, *OTHERS)}
SAMPLES |= {"new.txt": NEW.encode(), "old.txt": OLD.encode(), "per-gpu.txt": SUMMARY.encode()}

NOISE = (
    *("==PROF== Connected to process 1", "==ERROR== bad", "", '"', '"0",', "    ---- ---- ----", "-" * 50),
    *(
        "    Section: ",
        "[1] a@b",
        "  k, Context 1, Stream 7",
        "    NVTX Start/End Ranges:",
        "    WRN   x",
        "          y",
    ),
    *("    Metric Name  Metric Unit  Metric Value", "\0", "\x1b[0m", "\ufeff", "9" * 400, '"a","b"' * 50),
)
FIELDS = (
    *("", "n/a", "nan", "1e999", "-1", "9" * 400, "1,2,3", "1.2.3,4", "(1; 2", "1 (2; 3)", "(((", "\0", '"', "\n"),
    *(
        "(1, 1, 1)",
        "(99999999999, 1, 1)",
        "999.999",
        "ns",
        "Kbyte/usecond",
        "/",
        "//s",
        "SpeedOfLight",
        "dram__bytes.sum",
    ),
)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_whole(name: str, scratch: Path) -> None:
    assert _examined(SAMPLES[name], scratch / name) == "report"


@pytest.mark.parametrize("tenth", range(1, 10))
@pytest.mark.parametrize("name", SAMPLES)
def test_cut(name: str, tenth: int, scratch: Path) -> None:
    _examined(SAMPLES[name][: len(SAMPLES[name]) * tenth // 10], scratch / name)


@every_seed
def test_other_bytes(seed: int, scratch: Path) -> None:
    _with_each(byte_mutations.damaged, "ncu bytes", seed, scratch)


@every_seed
def test_other_lines(seed: int, scratch: Path) -> None:
    _with_each(_other_lines, "ncu lines", seed, scratch)


@every_seed
def test_other_fields(seed: int, scratch: Path) -> None:
    _with_each(_other_fields, "ncu fields", seed, scratch)


Damage = Callable[[bytes, random.Random], tuple[bytes, str]]


def _with_each(damage: Damage, what: str, seed: int, scratch: Path) -> None:
    chance = chance_of(what, seed)
    name = chance.choice(sorted(SAMPLES))
    content, mutation = damage(SAMPLES[name], chance)
    print(f"seed {seed}: {name}, {mutation}")
    _examined(content, scratch / name)


def _other_lines(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    lines = content.decode().split("\n")
    made = []
    for _ in range(chance.choice((1, 3, 20))):
        at = chance.randrange(len(lines))
        made.append(chance.choice(("leave out", "repeat", "swap", "insert", "shorten")))
        match made[-1]:
            case "leave out":
                lines[at : at + chance.choice((1, 5))] = [""]
            case "repeat":
                lines[at:at] = lines[at : at + chance.choice((1, 20))]
            case "swap":
                other = chance.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case "insert":
                lines.insert(at, chance.choice(NOISE))
            case "shorten":
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
    return "\n".join(lines).encode(), ", ".join(made)


def _other_fields(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Between quotes or, on pages for people, between spaces."""
    text = content.decode()
    between = '"' if text.startswith('"') else " "
    fields = text.split(between)
    made = [chance.choice(FIELDS) for _ in range(chance.choice((1, 5, 50)))]
    for field in made:
        fields[chance.randrange(len(fields))] = field
    return between.join(fields).encode(), ", ".join(map(repr, made))


_anything = st.one_of(st.sampled_from(FIELDS), st.text(max_size=30), st.integers(-5, 1 << 70).map(str))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    columns=st.lists(st.sampled_from((*DETAILS, *RULES, "Average", "a__b", "launch__device_id")), max_size=25),
    rows=st.lists(st.lists(_anything, max_size=25), max_size=10),
)
def test_tables_that_hold_anything(
    columns: list[str], rows: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    header = row("ID", "Kernel Name", "Metric Name", "Metric Value", *columns)
    content = "\n".join([header, *(row(0, "k", "dram__bytes.sum", *fields) for fields in rows)])
    _examined(content.encode("utf-8", "surrogatepass"), tmp_path_factory.mktemp("any") / "page.csv")


def _examined(content: bytes, path: Path) -> str:
    path.write_bytes(content or b"\0")
    return contract.examine(path)

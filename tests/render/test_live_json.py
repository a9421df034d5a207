"""The contract `diag.live/1`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from diag.render.live_json import SCHEMA, render_live_json
from diag.render.live_view import view_of
from tests.render.live_moments import HOSTILE, answers, hostile_run, run

CONTRACT = (Path(__file__).parents[2] / "docs" / "json-contract.md").read_text("utf-8")


def document(**how: bool) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(render_live_json(view_of(run(), answers()), **how))
    return loaded


def test_every_key_is_in_the_contract() -> None:
    section = CONTRACT.partition("# diag watch\n")[2].partition("\n# ")[0]
    told = set(re.findall(r"[a-z][a-z_0-9]*", " ".join(re.findall(r"`([^`]+)`", section))))
    assert sorted(set(keys(document())) - told) == []


def keys(value: object) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for item in value.values() for key in keys(item))]
    if isinstance(value, list):
        return [key for item in value for key in keys(item)]
    return []


def test_values_are_those_of_the_view() -> None:
    said = document()
    assert said["schema"] == SCHEMA == "diag.live/1"
    assert said["pid"] == 100
    assert said["gpus"][0]["resident_pct"] == 97.0
    assert said["gpus"][0]["is_used"] is True
    assert said["processes"][0]["cores"] == 1.5
    assert said["processes"][0]["threads"][1]["waits_in"] == "futex_wait_queue"
    assert said["findings"][0]["evidence"][0]["unit"] == "share"
    assert said["cannot_tell"][0]["because"].startswith("because")


def test_a_line_is_a_line() -> None:
    text = render_live_json(view_of(run()), is_one_line=True)
    assert text.count("\n") == 1
    assert json.loads(text) == json.loads(render_live_json(view_of(run())))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    text = render_live_json(view_of(hostile_run(name), answers(name)))
    assert text.isascii()
    said = json.loads(text)["processes"][0]["name"]
    assert said == name.replace("\udce9", "\\udce9")

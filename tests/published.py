"""Documents against the schemas that are published with diag, with no key allowed that is not in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from diag.render.contract.schema import closed
from diag.render.published import schema_text


def check(document: Mapping[str, Any], name: str | None = None) -> None:
    """Raises AssertionError that names the first places where a document of diag is not as its schema says."""
    found = sorted(
        _validator(name or document["schema"]).iter_errors(document), key=lambda error: list(error.absolute_path)
    )
    assert not found, [f"{error.json_path}: {error.message[:300]}" for error in found[:5]]


def check_output(text: str) -> int:
    """As `check`, of all that a command wrote: one document, one on each line, or none. Returns how many."""
    if '"schema": "diag.' not in text[:200]:
        return 0
    documents = [json.loads(text)] if text.startswith("{\n") else [json.loads(line) for line in text.splitlines()]
    for document in documents:
        check(document)
    return len(documents)


@cache
def _validator(name: str) -> Any:
    return Draft202012Validator(closed(json.loads(schema_text(name))))

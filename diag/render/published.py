"""The schemas of diag's documents as they are shipped: `diag.report/1` and others (docs/json-contract.md)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

_FOLDER = files("diag.render") / "schemas"


def names() -> Sequence[str]:
    """As documents have them in their key `schema`."""
    return sorted(f"diag.{file.name.removesuffix('.json').replace('-1', '/1')}" for file in _FOLDER.iterdir())


def schema_text(name: str) -> str:
    """JSON Schema (2020-12) of the documents of this name. Raises KeyError for one that there is not."""
    if name not in names():
        raise KeyError(name)
    return (_FOLDER / f"{name.removeprefix('diag.').replace('/', '-')}.json").read_text("utf-8")

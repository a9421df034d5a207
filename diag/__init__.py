"""diag: from a GPU program's run to the reason it is slow."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diag.ingest.importer import ImportOptions, open_inputs
    from diag.store.case import Case

__all__ = ["Case", "ImportOptions", "__version__", "open_inputs"]
__version__ = "0.1.0"

_HOMES = {
    "Case": "diag.store.case",
    "ImportOptions": "diag.ingest.importer",
    "open_inputs": "diag.ingest.importer",
}
"""What a notebook needs, and where it lives. Loaded when first asked for, or `diag --help` would wait for NumPy."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

"""Installs plug-ins for one test: their folder is on the path, and what is known of others is forgotten."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from diag import plugins
from diag.ingest import plugin_readers
from diag.rules import engine, stored, thresholds
from tests.plugins.packages import Package

Install = Callable[..., None]

_CACHES = (
    plugins.installed,
    plugin_readers.found,
    engine._load_plugins,
    thresholds._shipped,
    stored.digest_of_code,
)


def lies_in(folder: Path, module: ModuleType) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(str(folder))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Called again with another version of a package, it puts that in the place of the first."""
    known = dict(engine.rules())
    monkeypatch.delenv(plugins.SWITCH)
    folder = tmp_path / "installed"
    folder.mkdir()

    def forget() -> None:
        engine._REGISTRY.clear()
        engine._REGISTRY.update(known)
        for name in [name for name, module in sys.modules.items() if lies_in(folder, module)]:
            del sys.modules[name]
        for each in _CACHES:
            each.cache_clear()

    def put(*packages: Package) -> None:
        forget()
        for package in packages:
            package.install(folder)

    monkeypatch.syspath_prepend(folder)
    yield put
    forget()


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """A file that only a plug-in knows."""
    path = tmp_path / "a.counts"
    path.write_text("# counts\n1\n")
    return path

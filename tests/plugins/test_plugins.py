"""What is known of an installed package without loading it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from diag import plugins
from diag.errors import PluginError, StorageError
from diag.rules.engine import rules
from tests.plugins.conftest import Install
from tests.plugins.packages import Package, with_rule


def test_packages_are_told_in_the_order_of_their_names(install: Install) -> None:
    install(with_rule(module="b"), with_rule(module="a"))
    assert [plugin.title for plugin in plugins.installed(plugins.RULES)] == ["a (a 1.0)", "b (b 1.0)"]
    assert plugins.installed(plugins.READERS) == ()


def test_a_module_belongs_to_who_installed_its_package(install: Install) -> None:
    install(with_rule())
    assert plugins.owner("mine.deeper.rules") == "mine (mine 1.0)"
    assert plugins.owner("elsewhere") == "elsewhere"


@pytest.mark.parametrize("value", ["not_there.rules", "not there", ":", "", ".", "not_there:rules:more"])
def test_an_entry_that_leads_nowhere_has_a_digest_and_cannot_be_loaded(install: Install, value: str) -> None:
    install(Package("gone", {"diag.rules": f"gone = {value}"}, {}))
    (plugin,) = plugins.installed(plugins.RULES)
    assert len(plugin.digest) == 64
    assert "plugin.gone.gone" in rules()
    with pytest.raises(PluginError, match=r"the plug-in gone \(gone 1\.0\) failed: \w+Error"):
        plugin.load()


def test_the_digest_is_of_all_its_code(install: Install, tmp_path: Path) -> None:
    install(with_rule())
    (plugin,) = plugins.installed(plugins.RULES)
    before = plugin.digest
    deeper = tmp_path / "installed/mine/deeper"
    deeper.mkdir()
    (deeper / "more.py").write_text("")
    assert plugins.Plugin(plugin.entry).digest != before


def test_blame_is_short_and_only_for_what_a_plugin_did() -> None:
    with pytest.raises(PluginError) as raised, plugins.blamed("x"):
        raise ValueError("no\n" * 1000)
    assert len(str(raised.value)) < 400
    assert "\n" not in str(raised.value)
    for error in (MemoryError(), StorageError("The disk is full."), KeyboardInterrupt()):
        with pytest.raises(type(error)), plugins.blamed("x"):
            raise error


def test_an_interrupted_statement_is_no_fault_of_a_plugin() -> None:
    db = sqlite3.connect(":memory:")
    db.set_progress_handler(lambda: 1, 1)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"), plugins.blamed("x"):
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n").fetchall()

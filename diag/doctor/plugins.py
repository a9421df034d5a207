"""Which plug-ins are installed, and whether they can be loaded."""

from __future__ import annotations

from collections.abc import Iterator

from diag import plugins
from diag.doctor.check import Check
from diag.errors import PluginError
from diag.ingest import plugin_readers

TOPIC = "Plug-ins"


def checks() -> Iterator[Check]:
    if plugins.are_off():
        yield Check(TOPIC, "all", "missing", f"switched off by {plugins.SWITCH}=0", f"unset {plugins.SWITCH}")
        return
    readers = zip(plugins.installed(plugins.READERS), plugin_readers.found(), strict=True)
    found = [_reader(plugin, reader) for plugin, reader in readers]
    found += [_rules(plugin) for plugin in plugins.installed(plugins.RULES)]
    yield from found or [Check(TOPIC, "all", "ok", "none is installed")]


def _reader(plugin: plugins.Plugin, found: plugin_readers.PluginReader | PluginError) -> Check:
    if isinstance(found, PluginError):
        return _lost(plugin, found)
    return Check(TOPIC, plugin.title, "ok", f"reads a {found.reader.name} ({found.reader.kind})")


def _rules(plugin: plugins.Plugin) -> Check:
    try:
        plugin.load()
    except PluginError as error:
        return _lost(plugin, error)
    return Check(TOPIC, plugin.title, "ok", f"has rules ({plugin.entry.value}), which diag explain lists")


def _lost(plugin: plugins.Plugin, error: PluginError) -> Check:
    fix = f"Install a version of {plugin.package} that fits this diag, or uninstall it."
    return Check(TOPIC, plugin.title, "limited", str(error), fix)

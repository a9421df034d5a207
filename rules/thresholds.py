"""Thresholds of the rules: named ratios with their source, which the user may override."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import msgspec

from diag import plugins
from diag.errors import PluginError, UsageError

Limits = Mapping[str, float]
Tables = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Of a TOML file: by rule and name, each threshold with its `value` and `source`."""

FILE = "thresholds.toml"

LARGEST = 1e9
"""Thresholds are shares and ratios; one that nothing reaches need not be larger."""
SMALLEST = 1e-9
"""What a threshold of 0 stands for: however little there is, a rule fires on something and not on nothing."""
LARGEST_FILE_BYTES = 1 << 20


@cache
def _own() -> Tables:
    return tomllib.loads(resources.files("diag.rules").joinpath(FILE).read_text("utf-8"))


@cache
def _shipped() -> Tables:
    """With those of plug-ins. What is wrong with theirs is told where their rules are loaded."""
    tables = dict(_own())
    for plugin in plugins.installed(plugins.RULES):
        with suppress(PluginError):
            tables.update((rule, of) for rule, of in of_plugin(plugin).items() if rule not in tables)
    return tables


def of_plugin(plugin: plugins.Plugin) -> Tables:
    """Those in the file beside its module. Raises PluginError where it is no such file, or about rules of diag."""
    text = plugin.text_beside(FILE)
    with plugins.blamed(plugin.title):
        tables: Tables = tomllib.loads(text or "")
        for rule, table in tables.items():
            try:
                msgspec.convert(table, dict[str, _Entry])
            except msgspec.ValidationError as error:
                raise ValueError(f'its {FILE} holds no thresholds in ["{rule}"]: {error}') from error
        if taken := sorted(tables.keys() & _own().keys()):
            raise ValueError(f"its {FILE} sets thresholds of diag's own {', '.join(taken)}")
        return tables


class _Entry(msgspec.Struct):
    value: Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]
    source: str


def source_of(rule: str, name: str) -> str:
    return str(_shipped()[rule][name]["source"])


def load(override: Path | None = None) -> dict[str, dict[str, float]]:
    """Values by rule and name. Raises UsageError when the override names what does not exist or is not a number."""
    values = {rule: {name: float(entry["value"]) for name, entry in t.items()} for rule, t in _shipped().items()}
    if override is None:
        return values
    for rule, table in _changes(override).items():
        for name, entry in table.items() if isinstance(table, dict) else [(rule, table)]:
            value = entry.get("value") if isinstance(entry, dict) else entry
            if name not in values.get(rule, {}) or isinstance(value, bool) or not isinstance(value, int | float):
                raise UsageError(
                    f'{override} sets ["{rule}".{name}], which is not a threshold or not a number. A rule stands in '
                    'quotes, as in ["idle.gpu"]. See: diag explain thresholds'
                )
            if not 0 <= value <= LARGEST:
                raise UsageError(f'{override} sets ["{rule}".{name}] to {value}; a threshold is from 0 to {LARGEST:g}.')
            values[rule][name] = max(float(value), SMALLEST)
    return values


def _changes(override: Path) -> Mapping[str, Any]:
    try:
        if not override.is_file():  # opening a pipe would wait for its other end
            raise UsageError(f"The thresholds file {override} does not exist or is not a file.")
        with override.open("rb") as file:
            return tomllib.loads(file.read(LARGEST_FILE_BYTES).decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UsageError(f"The thresholds file {override} cannot be read: {error}.") from error

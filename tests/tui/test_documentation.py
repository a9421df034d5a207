from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from diag.tui import screens, widgets
from diag.tui.app import DiagApp
from diag.tui.faults import FaultScreen

PAGE = (Path(__file__).parents[2] / "docs" / "tui.md").read_text(encoding="utf-8")
WRITTEN = {
    "slash": "/",
    "question_mark": "?",
    "asterisk": "*",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "comma": ",",
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "pageup": "page up",
    "pagedown": "page down",
    "f5": "F5",
}
ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
IN_A_ROW = {str(number) for number in range(2, 9)}
"""Between `1` and `9`."""


def with_keys() -> list[type[DOMNode]]:
    """Everything in the app that has keys of its own."""
    modules = [
        import_module(f"{package.__name__}.{module.name}")
        for package in (screens, widgets)
        for module in iter_modules(package.__path__)
    ]
    classes = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    own = [each for each in classes if each.__module__.startswith("diag.tui.") and "BINDINGS" in vars(each)]
    return sorted([DiagApp, FaultScreen, *own], key=lambda each: each.__name__)


def written(key: str) -> str:
    """A key of Textual as the documentation writes it."""
    *modifiers, name = key.split("+")
    return "+".join([*modifiers, WRITTEN.get(name, ARROWS.get(name, name))])


@pytest.mark.parametrize("of", with_keys(), ids=lambda of: of.__name__)
def test_every_key_is_documented(of: type[DOMNode]) -> None:
    keys = {key for binding in Binding.make_bindings(of.BINDINGS) for key in binding.key.split(",")}
    assert keys
    assert [key for key in sorted(keys - IN_A_ROW) if f"`{written(key)}`" not in PAGE] == []


def test_the_screens_are_among_them() -> None:
    names = {each.__name__ for each in with_keys()}
    assert {"Overview", "Findings", "Timeline", "Kernels", "Roofline", "Launch", "Tree", "Ranks", "Sql"} <= names

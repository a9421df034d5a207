"""The rules of the tree: links, one import root, dependencies that point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LINKED = ("kernels", "probes", "rules", "tui")
"""Folders of the root that are imported through a link in diag/."""

OUTERMOST = {"compare", "render", "export", "doctor", "cluster", "tui", "learn", "cli"}
"""What compares, shows or writes, and is known to nothing below it."""

MAY_NOT_IMPORT = {
    "store": OUTERMOST
    | {"timeline", "launches", "ranks", "serving", "model", "ingest", "rules", "collect", "probes", "kernels"},
    "model": OUTERMOST
    | {"store", "timeline", "launches", "ranks", "serving", "ingest", "rules", "collect", "probes", "kernels"},
    "timeline": OUTERMOST | {"launches", "ranks", "serving", "ingest", "rules", "collect", "probes", "kernels"},
    "launches": OUTERMOST | {"ranks", "serving", "ingest", "rules", "collect", "probes", "kernels"},
    "ranks": OUTERMOST | {"launches", "serving", "ingest", "rules", "collect", "probes", "kernels"},
    "serving": OUTERMOST | {"ranks", "launches", "ingest", "rules", "collect", "probes", "kernels"},
    "ingest": OUTERMOST | {"rules", "collect", "probes", "kernels"},
    "rules": OUTERMOST | {"ingest", "collect", "probes", "kernels"},
    "compare": {
        "cluster",
        "ingest",
        "render",
        "export",
        "doctor",
        "tui",
        "learn",
        "cli",
        "collect",
        "probes",
        "kernels",
    },
    "export": {
        "cluster",
        "compare",
        "ingest",
        "render",
        "doctor",
        "tui",
        "learn",
        "cli",
        "collect",
        "probes",
        "kernels",
    },
    "doctor": {"cluster", "compare", "rules", "render", "export", "tui", "learn", "cli", "probes", "kernels"},
    "render": {"cluster", "ingest", "export", "tui", "learn", "cli", "collect", "probes", "kernels"},
    "cluster": (OUTERMOST - {"cluster"}) | {"collect", "probes", "kernels"},
    "tui": {"cluster", "learn", "cli", "probes", "kernels"},
    "learn": {"cluster", "render", "export", "tui", "cli"},
    "collect": OUTERMOST | {"rules"},
    "probes": OUTERMOST | {"ingest", "rules"},
    "kernels": OUTERMOST | {"store", "timeline", "ingest", "rules", "collect", "probes"},
}
"""cli → learn → probes, ingest; cli, tui, render → compare → rules; cli → cluster → rules, ingest; export → rules →
launches, ranks, serving → timeline, model → store; doctor → collect → ingest → store; collectors and probes know no
rules, and what the doctor found may be rendered."""


def python_files(*folders: str) -> list[Path]:
    """The Python files of some folders of the root, each once: under its own folder, not under a link to it."""
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return sorted({file.resolve() for file in files})


def imported_modules(file: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of each import in a file; `from a import b` counts as a and as a.b."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), filename=str(file))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield node.lineno, module
                yield from ((node.lineno, f"{module}.{name.name}") for name in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module" | "__import__"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield node.lineno, module


@pytest.mark.parametrize("name", LINKED)
def test_each_linked_folder_is_a_relative_link_to_its_neighbour(name: str) -> None:
    link = ROOT / "diag" / name
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{name}"
    assert link.is_dir()


def test_diag_holds_no_other_links() -> None:
    links = {path.name for path in (ROOT / "diag").rglob("*") if path.is_symlink()}
    assert links == set(LINKED)


def test_linked_folders_are_imported_through_diag_only() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {module}"
        for file in python_files("diag", "tests", "examples", *LINKED)
        for line, module in imported_modules(file)
        if module.split(".")[0] in LINKED
    ]
    assert wrong == []


@pytest.mark.parametrize("name", LINKED)
def test_the_installation_offers_no_other_import_root(name: str, tmp_path: Path) -> None:
    code = f"from importlib.util import find_spec; print(find_spec({name!r}))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert str(ROOT) not in found


def test_tests_do_not_see_the_linked_folders_either() -> None:
    assert str(ROOT) not in sys.path, "run `pytest`, not `python -m pytest`, which puts the current folder on the path"
    assert str(ROOT / "tests") not in sys.path


@pytest.mark.parametrize("layer", MAY_NOT_IMPORT)
def test_dependencies_point_one_way(layer: str) -> None:
    wrong = sorted(
        {
            f"{file.relative_to(ROOT)}:{line}: {module}"
            for file in python_files(layer if layer in LINKED else f"diag/{layer}")
            for line, module in imported_modules(file)
            if module.startswith("diag.") and module.split(".")[1] in MAY_NOT_IMPORT[layer]
        }
    )
    assert wrong == []


def test_what_diag_offers_to_notebooks_is_loaded_late_and_not_used_inside() -> None:
    import diag

    assert all(getattr(diag, name) is not None for name in diag.__all__)
    assert not hasattr(diag, "none")
    offered = {f"diag.{name}" for name in diag.__all__ if name != "__version__"}
    wrong = [file for file in python_files("diag", *LINKED) for _, name in imported_modules(file) if name in offered]
    assert wrong == []
    code = "import sys, diag; sys.exit('numpy' in sys.modules or 'diag.store' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import rules.idle", ["rules.idle"]),
        ("from rules import idle", ["rules", "rules.idle"]),
        ("def f():\n    from diag import rules as r", ["diag", "diag.rules"]),
        ("from . import rules", []),
        ("import importlib\nimportlib.import_module('tui.app')", ["importlib", "tui.app"]),
    ],
)
def test_imports_are_found(source: str, modules: list[str], tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(source)
    assert [module for _, module in imported_modules(file)] == modules

"""THIRD-PARTY.md out of the metadata of what is installed: python -m tests.third_party THIRD-PARTY.md"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageMetadata, metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]

NOT_SHIPPED = {"dev", "docs"}
"""Extras for work on diag itself."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ROW = re.compile(r"^\| \[(?P<name>[^\]]+)\]\([^)]*\) \| (?P<extra>\S+) \| (?P<licence>[^|]+) \|$", re.MULTILINE)
_LICENCE = re.compile(r"License :: (?:OSI Approved :: )?")

NOT_IN_METADATA = {"jupyterlab": "BSD-3-Clause", "resvg-py": "MIT"}
"""As their repositories state it: one is not installed to work on diag, the other's metadata name no licence."""

HEAD = """# Software of others that diag uses

diag (Apache-2.0, see LICENSE) holds no code of these packages: pip installs them beside it, under their own licences,
as their metadata state them. *core* comes with diag; the others only with the extra that is named, as in
`pip install 'gpu-diag[probes]'`.

| package | needed by | licence |
|---|---|---|
"""


@dataclass(frozen=True)
class Used:
    name: str
    extra: str
    home: str
    licence: str


def required() -> Mapping[str, str]:
    """Names of all packages that diag or one of its extras asks for, and by whom each is needed first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    by_extra = {"core": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, str] = {}
    for extra, requirements in by_extra.items():
        if extra not in NOT_SHIPPED:
            for requirement in requirements:
                match = _NAME.match(requirement)
                assert match is not None, requirement
                found.setdefault(match[0], extra)
    return found


def named(page: str) -> Mapping[str, str]:
    """Packages of the written page, and by whom each is needed."""
    return {row["name"]: row["extra"] for row in _ROW.finditer(page)}


def used() -> Iterator[Used]:
    for name, extra in required().items():
        licence = NOT_IN_METADATA.get(name) or _licence(metadata(name))
        yield Used(name, extra, f"https://pypi.org/project/{name}/", licence)


def _licence(about: PackageMetadata) -> str:
    if expression := about.json.get("license_expression"):
        return str(expression)
    classified = [_LICENCE.sub("", value) for value in about.get_all("Classifier") or [] if _LICENCE.match(value)]
    stated = str(about.json.get("license") or "").splitlines()
    return ", ".join(classified) or (stated[0] if stated else "see its page")


def page() -> str:
    return HEAD + "".join(f"| [{each.name}]({each.home}) | {each.extra} | {each.licence} |\n" for each in used())


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")

"""Plug-in packages as `pip` would leave them in a folder: a module, and the metadata that names its entry points."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

READER = """
from diag.ingest.reader import Reader

def looks_like(path, head):
    return head.startswith(b"# counts")

def read(file, case):
    source = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, time_resolution_ns=1
    )
    case.finish_source(source, {"count": 1})

READER = Reader("counts", "file of counts", looks_like, read)
"""
"""Of files that begin with `# counts`; they become a source without rows."""

RULE = '''
from diag.rules.engine import source_rule
from diag.rules.finding import CannotTell, Clear, Evidence, Finding, Subject

@source_rule("mine.answer")
def answer(trace, limits):
    """A rule that is there to be tested.

    Asks      What?
    Decides   By nothing.
    Matters   Not.
    Do        Nothing.
    Refute    Nothing would.
    """
    yield Clear(Subject(trace.source.id))
'''
"""It is clear of everything."""


@dataclass(frozen=True)
class Package:
    """`entries` are entry points by their group, each `name = object`; `files` lie in a package called `module`."""

    module: str
    entries: Mapping[str, str]
    files: Mapping[str, str]
    version: str = "1.0"

    def install(self, folder: Path) -> None:
        for old in folder.glob(f"{self.module}*"):
            shutil.rmtree(old)
        metadata = folder / f"{self.module}-{self.version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {self.module}\nVersion: {self.version}\n")
        groups = (f"[{group}]\n{entry}\n" for group, entry in self.entries.items())
        (metadata / "entry_points.txt").write_text("\n".join(groups))
        (folder / self.module).mkdir()
        for name, text in {"__init__.py": "", **self.files}.items():
            (folder / self.module / name).write_text(dedent(text))


def with_rule(code: str = RULE, *, module: str = "mine", thresholds: str = "", version: str = "1.0") -> Package:
    files = {"rules.py": code, "thresholds.toml": thresholds}
    return Package(module, {"diag.rules": f"{module} = {module}.rules"}, files, version)


def with_reader(code: str = READER, *, module: str = "mine", version: str = "1.0") -> Package:
    return Package(module, {"diag.readers": f"{module} = {module}.reader:READER"}, {"reader.py": code}, version)

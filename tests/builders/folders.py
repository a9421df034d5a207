"""Several files of one job, in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.builders.imported import Recorded


@dataclass(frozen=True)
class Folder:
    """Files are named by their place, so that they are read in this order."""

    files: tuple[Recorded, ...]

    def write(self, path: Path) -> Path:
        path.mkdir()
        for number, file in enumerate(self.files):
            file.write(path / f"{number:03d}.txt")
        return path

    def backwards(self) -> Folder:
        return Folder(tuple(file.backwards() for file in self.files))

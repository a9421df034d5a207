"""Which rules fire on what a lesson or an exercise left behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diag.ingest.importer import ImportOptions, open_inputs
from diag.learn.lesson import Command
from diag.rules.analysis import AnalysisOptions, analyse


def fired(commands: Sequence[Command]) -> set[str]:
    """Of the files that `diag report` is asked about, all together."""
    files = [Path(word) for command in commands for word in command if Path(word).exists()]
    with open_inputs(files, ImportOptions(use_cache=False)) as case:
        return {finding.rule for finding in analyse(case, AnalysisOptions()).findings}

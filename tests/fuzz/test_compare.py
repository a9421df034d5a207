"""Damaged inputs on both sides of a comparison: one sentence, or a comparison in which nothing differs from itself."""

from __future__ import annotations

import copy
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from diag.compare import of_case, of_report
from diag.compare.comparison import compare
from diag.compare.recording import Recording, Side
from diag.errors import DiagError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.render import COMPARISON_RENDERERS, render_json
from diag.rules import document
from diag.rules.analysis import AnalysisOptions, analyse
from tests.fuzz import contract, database_mutations, json_mutations, samples
from tests.fuzz.questions import some_question
from tests.fuzz.seeds import chance_of, every_seed


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.nsys_export().write(tmp_path_factory.mktemp("whole") / "report.sqlite")


@pytest.fixture(scope="module")
def sound(whole: Path) -> Recording:
    return recorded(whole, AnalysisOptions())


@pytest.fixture(scope="module")
def report(whole: Path) -> dict[str, object]:
    with open_inputs([whole], ImportOptions(use_cache=False)) as case:
        written: dict[str, object] = json.loads(render_json(analyse(case)))
    return written


def recorded(path: Path, options: AnalysisOptions) -> Recording:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        return of_case.recording_of(case, options, path.name)


def keeps_the_promise(damaged: Recording, sound: Recording) -> None:
    """Against a sound run any answer will do; against itself only one."""
    for pair in ((damaged, sound), (sound, damaged), (damaged, damaged)):
        comparison = compare(*(Side(run.path, [run]) for run in pair))
        for render in COMPARISON_RENDERERS.values():
            assert render(comparison).endswith("\n")
    changes = [*comparison.figures, *comparison.kernels, *(each.change for each in comparison.ranges)]
    assert {change.answer for change in changes} <= {"within noise", "not comparable"}
    assert {change.moved_ns for change in changes} <= {0}


@every_seed
def test_an_export_with_other_tables(seed: int, whole: Path, sound: Recording, scratch: Path, tmp_path: Path) -> None:
    chance = chance_of("compared tables", seed)
    path = scratch / "report.sqlite"
    shutil.copyfile(whole, path)
    mutation = database_mutations.mutate(path, database_mutations.MUTATIONS, chance)
    options = some_question(chance, tmp_path)
    print(f"seed {seed}: {mutation}; {options}")
    try:
        with contract.bounded():
            keeps_the_promise(recorded(path, options), sound)
    except DiagError as error:
        contract.one_sentence(error)


@every_seed
def test_a_json_report_with_other_values(seed: int, report: dict[str, object], sound: Recording) -> None:
    chance = chance_of("compared reports", seed)
    changed = copy.deepcopy(report)
    print(f"seed {seed}: {[spoil(changed, chance) for _ in range(chance.choice((1, 2, 5)))]}")
    text = json.dumps(changed).encode("utf-8", "surrogatepass")
    try:
        with contract.bounded():
            keeps_the_promise(of_report.recording_of(document.of_json(text, "run.json"), "run.json"), sound)
    except DiagError as error:
        contract.one_sentence(error)


def spoil(value: Any, chance: random.Random) -> list[object]:
    """Puts something odd, or what stands in another place, somewhere below; returns where and what."""
    place: list[object] = []
    while True:
        key = chance.choice(sorted(value) if isinstance(value, dict) else range(len(value)))
        place.append(key)
        below = value[key]
        if not isinstance(below, dict | list) or not below or chance.random() < 0.1:
            value[key] = chance.choice((*json_mutations.ODD_VALUES, -1, 0, 2**40))
            return [*place, str(value[key])[:40]]
        value = below

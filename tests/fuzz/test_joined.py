"""An export and a trace of one process, put on one axis, of which one or both were damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fuzz import contract, database_mutations, json_mutations, samples
from tests.fuzz.questions import some_question
from tests.fuzz.seeds import chance_of


def test_the_whole_pair_keeps_the_promise(scratch: Path) -> None:
    export, document = samples.joined_pair()
    trace = scratch / "trace.json"
    trace.write_text(json.dumps(document))
    assert contract.examine(export.write(scratch / "run.sqlite"), trace) == "report"


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 500))])
def test_a_pair_that_does_not_fit(seed: int, scratch: Path, tmp_path: Path) -> None:
    chance = chance_of("joined", seed)
    export, document = samples.joined_pair()
    run, trace = export.write(scratch / "run.sqlite"), scratch / "trace.json"
    text, said = json.dumps(document).encode(), []
    if chance.random() < 0.6:
        said.append(database_mutations.mutate(run, database_mutations.ROW_MUTATIONS, chance))
    if chance.random() < 0.6:
        text, mutation = json_mutations.mutate(document, chance)
        said.append(mutation)
    trace.write_bytes(text)
    options = some_question(chance, tmp_path)
    print(f"seed {seed}: {said}; {options}")
    contract.examine(run, trace, options=options)

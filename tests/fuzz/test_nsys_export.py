"""Exports of Nsight Systems with damaged bytes, and sound databases with tables, columns and values that are not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from diag.rules.engine import TraceRule, rules
from tests.builders.nsys_schema import SCHEMAS
from tests.fuzz import byte_mutations, contract, database_mutations, samples
from tests.fuzz.questions import some_question
from tests.fuzz.seeds import chance_of, every_seed
from tests.rules.test_every_rule import CASES

REAL = os.environ.get("DIAG_REAL_REPORTS")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One export of each schema."""
    folder = tmp_path_factory.mktemp("whole")
    return {schema: samples.nsys_export(schema).write(folder / f"{schema}.sqlite") for schema in SCHEMAS}


@pytest.fixture(scope="module")
def firing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An export for each rule in which it finds something."""
    folder = tmp_path_factory.mktemp("firing")
    of_exports = [rule for rule, of in rules().items() if isinstance(of, TraceRule)]
    return {rule: CASES[rule].fires().write(folder / f"{rule}.sqlite") for rule in of_exports}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_whole_exports_keep_the_promise(schema: str, whole: dict[str, Path]) -> None:
    assert contract.examine(whole[schema]) == "report"


@every_seed
def test_an_export_with_other_tables(seed: int, whole: dict[str, Path], scratch: Path, tmp_path: Path) -> None:
    chance = chance_of("nsys tables", seed)
    path = scratch / "report.sqlite"
    shutil.copyfile(whole[chance.choice(sorted(whole))], path)
    mutation = database_mutations.mutate(path, database_mutations.MUTATIONS, chance)
    options = some_question(chance, tmp_path)
    print(f"seed {seed}: {mutation}; {options}")
    contract.examine(path, options=options)


@every_seed
def test_an_export_that_a_rule_fires_on(seed: int, firing: dict[str, Path], scratch: Path, tmp_path: Path) -> None:
    chance = chance_of("firing", seed)
    rule = chance.choice(sorted(firing))
    path = scratch / "report.sqlite"
    shutil.copyfile(firing[rule], path)
    mutation = database_mutations.mutate(path, database_mutations.ROW_MUTATIONS, chance)
    options = some_question(chance, tmp_path)
    print(f"seed {seed}: {rule}: {mutation}; {options}")
    contract.examine(path, options=options)


@every_seed
def test_an_export_with_other_bytes(seed: int, whole: dict[str, Path], scratch: Path) -> None:
    chance = chance_of("nsys bytes", seed)
    path = scratch / "report.sqlite"
    content, mutation = byte_mutations.damaged(whole[chance.choice(sorted(whole))].read_bytes(), chance)
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
@pytest.mark.parametrize("seed", range(100))
def test_a_real_export_with_other_tables(seed: int, scratch: Path) -> None:
    chance = chance_of("real nsys tables", seed)
    path = scratch / "report.sqlite"
    shutil.copyfile(chance.choice(sorted(Path(str(REAL), "nsys").glob("*.sqlite"))), path)
    mutation = database_mutations.mutate(path, database_mutations.MUTATIONS, chance)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)

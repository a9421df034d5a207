"""Recorders as a case holds them, which somebody may have edited by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from tests.rules.hanging import healthy


@pytest.mark.parametrize("ranks", ["0, 1, 2", "{", '{"ranks": 2}', '["0", null]', "[-1]", "[" * 100_000])
def test_ranks_of_a_group_that_are_no_list_of_ranks_are_not_known(tmp_path: Path, ranks: str) -> None:
    with open_inputs([healthy().write(tmp_path / "dumps")], ImportOptions(use_cache=False)) as case:
        case.db.execute("UPDATE process_group SET ranks = ? WHERE source_id = 1", (ranks,))
        dumps = Job(case).dumps.by_rank
        assert [group.label.ranks for dump in dumps.values() for group in dump.groups] == [None, (0, 1, 2), (0, 1, 2)]

"""Which rank of a job a source is, told by what surrounds its events: the environment, a payload, the name of its file.

What a source says of itself goes first (a PyTorch trace's distributedInfo), then the environment that it was recorded
in, then NCCL's payloads, then the name of the file. `source.rank_origin` keeps which of them it was.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import PurePath

from diag.store.case import Case, Source

LARGEST_RANK = 1 << 24

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
"""As torchrun, Open MPI, PMIx, MPICH and Slurm set them."""

_IN_FILE_NAME = re.compile(r"(?:^|[._-])(?:rank|r)[._-]?(\d{1,7})(?=[._-]|$)", re.IGNORECASE)


def rank_of_environment(environment: object) -> tuple[int | None, int | None]:
    """Rank and world size in the bytes `NAME=VALUE;NAME=VALUE`; nothing else of them is looked at.

    >>> rank_of_environment(b"HOME=/root;RANK=3;WORLD_SIZE=8")
    (3, 8)
    """
    text = environment.decode("utf-8", "replace") if isinstance(environment, bytes) else ""
    rank, size = _first_number(text, _RANK_VARIABLES), _first_number(text, _SIZE_VARIABLES)
    return rank, size if rank is not None else None


def _first_number(environment: str, names: tuple[str, ...]) -> int | None:
    for name in names:
        if found := re.search(rf"(?:^|;){name}=(\d{{1,8}})(?:;|$)", environment):
            return int(found.group(1)) if int(found.group(1)) < LARGEST_RANK else None
    return None


def rank_of_file_name(path: str) -> int | None:
    """
    >>> [rank_of_file_name(name) for name in ("job/trace_rank3.json.gz", "r12.nsys-rep", "gpu_41.json")]
    [3, 12, None]
    """
    found = _IN_FILE_NAME.search(PurePath(path).name)
    return int(found.group(1)) if found else None


def name_ranks(case: Case) -> None:
    """Gives each timeline of the case its rank, where anything tells it, and notes where two claim the same."""
    for source in case.sources:
        if source.has_timeline and source.rank is None:
            _name(case, source)
        elif source.rank_origin == "environment" and len(case.rows(_PROCESSES_WITH_WORK, (source.id,))) > 1:
            case.db.execute(_SET, (None, None, source.world_size, source.id))  # the launcher's, not that of its ranks
    claims = defaultdict(list)
    for row in case.rows(_CLAIMS):
        claims[row["rank"], row["kind"]].append(row)
    for (rank, _), rows in claims.items():
        for row in rows[1:]:
            text = f"It says that it is rank {rank}, as {rows[0]['path']} does: which of them is, nothing tells."
            case.insert("source_note", [{"source_id": row["id"], "text": text}])
    case.forget_sources()


def _name(case: Case, source: Source) -> None:
    ranks = case.rows(_RANKS_IN_PAYLOADS, (source.id,))
    if ranks and len({row["process_id"] for row in ranks}) == 1:
        largest = max(ranks, key=lambda row: row["group_size"])
        if len({row["rank"] for row in ranks if row["group_size"] == largest["group_size"]}) == 1:
            case.db.execute(_SET, (largest["rank"], "payload", largest["group_size"], source.id))
            return
    if (rank := rank_of_file_name(source.path)) is not None:
        case.db.execute(_SET, (rank, "file name", source.world_size, source.id))


_PROCESSES_WITH_WORK = "SELECT DISTINCT process_id FROM gpu_op WHERE source_id = ?"
_RANKS_IN_PAYLOADS = """
    SELECT DISTINCT process_id, group_size, rank
      FROM collective
     WHERE source_id = ? AND communicator IS NOT NULL AND rank IS NOT NULL AND group_size IS NOT NULL
"""
_CLAIMS = """
    SELECT id, rank, kind, path FROM source WHERE rank IS NOT NULL AND joined_to IS NULL AND NOT is_unread ORDER BY id
"""
_SET = "UPDATE source SET rank = ?, rank_origin = ?, world_size = ? WHERE id = ?"

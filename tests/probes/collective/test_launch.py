"""Ranks that are started here: whoever fails is heard, whoever hangs is ended, and nobody is left behind."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from diag.errors import DiagError, UsageError
from diag.probes.collective import launch
from diag.probes.collective.launch import together
from diag.probes.collective.world import Place, opened

WRITES_PID = (
    "import os, pathlib, sys, time; rank = os.environ['RANK']; folder = pathlib.Path(sys.argv[1]);"
    "(folder / f'{rank}.part').write_text(str(os.getpid())); (folder / f'{rank}.part').rename(folder / rank);"
)
"""Argument: where."""


def python(code: str, *words: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, words)]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_rank_0_is_heard_and_every_rank_knows_its_place() -> None:
    code = "import os; print(*(os.environ[n] for n in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE')))"
    assert list(together(python(code), 3)) == ["0 3 0 3"]


def test_all_that_rank_0_says_is_heard() -> None:
    assert len(list(together(python("print('line\\n' * 5000, end='')"), 2))) == 5000


def test_the_rank_that_fails_is_named_and_one_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "GRACE_S", 0.5)
    code = WRITES_PID + "sys.exit('the disk is on fire') if rank == '1' else time.sleep(600)"
    begun = time.monotonic()
    with pytest.raises(DiagError, match="Rank 1 of 2: the disk is on fire"):
        list(together(python(code, tmp_path), 2))
    assert time.monotonic() - begun < 60
    assert not is_alive(int((tmp_path / "0").read_text()))


def test_what_a_rank_said_before_a_signal_ended_it_is_told() -> None:
    code = "import os, sys; print('what(): no route', file=sys.stderr, flush=True); os.abort()"
    with pytest.raises(DiagError, match=r"was ended by SIGABRT after it said: what\(\): no route\. Run it once more"):
        list(together(python(code), 2))
    with pytest.raises(DiagError, match=r"was ended by SIGABRT\. Run it once more"):
        list(together(python("import os; os.abort()"), 2))


def test_a_rank_ends_well_while_a_thread_of_gloo_lets_go_of_a_tensor() -> None:
    """Who lets the interpreter end here is ended by SIGABRT."""
    assert list(together([sys.executable, str(Path(__file__).with_name("late_release.py"))], 2)) == ["left"]


def test_nobody_is_left_behind_when_whoever_listens_goes_away(tmp_path: Path) -> None:
    code = WRITES_PID + "print('here', flush=True); time.sleep(600)"
    lines = together(python(code, tmp_path), 2)
    assert next(lines) == "here"
    lines.close()  # type: ignore[attr-defined]
    pids = [int(file.read_text()) for file in tmp_path.glob("[01]")]
    assert pids
    assert not any(map(is_alive, pids))


def test_wrong_usage_of_a_rank_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no such thing"):
        list(together(python("import sys; print('no such thing', file=sys.stderr); sys.exit(2)"), 2))


@pytest.mark.parametrize("n_ranks", [-1, 0, 1, 65])
def test_so_many_ranks_there_cannot_be(n_ranks: int) -> None:
    with pytest.raises(UsageError, match="2 to 64 ranks"):
        next(together(python(""), n_ranks))


def test_a_port_in_use_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(taken.getsockname()[1]))
        said = r"(?s)^The ranks did not find each other: [^\n]+in use\. Choose another port[^\n]+$"
        with pytest.raises(DiagError, match=said), opened(Place(0, 2, 0, 2), "cpu", None):
            pass

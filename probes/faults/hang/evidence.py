"""What is kept of a job: dumps and heartbeats as they lie there, and stacks, for which py-spy or the rank is asked."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from diag.collect.py_spy import NoAnswer, ask, find_py_spy
from diag.probes.faults.hang.fault import DidNotHappen
from diag.probes.faults.hang.folders import Folders
from diag.probes.faults.hang.rank import ASKS_FOR_STACKS
from diag.probes.faults.hang.ranks import Ranks
from diag.probes.faults.hang.standing import wait_until

StackTool = Literal["py-spy", "faulthandler"]
STACK_TOOLS: tuple[StackTool, ...] = get_args(StackTool)
PY_SPY_TIMEOUT_S = 20.0


def keep_files(folders: Folders, paths: Iterable[Path], kind: str) -> None:
    """Copies files of the ranks to where the evidence of a kind is kept."""
    for path in paths:
        shutil.copyfile(path, folders.kept / kind / path.name)


def keep_stacks(folders: Folders, ranks: Ranks, tool: StackTool) -> None:
    """Raises DidNotHappen where py-spy may not look."""
    if tool == "py-spy":
        _ask_py_spy(folders, ranks)
    else:
        _ask_faulthandler(folders, ranks)


def default_stack_tool() -> StackTool:
    return "py-spy" if find_py_spy() else "faulthandler"


def _ask_py_spy(folders: Folders, ranks: Ranks) -> None:
    py_spy = find_py_spy()
    if py_spy is None:
        raise DidNotHappen("py-spy is not installed: pip install 'gpu-diag[live]', or use --stacks faulthandler")
    for rank, pid in enumerate(ranks.pids):
        try:
            told = ask(py_spy, pid, timeout_s=PY_SPY_TIMEOUT_S, is_stopped=False)
        except NoAnswer as error:
            said = f"{error} {error.said or ''}".strip()
            raise DidNotHappen(f"No stacks of rank {rank}: {said} Use --stacks faulthandler") from error
        (folders.kept / "stacks" / f"rank{rank}.json").write_bytes(told)


def _ask_faulthandler(folders: Folders, ranks: Ranks) -> None:
    """Its handler is C, so that it answers at once, where one in Python would wait for the call to return."""
    files = [folders.asked_stacks(rank) for rank in range(len(ranks.pids))]
    for pid in ranks.pids:
        os.kill(pid, ASKS_FOR_STACKS)
    for rank, file in enumerate(files):
        wait_until(partial(_is_whole, file), f"rank {rank} has not answered the signal for stacks")
    keep_files(folders, files, "stacks")


def _is_whole(file: Path) -> bool:
    """The main thread comes last, and ends with the outermost frame, which a forked process shares with this one."""
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
    return file.read_text().rstrip().endswith(f" in {frame.f_code.co_name}")

"""How a rank ended: of itself, or because others did."""

from __future__ import annotations

import re

OF_OTHERS = (
    "NCCL communicator was aborted", "Connection closed by peer", "Connection reset by peer", "NCCL error",
    "collective operation timeout", "Broken pipe", "recvValue failed", "Socket Timeout", "Timed out waiting",
    "Application timeout", "KeyboardInterrupt", "SystemExit", "SignalException",
)  # fmt: skip
"""In exceptions: what a rank says when another one ended first, or when somebody ended it."""

_KILLED = re.compile(
    r"\bKilled\b|SIGKILL|SIGSEGV|SIGBUS|Segmentation fault|Bus error|[Oo]ut [Oo]f [Mm]emory|\b[Oo]om\b|oom[-_]kill"
    r"|NODE FAIL"
)
"""In logs of Slurm, launchers and the kernel. Whoever is aborted (SIGABRT) or terminated with the job only shares its
fate.
"""


def is_of_others(text: str) -> bool:
    """Whether an exception only says that another rank is gone, or that the job was told to end."""
    return any(said in text for said in OF_OTHERS)


def is_killed(text: str) -> bool:
    """
    >>> is_killed("tasks 4-5: Killed"), is_killed("task 6: Aborted (core dumped)"), is_killed("no room")
    (True, False, False)
    """
    return bool(_KILLED.search(text))

"""The process of one rank: its surroundings are set, the program runs, and its end is told."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from typing import NoReturn

import torch
import torch.distributed as dist

from diag.child import end_with_parent
from diag.collect.heartbeat import Heartbeat
from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.folders import Folders
from diag.probes.faults.hang.member import Member
from diag.probes.faults.hang.recorder import Recorder

ASKS_FOR_STACKS = signal.SIGUSR1
HEARTBEAT_EVERY_S = 0.1


def be_rank(fault: HangFault, rank: int, *, is_sick: bool, folders: Folders) -> NoReturn:
    """Runs in a process that was forked for it, and ends it: with 0, or with 1 after an exception."""
    status = 0
    try:
        _set_surroundings(fault, rank, is_sick, folders)
        _run(fault, rank, is_sick, folders)
    except Exception:  # noqa: BLE001  # whatever it is, the process ends as Python would end it
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # nothing that the parent has registered for its own end may run here


def _set_surroundings(fault: HangFault, rank: int, is_sick: bool, folders: Folders) -> None:
    log = os.open(folders.log(rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    end_with_parent()  # where the parent is killed, nobody else would end it
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    world_size = fault.told_world_size.get(rank, fault.world_size) if is_sick else fault.world_size
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "GLOO_SOCKET_IFNAME": "lo",
        "TORCH_FR_BUFFER_SIZE": "2000",
    }
    torch.set_num_threads(1)


def _run(fault: HangFault, rank: int, is_sick: bool, folders: Folders) -> None:
    with (
        folders.asked_stacks(rank).open("w") as stacks,
        Heartbeat(folders.live, every_s=HEARTBEAT_EVERY_S) as beat,
    ):
        faulthandler.register(ASKS_FOR_STACKS, file=stacks)
        recorder = Recorder(folders.dump(rank))
        recorder.start()
        member = Member(
            rank=rank,
            world_size=int(os.environ["WORLD_SIZE"]),
            is_faulty=is_sick and rank in fault.faulty,
            store=dist.FileStore(str(folders.store), fault.world_size),
            gate=folders.gate,
            beat=beat,
            recorder=recorder,
        )
        fault.program(member)
        recorder.stop()
        faulthandler.unregister(ASKS_FOR_STACKS)

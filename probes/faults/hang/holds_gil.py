"""One rank waits in C for a mutex that is never released, and holds the GIL meanwhile: no thread of it runs Python.

What is known of its calls is the last dump before, which this rank waits for: the job is too short to have one.
"""

from __future__ import annotations

import ctypes

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import Member
from diag.probes.faults.hang.training import reduce_gradients
from diag.probes.faults.hang.waiting import LOADS, REDUCES
from diag.probes.faults.lock_contention import MUTEX_BYTES


def program(member: Member) -> None:
    member.join()
    for is_wrong in member.steps():
        if is_wrong:
            member.recorder.wait_for_next()
            decode_batch()
        member.enter("reduce gradients")
        reduce_gradients()
    member.leave()


def decode_batch() -> None:
    """A signal ends no wait for a mutex, as it does that of sleep(3)."""
    libc = ctypes.PyDLL(None)  # which, unlike CDLL, keeps the GIL
    mutex = ctypes.create_string_buffer(MUTEX_BYTES)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


FAULT = HangFault(
    name="holds-gil",
    idea="rank 1 waits in C for a lock with the GIL held; the others wait in an all_reduce",
    cause="host blocked",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: REDUCES, 1: LOADS, 2: REDUCES},
    holds_gil=frozenset({1}),
)

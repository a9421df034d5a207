"""A thread holds a mutex whenever the loop wants it.

The mutex is POSIX', taken through ctypes: Python's own locks wait in semaphores, which tell no profiler that they are
locks.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time

from diag.probes.faults import clock
from diag.probes.faults.fault import Fault, Setting

MUTEX_BYTES = 64
"""At least sizeof(pthread_mutex_t) on every Linux; zeros are PTHREAD_MUTEX_INITIALIZER."""


class Contention:
    def __init__(self, setting: Setting) -> None:
        self.libc = ctypes.CDLL(None)
        self.mutex = ctypes.create_string_buffer(MUTEX_BYTES)
        self.wanted: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.is_held = threading.Event()
        self.holder = threading.Thread(target=self._hold, name=setting.name, daemon=True)
        self.holder.start()

    def spend(self, budget_ns: int) -> int:
        if budget_ns:
            self.is_held.clear()
            self.wanted.put(budget_ns)
            self.is_held.wait()
        took_ns = clock.elapsed_ns(lambda: self.libc.pthread_mutex_lock(self.mutex))
        self.libc.pthread_mutex_unlock(self.mutex)
        return took_ns if budget_ns else 0

    def close(self) -> int:
        self.wanted.put(0)
        self.holder.join()
        return 0

    def _hold(self) -> None:
        while budget_ns := self.wanted.get():
            self.libc.pthread_mutex_lock(self.mutex)
            self.is_held.set()
            time.sleep(budget_ns / 1e9)
            self.libc.pthread_mutex_unlock(self.mutex)


FAULT = Fault(
    name="lock-contention",
    idea="a mutex that another thread holds when the loop wants it",
    start=Contention,
    on_cpu={"nsys": ("host.locks",)},
    on_gpu={"nsys": ("host.locks",)},
    tells={"host.locks": "waiting for a lock"},
)

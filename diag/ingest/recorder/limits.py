"""What a worker may take for a dump. The kernel holds it to that, as a crafted pickle asks for more in a few bytes."""

from __future__ import annotations

import resource
import time

import msgspec

from diag.ingest.ncu_official.limits import lower


class Limits(msgspec.Struct, frozen=True):
    file_bytes: int = 256 << 20
    """Of a dump: PyTorch keeps 2,000 entries unless told otherwise, which take 0.3 MB."""
    answer_bytes: int = 64 << 20
    """Of what a worker says of one dump, which is about as large as the dump."""
    memory_bytes: int = 1 << 30
    """Address space of a worker: 2,000 entries take 10 MB."""
    cpu_s: int = 30
    """Time on a core for one dump: 2,000 entries take 0.02 s."""

    def impose(self) -> None:
        """Holds this process to what is for all of its life."""
        lower(resource.RLIMIT_AS, self.memory_bytes)
        lower(resource.RLIMIT_FSIZE, 0)
        lower(resource.RLIMIT_CORE, 0)

    def allow_time(self) -> None:
        """Gives this process its time for one more dump; the kernel ends it by SIGXCPU when that is over."""
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + self.cpu_s, hard))

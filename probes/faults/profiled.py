"""A recording of the loop of a fault by torch.profiler, with calls of Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from diag.errors import StorageError
from diag.probes.faults.loop import Around


def profiled(trace: Path) -> Around:
    @contextmanager
    def around() -> Iterator[Any]:
        with torch.profiler.profile(with_stack=True, record_shapes=True) as profiler:
            yield profiler
        try:
            profiler.export_chrome_trace(str(trace))
        except OSError as error:
            raise StorageError(f"{trace} cannot be written ({error.strerror}). Name another file.") from error

    return around

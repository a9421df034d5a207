"""What reading GPUs costs beside NVML itself: the code of diag, over the answers of a fake.

    python -m tests.bench.bench_nvml [--gpus 8] [--readings 500]

The fake builds its answers in Python, at a cost of its own. It is measured apart, by asking for the same answers
without diag, and subtracted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from diag.collect.nvml import Nvml
from tests.collect.fake_nvml import FakeNvml


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--readings", type=int, default=500)
    options = parser.parse_args()
    timed = TimedNvml(*["h100"] * options.gpus)
    with Nvml(timed) as nvml:
        nvml.read(0)
        timed.now_us += 1_000_000
        timed.spent_s, timed.asked = 0.0, 0
        started = time.process_time()
        for reading in range(options.readings):
            nvml.read(reading)
            timed.now_us += 1_000_000
        all_s = time.process_time() - started
    own_us = (all_s - timed.spent_s) * 1e6 / options.readings
    calls = timed.asked / options.readings
    print(f"{options.gpus} GPUs, {calls:.0f} calls of NVML in a reading")
    print(f"{own_us:.0f} µs of diag's own in a reading ({own_us / options.gpus:.0f} µs for a GPU)")
    print(f"{own_us / 1e4:.3f} % of a core at 1 Hz")


class TimedNvml(FakeNvml):
    """Counts its calls and the time that goes into answering them."""

    spent_s = 0.0
    asked = 0

    def __getattribute__(self, name: str) -> object:
        found: object = super().__getattribute__(name)
        return self._timed(found) if name.startswith("nvml") and callable(found) else found

    def __getattr__(self, name: str) -> object:
        found: object = super().__getattr__(name)
        is_function = name.startswith("nvml") and callable(found) and not isinstance(found, type)
        return self._timed(found) if is_function else found  # type: ignore[arg-type]

    def _timed(self, function: Callable[..., object]) -> Callable[..., object]:
        def timed(*arguments: object) -> object:
            started = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.spent_s += time.perf_counter() - started
                self.asked += 1

        return timed


if __name__ == "__main__":
    main()

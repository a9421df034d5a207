"""Many objects: with cycles and a collector that looks at all of them (`garbage.py on`), or without either (`off`)."""

import gc
import sys
import time


class Node:
    def __init__(self, *, is_cycle: bool) -> None:
        self.itself = self if is_cycle else None
        self.children: list[dict[str, int]] = [{} for _ in range(3)]


collects = sys.argv[1] == "on"
gc.disable()
kept = [Node(is_cycle=True) for _ in range(10_000)] if collects else []
while time.process_time() < 0.4:  # not by the clock on the wall: a loaded machine would take the samples away
    for _ in range(500):
        Node(is_cycle=collects)
    if collects:
        gc.collect()

"""Python threads that all want to run: `gil.py N` spins in the main thread and N others for a third of a second."""

import sys
import threading
import time


def spin(until: float) -> None:
    turns = 0
    while time.monotonic() < until:
        turns += 1


end = time.monotonic() + 0.3
others = [threading.Thread(target=spin, args=(end,)) for _ in range(int(sys.argv[1]))]
for thread in others:
    thread.start()
spin(end)
for thread in others:
    thread.join()

"""Starts as many threads as it is told, which wait. On a line of input the last begins to work, and never ends."""

import sys
import threading

begin = threading.Event()
never = threading.Event()


def wait() -> None:
    never.wait()


def work() -> None:
    begin.wait()
    while True:
        pass


for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=wait, daemon=True).start()
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
begin.set()
sys.stdin.read()

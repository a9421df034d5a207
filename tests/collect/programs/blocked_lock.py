"""The main thread holds a lock and waits for its input to end; a thread called `waiter` waits for the lock."""

import sys
import threading

lock = threading.Lock()


def blocked() -> None:
    print("ready", flush=True)
    with lock:  # the blocked line
        pass


with lock:
    thread = threading.Thread(target=blocked, name="waiter")
    thread.start()
    sys.stdin.read()
thread.join()

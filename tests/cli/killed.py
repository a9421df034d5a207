"""`diag` that kills itself, as `kill -9` would, just before it touches the file system for the N-th time.

    python tests/cli/killed.py N WORD...

Counted are the steps by which files and folders come, go, change their names or get locked; with N beyond the last one
it runs to its end. Which step it died at is said on stderr.
"""

from __future__ import annotations

import os
import signal
import sys

STEPS = frozenset(
    ["fcntl.flock", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.utime", "shutil.rmtree", "sqlite3.connect"]
)
WRITING = os.O_WRONLY | os.O_RDWR


def kill_at(last: int) -> None:
    left = last

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in STEPS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            left -= 1
            if not left:
                print(f"killed before {event} {arguments}", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


if __name__ == "__main__":
    from diag.cli.app import main

    kill_at(int(sys.argv[1]))
    sys.argv[0:2] = ["diag"]
    main()

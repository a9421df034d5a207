"""`diag` that is interrupted, as by Ctrl-C, when it begins to load a module.

python tests/cli/interrupted.py MODULE WORD...
"""

from __future__ import annotations

import os
import signal
import sys


def interrupt_at(module: str) -> None:
    done = False

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        if event == "import" and arguments[0] == module and not done:
            done = True
            os.kill(os.getpid(), signal.SIGINT)

    sys.addaudithook(watch)


if __name__ == "__main__":
    from diag.cli.app import main

    interrupt_at(sys.argv[1])
    sys.argv[0:2] = ["diag"]
    main()

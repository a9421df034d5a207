"""Spends all its time in one line."""


def hot() -> None:
    while True:
        sum(range(100_000))  # the hot line


print("ready", flush=True)
hot()

"""Keeps one core busy and does nothing else."""

print("ready", flush=True)
while True:
    pass

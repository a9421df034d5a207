"""How fast a large trace comes into a case, and in how much memory.

    python -m tests.bench.bench_kineto TRACE.json.gz [--megabytes 500] [--gzip] [--python]

Repeats the events of a real trace, each round later and with correlations of its own, until the text has the size.
`--python` writes Python functions in place of operators, as a trace `with_stack` has them: many short events. Prints
MB of JSON text per second of one core (processor time of the whole import) and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from diag.ingest import kineto
from diag.ingest.input_file import InputFile
from diag.store.case import Case

Json = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--python", action="store_true")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.trace, options.megabytes * 1_000_000)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.json.gz" if options.gzip else "large.json")
        size = write_large(options.trace, path, options.megabytes * 1_000_000, options.python)
        # A process of its own: its peak memory is that of the import alone.
        module = [sys.executable, "-m", "tests.bench.bench_kineto"]
        subprocess.run([*module, str(path), "--measure", "--megabytes", str(size // 1_000_000)], check=True)


def measure(path: Path, text_bytes: int) -> None:
    started = time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, Case.create(Path(folder, "large.diag")) as case:
        with case.transaction():
            source = kineto.read(InputFile(path, path, "kineto", "", path.stat().st_size), case)
        processor_s, wall_s = time.process_time() - started[0], time.perf_counter() - started[1]
        facts = {fact: count for fact, count in case.source(source).capabilities.items() if count}
        rows = case.value("SELECT COUNT(*) FROM cpu_range")
        megabytes = text_bytes / 1e6
        print(f"{path.name}: {megabytes:.0f} MB of text, {path.stat().st_size / 1e6:.0f} MB on disk, {facts}")
        print(f"ranges as {'rows' if rows else 'columns'}; case of {case.path.stat().st_size / 1e6:.0f} MB")
        print(f"{megabytes / processor_s:.0f} MB/s per core ({processor_s:.1f} s processor, {wall_s:.1f} s wall)")
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def write_large(trace: Path, path: Path, size: int, python: bool) -> int:
    """Size of the text written, in bytes."""
    with gzip.open(trace) as file:
        document: Json = json.load(file)
    events = [event for event in document.pop("traceEvents") if event.get("ph") != "M"]
    head = json.dumps(document)[:-1] + (", " if document else "") + '"traceEvents": ['
    written = 0
    with cast("BinaryIO", gzip.open(path, "wb", 6) if path.suffix == ".gz" else path.open("wb")) as out:
        written += out.write(head.encode())
        for text in rounds(events, python):
            written += out.write(text)
            if written > size:
                break
        # No event may be followed by nothing.
        written += out.write(b'\n{"ph": "M"}\n]}')
    return written


def rounds(events: list[Json], python: bool) -> Iterator[bytes]:
    starts = [event["ts"] for event in events]
    length = max(starts) - min(starts) + 1_000_000
    kinds = [python and event.get("cat") in ("cpu_op", "Operator") for event in events]
    number = 0
    while True:
        yield "".join(
            f"{json.dumps(as_python(event, index) if kind else shifted(event, number), indent=1)},\n"
            for index, (event, kind) in enumerate(zip(events, kinds, strict=True))
        ).encode()
        for event in events:
            event["ts"] += length
        number += 1


def shifted(event: Json, number: int) -> Json:
    args = event.get("args", {})
    if "correlation" not in args:
        return event
    return event | {"args": args | {"correlation": args["correlation"] + 10_000_000 * number}}


def as_python(event: Json, index: int) -> Json:
    names = {"name": f"torch/nn/modules/module.py({index % 900}): _call_impl", "cat": "python_function"}
    return event | names | {"args": {"Python parent id": index // 7, "Python id": index, "Ev Idx": index}}


if __name__ == "__main__":
    main()

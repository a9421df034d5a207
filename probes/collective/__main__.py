"""One rank: torchrun --nproc-per-node 8 -m diag.probes.collective all_reduce -o probes.json

Rank 0 tells on standard output what is being measured; with a mark, what whoever asked shall read at the end.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from diag.errors import DiagError, StorageError
from diag.model.benchmark import Benchmark, encoded
from diag.probes.collective import world
from diag.probes.collective.catalogue import named
from diag.probes.collective.launch import NOTE
from diag.probes.collective.measured import measured
from diag.probes.collective.request import check, parser, request_of


def main(arguments: list[str] | None = None) -> int:
    chosen = parser().parse_args(arguments)
    try:
        request = request_of(chosen)
        probes = named(request.names)
        place = world.Place.of_environment(os.environ)
        check(request, probes, place.n_ranks)
        device = world.device_of(chosen.device, place.n_local)
        with world.opened(place, device, chosen.rendezvous) as ranks:
            results = measured(ranks, probes, request, _told if place.rank == 0 else _silent)
            if place.rank == 0:
                _finish(results.benchmark(ranks), chosen.output)
                for refusal in results.refusals:
                    _told(f"{NOTE}{refusal}")
                for each in results.traces:
                    _told(f"{NOTE}traced: {json.dumps(asdict(each))}")
    except DiagError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def _told(what: str) -> None:
    print(what, flush=True)


def _silent(_: str) -> None:
    pass


def _finish(benchmark: Benchmark, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(encoded(benchmark).decode())
        return
    try:
        output.write_bytes(encoded(benchmark))
    except OSError as error:
        raise StorageError(f"Cannot write {output}: {error.strerror}. Choose another place with -o FILE.") from error


if __name__ == "__main__":
    world.leave(main())

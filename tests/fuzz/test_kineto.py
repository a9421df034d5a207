"""Traces of the PyTorch profiler whose events, text or compression are not as they should be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.fuzz import byte_mutations, contract, json_mutations, samples
from tests.fuzz.questions import some_question
from tests.fuzz.seeds import chance_of, every_seed


def test_the_whole_trace_keeps_the_promise(scratch: Path) -> None:
    path = scratch / "trace.json"
    path.write_text(json.dumps(samples.kineto_document()))
    assert contract.examine(path) == "report"


@every_seed
def test_a_trace_with_other_events(seed: int, scratch: Path, tmp_path: Path) -> None:
    chance = chance_of("kineto events", seed)
    path = scratch / chance.choice(("trace.json", "trace.json.gz"))
    text, mutation = json_mutations.mutate(samples.kineto_document(), chance)
    path.write_bytes(json_mutations.packed(text, chance) if path.suffix == ".gz" else text)
    options = some_question(chance, tmp_path)
    print(f"seed {seed}: {mutation}; {options}")
    contract.examine(path, options=options)


@every_seed
def test_a_trace_with_other_bytes(seed: int, scratch: Path) -> None:
    chance = chance_of("kineto bytes", seed)
    path = scratch / chance.choice(("trace.json", "trace.json.gz"))
    text = json.dumps(samples.kineto_document()).encode()
    content, mutation = byte_mutations.damaged(gzip.compress(text, 1) if path.suffix == ".gz" else text, chance)
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)

"""Reports with every field that is understood, holding anything; and reports whose bytes or blocks were damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diag.ingest.messages import Message, Scalar
from diag.ingest.nsys_rep.convert import event_readers
from tests.builders.nsys_report import Report
from tests.fuzz import byte_mutations, contract
from tests.fuzz.seeds import chance_of, every_seed

THREAD = 100 << 24 | 100
STRINGS = (b"kernel<float>(int)", b"cudaLaunchKernel", b"step", b"\xff\xfe", b"A=1\0B=2", b"")

_numbers = st.one_of(
    st.integers(0, 6),
    st.sampled_from((THREAD, THREAD & ~0xFFFFFF, 59, 60, 34, 75, 27, 1)),
    st.integers(0, 10**6),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
_texts = st.one_of(st.sampled_from((b"step", b"", b"\0", b"\xff")), st.binary(max_size=40))


def payloads(message: Message) -> st.SearchStrategy[dict[int, Any]]:
    """Any of a message's fields with anything in them, each as its type wants it or, now and then, not."""
    fields = {}
    for declared in message.fields.values():
        if isinstance(declared.type, Message):
            value: st.SearchStrategy[Any] = payloads(declared.type)
        elif declared.type is Scalar.BYTES:
            value = _texts
        else:
            value = _numbers
        value = st.one_of(value, _numbers) if declared.number % 7 == 0 else value
        fields[declared.number] = st.lists(value, max_size=3) if declared.repeated else value
    return st.fixed_dictionaries({}, optional=fields)


def events() -> st.SearchStrategy[dict[int, Any]]:
    understood = [
        st.fixed_dictionaries({1: st.integers(0, 170), reader.number: payloads(reader.message)})
        for reader in event_readers(share_stacks=True)
    ]
    unknown = st.fixed_dictionaries({1: _numbers, 119: _texts})
    return st.one_of(*understood, unknown)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(events=st.lists(events(), min_size=1, max_size=30), behind=st.lists(st.binary(max_size=60), max_size=3))
def test_fields_that_hold_anything(
    events: list[dict[int, Any]], behind: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "run.nsys-rep"
    path.write_bytes(Report(events, strings=STRINGS, behind_strings=behind, events_in_block=10).content())
    contract.examine(path)


def sample() -> Report:
    """A launch and its kernel, ranges, a diagnostic, again and again."""
    made: list[dict[int, Any]] = []
    for i in range(40):
        at = 1000 * i
        call = {1: at, 2: at + 100, 3: i, 6: 0, 7: 1, 13: THREAD}
        kernel = {1: 0, 2: 0, 3: 0, 10: 16, 11: 1, 12: 1, 13: 128, 14: 1, 15: 1, 21: 32}
        work = {1: at + 200, 2: at + 900, 3: i, 4: 0, 5: 1, 6: 7, 7: 3, 8: THREAD & ~0xFFFFFF, 101: kernel}
        made += [{1: 48, 108: call}, {1: 79, 107: work}]
        made += [{1: 59, 102: {1: 59, 2: at, 10: at + 950, 7: b"step", 9: THREAD}}]
    made += [{1: 49, 110: {1: {1: 0, 2: 1, 3: 1}, 2: 1, 3: 2, 4: b"Profiling has started.", 5: THREAD}}]
    return Report(made, strings=STRINGS, events_in_block=50)


CONTENT = sample().content()


def test_the_sample_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(CONTENT)
    assert contract.examine(path) == "report"


@every_seed
def test_a_report_with_other_bytes(seed: int, scratch: Path) -> None:
    chance = chance_of("nsys rep", seed)
    content, mutation = byte_mutations.damaged(CONTENT, chance)
    path = scratch / "run.nsys-rep"
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)


@every_seed
def test_events_with_other_bytes(seed: int, scratch: Path) -> None:
    """Damaged before they are packed: a damaged block mostly cannot be unpacked."""
    chance = chance_of("nsys events", seed)
    mutations = []

    def damage(plain: bytes) -> bytes:
        damaged, mutation = byte_mutations.damaged(plain, chance)
        mutations.append(mutation)
        return damaged

    path = scratch / "run.nsys-rep"
    path.write_bytes(sample().content(damage))
    print(f"seed {seed}: {mutations}")
    contract.examine(path)

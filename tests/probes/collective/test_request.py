"""What is asked of ranks: it survives their command line, and what no probe has is refused before any starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.errors import UsageError
from diag.probes.collective.catalogue import PROBES, named
from diag.probes.collective.request import Request, check, late, parser, request_of
from diag.probes.collective.sizes import check_divides
from diag.probes.collective.traced import Late
from diag.probes.collective.world import Place, World

WHOLE = Request(["sharded", "two_phase"], "tiny", "kept", {"width": 8, "batch": 2}, Path("there"), Late(1, 2.5))
PLACE = {"RANK": "1", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}


@pytest.mark.parametrize("request_", [WHOLE, Request(["all_reduce"])])
def test_it_is_read_as_it_is_written(request_: Request) -> None:
    assert request_of(parser().parse_args(list(request_.arguments))) == request_


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(["sharded"], variant="keep"), "Did you mean kept"),
        (Request(["all_reduce"], shape={"bytes": 3}), "no size 'bytes'. Write --shape least=1024,most="),
        (Request(["all_reduce"], trace=Path("nowhere")), "no folder"),
        (Request(["all_reduce"], late=Late(1, 5)), "--trace FOLDER"),
        (Request(["all_reduce"], trace=Path(), late=Late(2, 5)), "ranks are 0 to 1"),
        (Request(["all_reduce"], trace=Path(), late=Late(1, float("nan"))), "above 0"),
        (Request(["all_reduce"], trace=Path(), late=Late(1, 1e9)), "up to 10000"),
    ],
)
def test_what_cannot_be_is_refused(request_: Request, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        check(request_, named(request_.names), 2)


def test_who_is_late_and_by_how_much_belong_together() -> None:
    assert late(None, None) is None
    with pytest.raises(UsageError, match="--late-rank 1 --late-ms 20"):
        late(1, None)


def test_a_place_among_the_ranks() -> None:
    assert Place.of_environment(PLACE).n_hosts == 2
    for change in ({"RANK": "8"}, {"WORLD_SIZE": "one"}, {"WORLD_SIZE": "1", "RANK": "0"}, {"LOCAL_RANK": "-1"}):
        with pytest.raises(UsageError, match="torchrun"):
            Place.of_environment(PLACE | change)


def test_weights_that_have_no_equal_parts_are_refused() -> None:
    world = World(Place(0, 3, 0, 3), "cpu")
    check_divides(63, world)
    with pytest.raises(UsageError, match="64 rows have no equal parts for 3 ranks"):
        check_divides(64, world)


def test_every_scale_has_the_same_sizes_and_grows() -> None:
    for probe in PROBES.values():
        for of_device in probe.shapes.values():
            tiny, small, full = (of_device[scale] for scale in ("tiny", "small", "full"))
            assert tiny.keys() == small.keys() == full.keys()
            assert all(tiny[name] <= full[name] for name in tiny if name != "least")
            assert tiny != small != full

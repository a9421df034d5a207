"""Numbers in the locales that ncu prints them in."""

from __future__ import annotations

import pytest

from diag.ingest.launch_records import Instance, Value
from diag.ingest.ncu_output.numbers import Decimal, decimal_mark, instances_of, is_uncollected, value_of


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("1,073,741,824", ".", 1_073_741_824),
        ("5,74,88,63,577", ".", 5_748_863_577),  # India
        ("5.748.863.577", ",", 5_748_863_577),
        ("1.234", ",", 1_234),
        ("1.234", ".", 1.234),
        ("1,234", ".", 1_234),
        ("52.799.995,50", ",", 52_799_995.5),
        ("52\u202f799\u202f995,50", ",", 52_799_995.5),  # France
        ("52\u2019799\u2019995.50", ".", 52_799_995.5),  # Switzerland
        ("52\ufffd799,50", ",", 52_799.5),  # a space that could not be decoded
        ("0.034376", ",", 0.034376),  # six digits stand behind a point everywhere
        ("-10.000000", ",", -10.0),
        ("18,446,744,073,709,551,615", ".", (1 << 64) - 1),
        ("4.5e+06", ".", 4_500_000.0),
        ("CachePreferNone", ".", "CachePreferNone"),
        ("1.2.3", ".", "1.2.3"),
        ("NVIDIA A100, 40GB", ",", "NVIDIA A100, 40GB"),
        ("", ".", None),
        ("no data", ".", None),
        ("(!) nan", ".", None),
        ("(!) n/a", ".", None),
        ("1e999", ".", None),
    ],
)
def test_values(text: str, mark: Decimal, value: Value | None) -> None:
    assert value_of(text, 0, mark) == value
    assert type(value_of(text, 0, mark)) is type(value)


def test_a_power_of_ten_costs_no_digit() -> None:
    assert value_of("993.02", 3) == 993_020.0
    assert value_of("1,234.57", -6) == 0.00123457
    assert value_of("32", 3) == 32_000
    assert value_of("9" * 70) == "9" * 70  # no figure is as long


@pytest.mark.parametrize(
    ("sample", "is_of_ncu", "mark"),
    [
        ('"0","5,748","1.21"', True, "."),
        ('"0","5.748","1,21"', True, ","),
        ('"8.6","GPU","5.748.863.577"', True, ","),
        ('"8.6","GPU","7.124"', True, ","),  # ncu prints no three decimals: these are thousands
        ("8.6,GPU,7.124", False, "."),  # another program may
        ('"kernel<1,21>(int)","10.50"', True, "."),
        ("    Duration     msecond     1,13  \n", True, ","),
        ("    Duration     msecond     1.13  \n", True, "."),
        ('"192.168.100.200","1.50"', True, "."),
    ],
)
def test_what_separates_decimals(sample: str, is_of_ncu: bool, mark: Decimal) -> None:
    assert decimal_mark(sample, is_of_ncu=is_of_ncu) == mark


def test_instances() -> None:
    assert instances_of("1,254 (1,000; 254)", 0, ".") == (1254, [Instance(None, 1000), Instance(None, 254)])
    assert instances_of("(64; 32)", 0, ".") == (None, [Instance(None, 64), Instance(None, 32)])
    assert instances_of("30 (0x10: 10; LDG: 20)", 3, ".") == (30_000, [Instance(16, 10_000), Instance("LDG", 20_000)])
    assert instances_of("NVIDIA A10 (MIG)", 0, ".") is None
    assert instances_of("12", 0, ".") is None


def test_not_collected_is_not_the_same_as_no_value() -> None:
    assert is_uncollected("(!) n/a")
    assert not is_uncollected("no data")
    assert not is_uncollected("(!) nan")

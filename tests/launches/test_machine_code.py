"""What the machine code of a kernel tells that no counter does."""

from __future__ import annotations

import pytest

from diag.launches.machine_code import LocalUse, local_use


@pytest.mark.parametrize(
    ("sass", "use"),
    [
        (["STL [R1+0x4], R9", "@!P0 LDL.LU R9, [R1+0x4]", "LDL.64 R2, [R1]"], "spills"),
        (["STL [R1], R9", "LDL R9, [R24+-0x8]"], "arrays"),
        (["LDG.E R2, [R4.64]", "LDS R1, [R2]"], "either"),
    ],
)
def test_addresses_tell_spills_from_arrays(sass: list[str], use: LocalUse) -> None:
    assert local_use(sass) == use

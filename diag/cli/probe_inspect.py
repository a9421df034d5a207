"""`diag probe inspect`: what can be told of an operator's kernels with no GPU at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from diag.cli import completion
from diag.cli.choices import TextOrJson
from diag.cli.terminal import StatusLine, color, width, write
from diag.errors import NothingToTell, UsageError
from diag.model.near import did_you_mean, near

if TYPE_CHECKING:  # they load PyTorch
    from diag.kernels.operator import DType, Operator, Variant

ALL = "all"


def inspect(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", readable=False, help="The operator, as in softmax.", autocompletion=completion.operators
        ),
    ],
    variant: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One rung of its ladder, or all (default: those meant to be good)."),
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option(metavar="TARGET", help="Compile for this one, as in sm_90; may be repeated (default: all)."),
    ] = None,
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="Of the inputs: fp32, tf32, fp16, bf16.")] = "fp16",
    output_format: Annotated[
        TextOrJson, typer.Option("--format", "-f", help="How to write what was found.")
    ] = TextOrJson.TEXT,
) -> None:
    """Compile an operator's kernels and say what their machine code tells, with no GPU.

    Registers, stack, spills, shared memory and instructions as compiled; from them theoretical occupancy, waves and
    what exceeds the limits of an SM; from the operator's definition its roofline and least time. Nothing is measured.

    Example: diag probe inspect gemm --arch sm_90
    Example: diag probe inspect softmax --variant all --dtype fp32 --format json

    Exit status 3: PyTorch or Triton is missing.
    Exit status 4: The compiler takes none of these kernels.
    Environment: NO_COLOR, TMPDIR
    See also: docs/kernels.md, diag probe run
    """
    from diag.kernels.compilation import check_installed
    from diag.model.inspection import REFERENCE_PRODUCTS
    from diag.render.inspection import render_inspection, render_inspection_as_json

    targets = list(dict.fromkeys(_known(each, "target", REFERENCE_PRODUCTS) for each in arch or REFERENCE_PRODUCTS))
    check_installed()
    with StatusLine() as status:
        status("loading PyTorch and Triton")
        from diag.kernels.catalogue import operators
        from diag.probes import static_analysis

        operator = operators()[_known(name, "operator", operators())]
        of = _dtype(dtype)
        variants = _chosen(operator, variant, of)
        status(f"compiling {operator.name} for {', '.join(targets)}")
        found = static_analysis.inspect(operator, variants, targets, of)
    if not any(each.kernels for each in found.variants):
        refused = [refused for each in found.variants for refused in each.not_compiled]
        raise NothingToTell(f"The compiler takes none of these kernels. {refused[0].because if refused else ''}")
    if output_format is TextOrJson.JSON:
        write(render_inspection_as_json(found))
    else:
        write(render_inspection(found, width=width(), color=color()))


def _known(given: str, kind: str, among: Collection[str]) -> str:
    if given not in among:
        hint = did_you_mean(near(given, among))
        raise UsageError(f"There is no {kind} {given!r}.{hint} There is: {', '.join(among)}.")
    return given


def _dtype(given: str) -> DType:
    from typing import get_args

    from diag.kernels.operator import DType

    names: tuple[DType, ...] = get_args(DType)
    for name in names:
        if name == given:
            return name
    raise UsageError(f"There is no type {given!r}. There is: {', '.join(names)}.")


def _chosen(operator: Operator, variant: str | None, dtype: DType) -> Sequence[Variant]:
    """Raises UsageError where there is no such variant, or none that takes this type."""
    if variant is not None and variant != ALL:
        _known(variant, f"variant of {operator.name}", [each.name for each in operator.variants])
    wanted = [
        each for each in operator.variants if variant in (ALL, each.name) or (variant is None and each.is_good)
    ] or operator.variants
    taking = [each for each in wanted if dtype in each.dtypes]
    if not taking:
        known = dict.fromkeys(name for each in wanted for name in each.dtypes)
        raise UsageError(f"{operator.name} does not take {dtype}. It takes: {', '.join(known)} (--dtype).")
    return taking

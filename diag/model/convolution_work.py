"""Work of convolutions and of their gradients, from the arguments of the call."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from diag.model.operator_arguments import Arguments, Model, Shape


def convolution(args: Arguments) -> Model | None:
    """input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    x, weight, transposed = args.shape(0), args.shape(1), args.value(6)
    if transposed == "True":
        output = _spread(x, weight, *(args.ints(at) for at in (3, 4, 5, 7, 8)))
        return None if output is None else _model(x, weight, (0, 1, 2), output)
    if transposed != "False":  # not told
        return None
    output = _convolved(x, weight, *(args.ints(at) for at in (3, 4, 5)))
    return None if output is None else _model(output, weight, (0, 1, 2), output)


def cudnn_convolution(args: Arguments) -> Model | None:
    """input, weight, padding, stride, dilation, groups."""
    x, weight = args.shape(0), args.shape(1)
    output = _convolved(x, weight, *(args.ints(at) for at in (3, 2, 4)))
    return None if output is None else _model(output, weight, (0, 1), output)


def convolution_backward(args: Arguments) -> Model | None:
    """grad of output, input, weight, bias, stride, padding, dilation, transposed, output padding, groups, mask."""
    mask = args.flags(10) or ()
    of_input, of_weight = mask[:2] if len(mask) == 3 else (True, True)
    return _gradients(args, 0, 1, is_transposed=args.value(7) == "True", of_input=of_input, of_weight=of_weight)


def cudnn_convolution_backward(args: Arguments) -> Model | None:
    """input, grad of output, weight: as PyTorch up to 1.10 called it, which did not record the rest."""
    return _gradients(args, 1, 0)


def _gradients(
    args: Arguments,
    output_at: int,
    input_at: int,
    *,
    is_transposed: bool = False,
    of_input: bool = True,
    of_weight: bool = True,
) -> Model | None:
    """Those that are asked for, each as much work as forward. The first layer of a model needs none of its input."""
    output, x, weight = args.shape(output_at), args.shape(input_at), args.shape(2)
    if len(output) < 3 or not len(output) == len(x) == len(weight) or not (of_input or of_weight):
        return None
    read = (output_at, *([input_at] if of_weight else []), *([2] if of_input else []))
    once = _model(x if is_transposed else output, weight, read, x)
    count = of_input + of_weight
    written = (of_input * prod(x) + of_weight * prod(weight),)
    formula = once.formula if count == 1 else f"{count} × ({once.formula})"
    return Model("convolution", count * once.flops, read, written, formula)


def _model(positions: Shape, weight: Shape, read: Sequence[int], written: Shape) -> Model:
    """`positions` of the filter are the outputs; of a transposed convolution, the inputs."""
    flops = 2 * prod(positions) * prod(weight[1:])
    return Model("convolution", flops, read, written, "2 × positions × channels of a group × size of the filter")


Numbers = Sequence[int] | None


def _convolved(x: Shape, weight: Shape, stride: Numbers, padding: Numbers, dilation: Numbers) -> Shape | None:
    """Shape of the output (PyTorch, torch.nn.Conv2d)."""
    if (axes := _axes(x, weight, stride, padding, dilation)) is None or any(step == 0 for _, _, step, _, _ in axes):
        return None
    sizes = tuple((size + 2 * pad - gap * (taps - 1) - 1) // step + 1 for size, taps, step, pad, gap in axes)
    return None if min(sizes) < 1 else (x[0], weight[0], *sizes)


def _spread(
    x: Shape, weight: Shape, stride: Numbers, padding: Numbers, dilation: Numbers, more: Numbers, groups: Numbers
) -> Shape | None:
    """Shape of the output of a transposed convolution (PyTorch, torch.nn.ConvTranspose2d)."""
    axes = _axes(x, weight, stride, padding, dilation, more)
    if axes is None or groups is None or len(groups) != 1 or groups[0] < 1:
        return None
    sizes = tuple((size - 1) * step - 2 * pad + gap * (taps - 1) + add + 1 for size, taps, step, pad, gap, add in axes)
    return None if min(sizes) < 1 else (x[0], weight[1] * groups[0], *sizes)


def _axes(x: Shape, weight: Shape, *settings: Numbers) -> Sequence[Sequence[int]] | None:
    """For each axis of the image its size, that of the filter, and the settings; None where one is not known."""
    if len(x) < 3 or len(x) != len(weight):
        return None
    each = [None if values is None else _per_axis(values, len(x) - 2) for values in settings]
    known = [values for values in each if values is not None]
    return list(zip(x[2:], weight[2:], *known, strict=True)) if len(known) == len(each) else None


def _per_axis(values: Sequence[int], n: int) -> Sequence[int] | None:
    return values if len(values) == n else tuple(values) * n if len(values) == 1 else None

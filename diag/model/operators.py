"""Work of PyTorch operators from the shapes of their arguments: modelled, never measured.

FLOPs are those of the definition, a multiply-add being two. Bytes are the least that must move: every input read once
and the output written once, whatever the caches do. What a trace does not say (strides of a convolution, or along
which axis is reduced) is not guessed: then there is no model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

Kind = Literal["gemm", "convolution", "attention", "norm", "elementwise", "reduction"]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Element:
    name: str
    n_bytes: int


ELEMENTS: Mapping[str, Element] = {
    "float": Element("fp32", 4),
    "double": Element("fp64", 8),
    "c10::Half": Element("fp16", 2),
    "c10::BFloat16": Element("bf16", 2),
    "c10::Float8_e4m3fn": Element("fp8", 1),
    "c10::Float8_e5m2": Element("fp8", 1),
    "signed char": Element("int8", 1),
    "unsigned char": Element("uint8", 1),
    "int": Element("int32", 4),
    "long int": Element("int64", 8),
}
"""Types as PyTorch's profiler spells them (c10/core/ScalarType.h through typeid names)."""


@dataclass(frozen=True)
class Arguments:
    """Of one call, in order: the shape of each tensor, () for what is none, and what else the trace says."""

    shapes: Sequence[Shape]
    dtypes: Sequence[str] = ()
    values: Sequence[str] = ()  # scalars and lists as text; '' for tensors

    def shape(self, at: int) -> Shape:
        return self.shapes[at] if at < len(self.shapes) else ()

    def element(self, at: int) -> Element | None:
        """The type of a tensor; None where it is not recorded, or no type that has a size here."""
        return ELEMENTS.get(self.dtypes[at]) if at < len(self.dtypes) else None

    def value(self, at: int) -> str | None:
        """None where the trace does not record values."""
        return self.values[at] if at < len(self.values) and self.values[at] else None

    def ints(self, at: int) -> tuple[int, ...] | None:
        """A list of numbers, as in '[1, 1]'."""
        text = self.value(at)
        if text is None:
            return None
        try:
            return tuple(int(part) for part in text.strip("[]()").split(",") if part.strip())
        except ValueError:
            return None


@dataclass(frozen=True)
class Work:
    """What one call has to do. `n_bytes` is None where the types of its tensors are not known."""

    kind: Kind
    flops: int
    n_bytes: int | None
    dtype: str | None  # of its first tensor, as in 'bf16'
    formula: str

    @property
    def intensity(self) -> float | None:
        """FLOP per byte."""
        return self.flops / self.n_bytes if self.n_bytes else None


@dataclass(frozen=True)
class _Model:
    """FLOPs, which arguments are read, and the shape of what is written, which has the type of one of them."""

    kind: Kind
    flops: int
    read: Sequence[int]
    written: Shape
    formula: str
    type_at: int = 0


MOST_ELEMENTS = 1 << 48
"""No tensor has more; a damaged file may claim any."""


def work_of(operator: str, arguments: Arguments) -> Work | None:
    """The work of one call of an operator such as 'aten::mm'; None where it has no model or too little is known.

    >>> mm = work_of("aten::mm", Arguments([(128, 64), (64, 32)], ["float", "float"]))
    >>> mm.flops, mm.n_bytes
    (524288, 57344)
    """
    model_of = _MODELS.get(operator)
    if model_of is None or any(size < 0 for shape in arguments.shapes for size in shape):
        return None
    model = model_of(arguments)
    if model is None or max(map(prod, (*arguments.shapes, model.written))) > MOST_ELEMENTS:
        return None
    element = arguments.element(model.type_at)
    return Work(
        kind=model.kind,
        flops=model.flops,
        n_bytes=_bytes(model, arguments),
        dtype=None if element is None else element.name,
        formula=model.formula,
    )


def _bytes(model: _Model, arguments: Arguments) -> int | None:
    total, of_output = 0, arguments.element(model.type_at)
    for at in model.read:
        shape, element = arguments.shape(at), arguments.element(at)
        if shape and element is None:
            return None
        total += prod(shape) * element.n_bytes if shape and element else 0
    return None if of_output is None else total + prod(model.written) * of_output.n_bytes


# ---- products ------------------------------------------------------------------------------------------------------


def _gemm(batch: int, m: int, n: int, k: int, read: Sequence[int], written: Shape) -> _Model:
    return _Model("gemm", 2 * batch * m * n * k, read, written, "2 × batch × M × N × K", read[0])


def _mm(args: Arguments, first: int = 0) -> _Model | None:
    a, b = args.shape(first), args.shape(first + 1)
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        return None
    return _gemm(1, a[0], b[1], a[1], _factors(first), (a[0], b[1]))


def _bmm(args: Arguments, first: int = 0) -> _Model | None:
    a, b = args.shape(first), args.shape(first + 1)
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        return None
    return _gemm(a[0], a[1], b[2], a[2], _factors(first), (a[0], a[1], b[2]))


def _factors(first: int) -> Sequence[int]:
    """Where two factors stand, of which the first is at `first`, and what is added to their product before it."""
    return (first, first + 1, *range(first))


def _linear(args: Arguments) -> _Model | None:
    x, weight = args.shape(0), args.shape(1)
    if len(x) < 1 or len(weight) != 2 or x[-1] != weight[1]:
        return None
    return _gemm(1, prod(x[:-1]), weight[0], x[-1], (0, 1, 2), (*x[:-1], weight[0]))


def _mv(args: Arguments) -> _Model | None:
    a, x = args.shape(0), args.shape(1)
    if len(a) != 2 or len(x) != 1 or a[1] != x[0]:
        return None
    return _gemm(1, a[0], 1, a[1], (0, 1), (a[0],))


# ---- convolutions --------------------------------------------------------------------------------------------------


def _convolution(args: Arguments) -> _Model | None:
    """input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    x, weight = args.shape(0), args.shape(1)
    stride, padding, dilation = args.ints(3), args.ints(4), args.ints(5)
    if len(x) < 3 or len(x) != len(weight) or stride is None or padding is None or dilation is None:
        return None
    if args.value(6) != "False":  # transposed, or not told
        return None
    output = _convolved(x, weight, stride, padding, dilation)
    return None if output is None else _conv_model(output, weight, (0, 1, 2), output)


def _cudnn_convolution(args: Arguments) -> _Model | None:
    """input, weight, padding, stride, dilation, groups."""
    x, weight = args.shape(0), args.shape(1)
    padding, stride, dilation = args.ints(2), args.ints(3), args.ints(4)
    if len(x) < 3 or len(x) != len(weight) or stride is None or padding is None or dilation is None:
        return None
    output = _convolved(x, weight, stride, padding, dilation)
    return None if output is None else _conv_model(output, weight, (0, 1), output)


def _convolution_backward(args: Arguments) -> _Model | None:
    """grad of output, input, weight: the gradients of the input and of the weight, each as much work as forward."""
    return _both_gradients(args, output_at=0, input_at=1)


def _cudnn_convolution_backward(args: Arguments) -> _Model | None:
    """input, grad of output, weight: as PyTorch up to 1.10 called it."""
    return _both_gradients(args, output_at=1, input_at=0)


def _both_gradients(args: Arguments, *, output_at: int, input_at: int) -> _Model | None:
    output, x, weight = args.shape(output_at), args.shape(input_at), args.shape(2)
    if len(output) < 3 or not len(output) == len(x) == len(weight):
        return None
    once = _conv_model(output, weight, (0, 1, 2), x)
    written = (prod(x) + prod(weight),)
    return _Model("convolution", 2 * once.flops, once.read, written, f"2 × ({once.formula})")


def _conv_model(output: Shape, weight: Shape, read: Sequence[int], written: Shape) -> _Model:
    flops = 2 * prod(output) * prod(weight[1:])
    return _Model("convolution", flops, read, written, "2 × outputs × channels of a group × size of the filter")


def _convolved(
    x: Shape, weight: Shape, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Shape | None:
    """Shape of the output (PyTorch, torch.nn.Conv2d)."""
    n = len(x) - 2
    steps, pads, gaps = (_per_axis(each, n) for each in (stride, padding, dilation))
    if steps is None or pads is None or gaps is None or 0 in steps:
        return None
    sizes = tuple(
        (size + 2 * pad - gap * (taps - 1) - 1) // step + 1
        for size, taps, step, pad, gap in zip(x[2:], weight[2:], steps, pads, gaps, strict=True)
    )
    return None if min(sizes) < 1 else (x[0], weight[0], *sizes)


def _per_axis(values: Sequence[int], n: int) -> Sequence[int] | None:
    return values if len(values) == n else tuple(values) * n if len(values) == 1 else None


# ---- attention -----------------------------------------------------------------------------------------------------


def _attention(causal_at: int, *, heads_first: bool) -> Callable[[Arguments], _Model | None]:
    """Q·Kᵀ and P·V; the softmax between them is left out: it is O(S²) where they are O(S²·D)."""

    def model(args: Arguments) -> _Model | None:
        q, k, v = args.shape(0), args.shape(1), args.shape(2)
        causal = args.value(causal_at)
        if not len(q) == len(k) == len(v) == 4 or causal not in ("True", "False"):
            return None
        batch, heads, queries, keys = (q[0], q[1], q[2], k[2]) if heads_first else (q[0], q[2], q[1], k[1])
        if causal == "True" and queries != keys:  # libraries differ on which corner the mask starts from
            return None
        visible = queries * (queries + 1) // 2 if causal == "True" else queries * keys
        flops = 2 * batch * heads * visible * (q[3] + v[3])
        return _Model("attention", flops, (0, 1, 2), (*q[:3], v[3]), "2 × visible pairs × (D of QK + D of V)")

    return model


# ---- norms, elementwise, reductions --------------------------------------------------------------------------------


def _norm(flops_per_element: int, formula: str, *weights_at: int) -> Callable[[Arguments], _Model | None]:
    def model(args: Arguments) -> _Model | None:
        x = args.shape(0)
        if not x:
            return None
        flops = flops_per_element * prod(x)
        return _Model("norm", flops, (0, *weights_at), x, f"{flops_per_element} × elements: {formula}")

    return model


def _elementwise(flops_per_element: int) -> Callable[[Arguments], _Model | None]:
    """As many operands as there are tensors, broadcast against each other."""

    def model(args: Arguments) -> _Model | None:
        operands = [at for at, shape in enumerate(args.shapes) if shape]
        output = _broadcast([args.shape(at) for at in operands])
        if output is None:
            return None
        flops = flops_per_element * prod(output)
        return _Model("elementwise", flops, operands, output, f"{flops_per_element} × elements", operands[0])

    return model


def _copy(args: Arguments) -> _Model | None:
    """To the first argument from the second."""
    target = args.shape(0)
    return _Model("elementwise", 0, (1,), target, "no operations: elements are moved") if target else None


def _broadcast(operands: Sequence[Shape]) -> Shape | None:
    if not operands:
        return None
    rank = max(map(len, operands))
    output: list[int] = []
    for axis in zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in operands), strict=True):
        sizes = set(axis) - {1}
        if len(sizes) > 1:
            return None
        output.append(sizes.pop() if sizes else 1)
    return tuple(output)


def _softmax(args: Arguments) -> _Model | None:
    """max, subtract, exponential, sum, divide."""
    x = args.shape(0)
    if not x:
        return None
    formula = "5 × elements: maximum, difference, exponential, sum, quotient"
    return _Model("reduction", 5 * prod(x), (0,), x, formula)


def _reduction(args: Arguments) -> _Model | None:
    """One operation per element read. What is written depends on the axes; without them it is left out."""
    x = args.shape(0)
    return _Model("reduction", prod(x), (0,), (0,), "elements read; the result is left out of the bytes") if x else None


_MODELS: Mapping[str, Callable[[Arguments], _Model | None]] = {
    "aten::mm": _mm,
    "aten::addmm": lambda args: _mm(args, 1),
    "aten::bmm": _bmm,
    "aten::baddbmm": lambda args: _bmm(args, 1),
    "aten::linear": _linear,
    "aten::mv": _mv,
    "aten::convolution": _convolution,
    "aten::_convolution": _convolution,
    "aten::cudnn_convolution": _cudnn_convolution,
    "aten::convolution_backward": _convolution_backward,
    "aten::cudnn_convolution_backward": _cudnn_convolution_backward,
    "aten::scaled_dot_product_attention": _attention(5, heads_first=True),
    "aten::_scaled_dot_product_flash_attention": _attention(4, heads_first=True),
    "aten::_scaled_dot_product_efficient_attention": _attention(6, heads_first=True),
    "aten::_scaled_dot_product_cudnn_attention": _attention(6, heads_first=True),
    "aten::_flash_attention_forward": _attention(8, heads_first=False),
    "aten::native_layer_norm": _norm(7, "mean, variance, scale and shift", 2, 3),
    "aten::rms_norm": _norm(4, "square, sum, scale twice", 2),
    "aten::_fused_rms_norm": _norm(4, "square, sum, scale twice", 2),
    "aten::native_batch_norm": _norm(7, "mean, variance, scale and shift", 1, 2),
    "aten::cudnn_batch_norm": _norm(7, "mean, variance, scale and shift", 1, 2),
    "aten::copy_": _copy,
    "aten::_softmax": _softmax,
    "aten::_log_softmax": _softmax,
    "aten::sum": _reduction,
    "aten::mean": _reduction,
    "aten::max": _reduction,
    "aten::min": _reduction,
    **{
        f"aten::{name}{ending}": _elementwise(flops)
        for flops, names in (
            (1, ("add", "sub", "mul", "div", "neg", "relu", "clamp_min", "exp", "rsqrt", "sqrt", "pow", "where")),
            (1, ("threshold_backward", "eq", "ne", "gt", "lt", "maximum", "minimum", "abs")),
            (2, ("addcmul", "addcdiv", "lerp")),
            (4, ("sigmoid", "tanh", "silu")),
            (8, ("gelu",)),
        )
        for name in names
        for ending in ("", "_")
    },
}  # fmt: skip
"""By the names that the profiler gives them; `name_` works in place. A transcendental function counts as one operation,
and functions made of several by their definition: sigmoid and silu 4, gelu 8."""

MODELLED = frozenset(_MODELS)

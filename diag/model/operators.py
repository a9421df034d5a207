"""Work of PyTorch operators from the shapes of their arguments: modelled, never measured.

FLOPs are those of the definition, a multiply-add being two. Bytes are the least that must move: every input read once
and the output written once, whatever the caches do. What a trace does not say (strides of a convolution, or along
which axis is reduced) is not guessed: then there is no model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from diag.model.convolution_work import (
    convolution,
    convolution_backward,
    cudnn_convolution,
    cudnn_convolution_backward,
)
from diag.model.operator_arguments import BOOL, FLOAT, Arguments, Element, Kind, Model, Shape


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


def _bytes(model: Model, arguments: Arguments) -> int | None:
    total, of_output = 0, model.result or arguments.element(model.type_at)
    for at in model.read:
        shape, element = arguments.shape(at), arguments.element(at)
        if shape and element is None:
            return None
        total += prod(shape) * element.n_bytes if shape and element else 0
    return None if of_output is None else total + prod(model.written) * of_output.n_bytes


# ---- products ------------------------------------------------------------------------------------------------------


def _gemm(batch: int, m: int, n: int, k: int, read: Sequence[int], written: Shape) -> Model:
    return Model("gemm", 2 * batch * m * n * k, read, written, "2 × batch × M × N × K", read[0])


def _mm(args: Arguments, first: int = 0) -> Model | None:
    a, b = args.shape(first), args.shape(first + 1)
    if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
        return None
    return _gemm(1, a[0], b[1], a[1], _factors(first), (a[0], b[1]))


def _bmm(args: Arguments, first: int = 0) -> Model | None:
    a, b = args.shape(first), args.shape(first + 1)
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        return None
    return _gemm(a[0], a[1], b[2], a[2], _factors(first), (a[0], a[1], b[2]))


def _factors(first: int) -> Sequence[int]:
    """Where two factors stand, of which the first is at `first`, and what is added to their product before it."""
    return (first, first + 1, *range(first))


def _linear(args: Arguments) -> Model | None:
    x, weight = args.shape(0), args.shape(1)
    if len(x) < 1 or len(weight) != 2 or x[-1] != weight[1]:
        return None
    return _gemm(1, prod(x[:-1]), weight[0], x[-1], (0, 1, 2), (*x[:-1], weight[0]))


def _mv(args: Arguments) -> Model | None:
    a, x = args.shape(0), args.shape(1)
    if len(a) != 2 or len(x) != 1 or a[1] != x[0]:
        return None
    return _gemm(1, a[0], 1, a[1], (0, 1), (a[0],))


# ---- attention -----------------------------------------------------------------------------------------------------


def _attention(causal_at: int, *, heads_first: bool = True) -> Callable[[Arguments], Model | None]:
    """Q·Kᵀ and P·V; the softmax between them is left out: it is O(S²) where they are O(S²·D)."""

    def model(args: Arguments) -> Model | None:
        q, v, pairs = args.shape(0), args.shape(2), _visible_pairs(args, 0, causal_at, heads_first=heads_first)
        if pairs is None:
            return None
        formula = "2 × visible pairs × (D of QK + D of V)"
        return Model("attention", 2 * pairs * (q[3] + v[3]), (0, 1, 2), (*q[:3], v[3]), formula)

    return model


def _attention_backward(causal_at: int, output_at: int) -> Callable[[Arguments], Model | None]:
    """grad of output, Q, K, V, ...: Q·Kᵀ once more, and the gradients of P, V, Q and K."""

    def model(args: Arguments) -> Model | None:
        q, k, v, pairs = args.shape(1), args.shape(2), args.shape(3), _visible_pairs(args, 1, causal_at)
        if pairs is None:
            return None
        flops, written = 2 * pairs * (3 * q[3] + 2 * v[3]), (prod(q) + prod(k) + prod(v),)
        formula = "2 × visible pairs × (3 × D of QK + 2 × D of V)"
        return Model("attention", flops, (0, 1, 2, 3, output_at), written, formula, 1)

    return model


def _visible_pairs(args: Arguments, first: int, causal_at: int, *, heads_first: bool = True) -> int | None:
    """Queries times the keys that each sees, of all heads; Q, K and V stand at `first` and after."""
    q, k, v = (args.shape(first + at) for at in range(3))
    causal = args.value(causal_at)
    if not len(q) == len(k) == len(v) == 4 or causal not in ("True", "False"):
        return None
    batch, heads, queries, keys = (q[0], q[1], q[2], k[2]) if heads_first else (q[0], q[2], q[1], k[1])
    if causal == "True" and queries != keys:  # libraries differ on which corner the mask starts from
        return None
    return batch * heads * (queries * (queries + 1) // 2 if causal == "True" else queries * keys)


# ---- norms, elementwise, reductions --------------------------------------------------------------------------------


def _norm(flops_per_element: int, formula: str, *weights_at: int) -> Callable[[Arguments], Model | None]:
    def model(args: Arguments) -> Model | None:
        x = args.shape(0)
        if not x:
            return None
        flops = flops_per_element * prod(x)
        return Model("norm", flops, (0, *weights_at), x, f"{flops_per_element} × elements: {formula}")

    return model


def _elementwise(flops_per_element: int, name: str) -> Callable[[Arguments], Model | None]:
    """As many operands as there are tensors, broadcast against each other."""

    def model(args: Arguments) -> Model | None:
        operands = [at for at, shape in enumerate(args.shapes) if shape]
        output = _broadcast([args.shape(at) for at in operands])
        if output is None:
            return None
        flops, chosen = flops_per_element * prod(output), operands[1:] if name == "where" else operands
        elements = [element for at in chosen if (element := args.element(at)) is not None]
        result = elements[0] if name.endswith("_") and elements else _result(name, elements)
        formula = f"{flops_per_element} × elements"
        return Model("elementwise", flops, operands, output, formula, (chosen or operands)[0], result)

    return model


_COMPARISONS = ("eq", "ne", "gt", "lt")


def _result(name: str, elements: Sequence[Element]) -> Element | None:
    """Type of the result (PyTorch, torch.result_type): floating point goes before integers, then the wider one."""
    if name in _COMPARISONS:
        return BOOL
    floating = [element for element in elements if element.is_floating]
    if name in _FLOATING and not floating:
        return FLOAT
    return max(floating or elements, key=lambda element: element.n_bytes, default=None)


_FLOATING = ("div", "exp", "rsqrt", "sqrt", "sigmoid", "tanh")
"""Of integers, too, they give floating point."""


def _copy(args: Arguments) -> Model | None:
    """To the first argument from the second."""
    target = args.shape(0)
    return Model("elementwise", 0, (1,), target, "no operations: elements are moved") if target else None


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


def _softmax(args: Arguments) -> Model | None:
    """max, subtract, exponential, sum, divide."""
    x = args.shape(0)
    if not x:
        return None
    formula = "5 × elements: maximum, difference, exponential, sum, quotient"
    return Model("reduction", 5 * prod(x), (0,), x, formula)


def _reduction(args: Arguments) -> Model | None:
    """One operation per element read. What is written depends on the axes; without them it is left out."""
    x = args.shape(0)
    return Model("reduction", prod(x), (0,), (0,), "elements read; the result is left out of the bytes") if x else None


_MODELS: Mapping[str, Callable[[Arguments], Model | None]] = {
    "aten::mm": _mm,
    "aten::addmm": lambda args: _mm(args, 1),
    "aten::bmm": _bmm,
    "aten::baddbmm": lambda args: _bmm(args, 1),
    "aten::linear": _linear,
    "aten::mv": _mv,
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::cudnn_convolution": cudnn_convolution,
    "aten::convolution_backward": convolution_backward,
    "aten::cudnn_convolution_backward": cudnn_convolution_backward,
    "aten::scaled_dot_product_attention": _attention(5),
    "aten::_scaled_dot_product_flash_attention": _attention(4),
    "aten::_scaled_dot_product_efficient_attention": _attention(6),
    "aten::_scaled_dot_product_cudnn_attention": _attention(6),
    "aten::_flash_attention_forward": _attention(8, heads_first=False),
    "aten::_scaled_dot_product_flash_attention_backward": _attention_backward(11, 4),
    "aten::_scaled_dot_product_efficient_attention_backward": _attention_backward(11, 5),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention_backward(14, 4),
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
        f"aten::{name}{ending}": _elementwise(flops, name + ending)
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

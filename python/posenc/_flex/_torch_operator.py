# ===- _torch_operator.py - the operator of PyTorch ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The operator `posenc::flex_attention`, with gradients. As for `posenc::call`, the
kernels are a string argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._errors import Error
from .._frameworks import refuse_meta
from .._kernels import Kernels
from .._operators import CallForward, _compute, find, innermost, make_function, register
from .._sharding import find_rule
from .._torch_sharding import call_divided, has_dtensor
from .._torch_state import has_tangent, is_in_forward_mode, is_traced
from ._gradient import GRADIENT, name_array_gradient
from ._max_scores import MAX_SCORES
from ._plan import Call

_FUNCTION = "attention"
_library = torch.library.Library("posenc", "FRAGMENT")
_library.define("flex_attention(Tensor[] inputs, str kernels) -> (Tensor, Tensor)",
                tags=(torch.Tag.pt2_compliant_tag,))


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def call_operator(kernels: Kernels, inputs: list[torch.Tensor]):
    """Returns the output and the log-sum-exp. Calls that nothing records are made without
    the operator, whose dispatch takes longer than small kernels."""
    if has_dtensor(inputs):
        return _call_divided(kernels, inputs)
    if (all(type(tensor) in _PLAIN for tensor in inputs) and not _needs_gradient(inputs)
            and not is_traced() and not is_in_forward_mode()
            and not torch._C._are_functorch_transforms_active()):
        inputs = [innermost(tensor) if tensor.dim() else tensor for tensor in inputs]
        refuse_meta(inputs[0], "flex_attention: query")
        return kernels[_FUNCTION](*inputs)
    return torch.ops.posenc.flex_attention(inputs, _name(kernels))


def _name(kernels: Kernels) -> str:
    """Returns the string that means kernels, which are kept for a graph that names
    them."""
    spec = kernels._spec
    return register(kernels) if is_traced() or spec is None else spec


def call_max_scores(kernels: Kernels, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Returns the largest score of each query."""
    result, = torch.ops.posenc.call([tensor.detach() for tensor in inputs],
                                    _name(kernels), MAX_SCORES)
    return result


def _call_divided(kernels: Kernels, inputs: list[torch.Tensor]):
    """Calls with the parts of DTensors that this process has. Captured tensors may be
    plain ones, which all processes have."""
    from torch.distributed.tensor import DTensor, Replicate

    mesh = next(one.device_mesh for one in inputs if isinstance(one, DTensor))
    inputs = [*inputs[:3], *(
        one if isinstance(one, DTensor) else DTensor.from_local(
            one, mesh, [Replicate()] * mesh.ndim, run_check=False) for one in inputs[3:])]
    metadata = kernels._describe(_FUNCTION)
    rule = find_rule(kernels._spec, metadata)

    def compute(tensors, parts: int):
        local = kernels if rule is None or rule.find_local is None or parts == 1 else (
            rule.find_local(parts))
        return call_operator(local, tensors)

    names = [argument["name"] for argument in metadata["inputs"]]
    return call_divided("flex_attention", names, rule, inputs, 2, compute)


@torch.library.impl(_library, "flex_attention", "CompositeExplicitAutograd")
def _(inputs, kernels):
    return _compute(find(kernels)[_FUNCTION], inputs)


@torch.library.register_fake("posenc::flex_attention", lib=_library)
def _(inputs, kernels):
    query, _, value, *_ = inputs
    for tensor in inputs:
        if tensor.device != query.device:
            raise Error(f"flex_attention: a tensor is on the device '{tensor.device}', "
                        f"but query is on '{query.device}'")
    sums = torch.float64 if query.dtype == torch.float64 else torch.float32
    shape = query.shape[:-1]
    return (query.new_empty((*shape, value.shape[-1])), query.new_empty(shape, dtype=sums))


class _FlexAttention:
    @staticmethod
    def forward(kernels, *inputs):
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.posenc.flex_attention(list(inputs), kernels)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.kernels, *tensors = inputs
        ctx.held = find(ctx.kernels)  # until gradients were computed
        ctx.save_for_backward(*tensors, *output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad_output, grad_lse):
        *inputs, output, lse = ctx.saved_tensors
        if grad_output is None and grad_lse is None:
            return (None,) * (len(inputs) + 1)
        if grad_output is None:
            grad_output = torch.zeros_like(output)
        if grad_lse is None:
            grad_lse = torch.zeros_like(lse)
        arguments = [*inputs[:3], output, lse, grad_output.to(output.dtype),
                     grad_lse.to(lse.dtype), *inputs[3:]]
        gradients: list[Any] = [None] * len(inputs)
        needed = ctx.needs_input_grad[1:]
        if any(needed[:3]):
            gradients[:3] = _call_gradient(ctx.kernels, GRADIENT, arguments)
            gradients[0] = gradients[0].to(inputs[0].dtype)
        for number, tensor in enumerate(inputs[3:]):
            if needed[number + 3]:
                gradients[number + 3] = _differentiate_array(
                    ctx.kernels, arguments, number, tensor)
        return None, *gradients

    @staticmethod
    def jvp(ctx, *tangents):
        raise Error("flex_attention: an input has a tangent, and there is no derivative in "
                    "forward mode")


_apply = make_function(_FlexAttention)


def attend(call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the output and the log-sum-exp of a call, whose gradient is the affair of
    the caller."""
    return _compute(call.find_kernels()[_FUNCTION], call.inputs)


def differentiate(call: Call, output: torch.Tensor, lse: torch.Tensor,
                  grad_output: torch.Tensor, grad_lse: torch.Tensor):
    """Returns the gradients of query, key and value of a call, from the output and the
    log-sum-exp of a call with these keys and perhaps others."""
    arguments = [*call.inputs[:3], output, lse, grad_output.to(output.dtype),
                 grad_lse.to(lse.dtype), *call.inputs[3:]]
    return _compute(call.find_kernels()[GRADIENT], arguments)


def _differentiate_array(kernels: str, arguments: list[torch.Tensor], number: int,
                         array: torch.Tensor) -> torch.Tensor | None:
    """Returns the gradient of a captured array; None if the score does not depend on
    it."""
    name = name_array_gradient(number)
    if name not in find(kernels):
        return None
    gradient, = _call_gradient(kernels, name, arguments)
    return gradient.to(array.dtype)


class _Gradient(CallForward):
    """A call of a gradient, which has none itself."""

    @staticmethod
    def backward(ctx, *gradients):
        raise Error("flex_attention: gradients of gradients are not supported: call "
                    "torch.autograd.grad or backward without create_graph=True, or "
                    "PyTorch's own flex_attention")


_apply_gradient = make_function(_Gradient)


def _call_gradient(kernels: str, name: str,
                   arguments: list[torch.Tensor]) -> Sequence[torch.Tensor]:
    if _needs_gradient(arguments):
        return _apply_gradient(kernels, name, *arguments)
    return torch.ops.posenc.call(arguments, kernels, name)


def _needs_gradient(inputs) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)


@torch.library.impl(_library, "flex_attention", "Autograd")
def _(inputs, kernels):
    if _needs_gradient(inputs) or (is_in_forward_mode()
                                   and any(map(has_tangent, inputs))):
        return _apply(kernels, *inputs)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.posenc.flex_attention(inputs, kernels)


@torch.library.register_vmap("posenc::flex_attention", lib=_library)
def _(info, axes, inputs, kernels):
    raise Error("flex_attention: has no rule for torch.vmap: make the mapped dimension a "
                "part of the batch")

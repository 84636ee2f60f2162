# ===- torch.py - operators of PyTorch -------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Operators of PyTorch: right under autograd, torch.compile and torch.export.

    ops = posenc.torch.operators(posenc.compile("config.json"))
    q, k = ops.rope(q, k, positions)       # with gradients
    o = ops.attention(q, k, v, positions)  # without

or, without a config, `posenc.torch.rope(q, k, positions, theta=…)`.

There are two operators, `posenc::rope` and `posenc::call`. The kernels are a string
argument: the config or module and the options that they are compiled from. So an
exported program is complete: loaded in another process, it compiles its kernels at
the first call, or takes them from the cache.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ._compile import compile_spec, write_json
from ._dtypes import FRAMEWORK_NAMES, name_of
from ._errors import Error
from ._fork import Lock
from ._kernels import Kernels
from ._sizes import evaluate
from ._spec import (
    LENGTH_WITHOUT_GRADIENT, has_gradient, is_length_dependent,
    is_length_dependent_scaling)
from ._torch_state import has_tangent, is_in_forward_mode
from ._rope import get_rope_kernels, measure_heads, write_scaling

__all__ = ["Operators", "operators", "rope"]

# Begins the string that means the kernels of `rope` without a config. Numbers of heads
# are not in it, so that they may differ between calls of a compiled function.
_OPTIONS = "rope"
_kernels: dict[str, Kernels] = {}
_lock = Lock()


def register(kernels: Kernels) -> str:
    """Makes kernels known to the operators and returns the string that means them."""
    if kernels._spec is None:
        raise Error("posenc.torch needs kernels of posenc.compile; a loaded library "
                    "cannot be compiled again where an exported program runs")
    with _lock:
        _kernels.setdefault(kernels._spec, kernels)
    return kernels._spec


def _find(spec: str) -> Kernels:
    kernels = _kernels.get(spec)
    if kernels is None:
        with _lock:
            if spec not in _kernels:
                _kernels[spec] = compile_spec(spec)
            kernels = _kernels[spec]
    return kernels


def _find_rope(spec: str, q: torch.Tensor, k: torch.Tensor) -> Kernels:
    """Returns the kernels of a call of `rope`. Without a config, inputs select them."""
    if spec.startswith(_OPTIONS):
        return get_rope_kernels(*measure_heads(q, k), name_of(q.dtype),
                                *_read_options(spec))
    return _find(spec)


@functools.lru_cache
def _read_options(spec: str) -> list:
    return json.loads(spec.removeprefix(_OPTIONS))


def _find_function(spec: str, name: str) -> dict:
    return _find(spec)._describe(name)


def _is_length_dependent(spec: str, name: str) -> bool:
    if spec.startswith(_OPTIONS):
        _, scaling, *_ = _read_options(spec)
        return is_length_dependent_scaling(scaling)
    return is_length_dependent(spec, name)


# ===----------------------------------------------------------------------===#
# posenc::rope
# ===----------------------------------------------------------------------===#


@torch.library.custom_op("posenc::rope", mutates_args=())
def _rope(q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor, kernels: str,
          function: str) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        found = _find_rope(kernels, q, k)
        return found[function](innermost(q), innermost(k), innermost(positions))


@_rope.register_fake
def _(q, k, positions, kernels, function):
    return (torch.empty(q.shape, dtype=q.dtype, device=q.device),
            torch.empty(k.shape, dtype=k.dtype, device=k.device))


def _setup_rope(ctx, inputs, output):
    _, _, positions, ctx.kernels, ctx.function = inputs
    ctx.save_for_backward(positions)


def _backward_rope(ctx, q_gradient, k_gradient):
    # A rotation by the angles of position p, times the factor of the scaling, is
    # transposed by the angles of -p and the same factor.
    (positions,) = ctx.saved_tensors
    if _is_length_dependent(ctx.kernels, ctx.function):
        raise Error(f"rope: {LENGTH_WITHOUT_GRADIENT}")
    q_gradient, k_gradient = torch.ops.posenc.rope(
        q_gradient, k_gradient, -positions, ctx.kernels, ctx.function)
    return q_gradient, k_gradient, None, None, None


_rope.register_autograd(_backward_rope, setup_context=_setup_rope)


def innermost(tensor: torch.Tensor) -> torch.Tensor:
    """Kernels take any strides but those of the last dimension, which must be 1."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


# ===----------------------------------------------------------------------===#
# posenc::call
# ===----------------------------------------------------------------------===#


@torch.library.custom_op("posenc::call", mutates_args=())
def _call(inputs: list[torch.Tensor], kernels: str,
          function: str) -> list[torch.Tensor]:
    with torch.no_grad():
        results = _find(kernels)[function](
            *(innermost(tensor) if tensor.dim() else tensor for tensor in inputs))
    return list(results) if isinstance(results, tuple) else [results]


@_call.register_fake
def _(inputs, kernels, function):
    metadata = _find_function(kernels, function)
    sizes: dict[str, Any] = {}
    for tensor, argument in zip(inputs, metadata["inputs"]):
        for dim, size in enumerate(argument["shape"]):
            if isinstance(size, str) and size.isidentifier():
                sizes.setdefault(size, tensor.shape[dim])
    return [
        torch.empty([evaluate(size, sizes, torch.sym_min, torch.sym_max)
                     for size in output["shape"]],
                    dtype=getattr(torch, FRAMEWORK_NAMES[output["dtype"]]),
                    device=inputs[0].device)
        for output in metadata["outputs"]]


def _refuse_gradient(ctx, *gradients):
    raise Error(f"{ctx.function}: has no gradient: call it under torch.no_grad(), "
                "or detach its inputs")


def _setup_call(ctx, inputs, output):
    ctx.function = inputs[2]


_call.register_autograd(_refuse_gradient, setup_context=_setup_call)


# ===----------------------------------------------------------------------===#
# The interface
# ===----------------------------------------------------------------------===#


def _check_inputs(name: str, names: Sequence[str], inputs: Sequence) -> None:
    """Raises an error for inputs that operators would not take, or whose derivatives
    they would drop."""
    may_have_tangents = is_in_forward_mode()
    for argument, value in zip(names, inputs):
        if not isinstance(value, torch.Tensor):
            raise Error(f"{name}: {argument} is a {type(value).__name__}, expected a "
                        "tensor of PyTorch")
        if may_have_tangents and has_tangent(value):
            raise Error(f"{name}: {argument} has a tangent, and operators have no "
                        "derivatives in forward mode")


def _make_operator(kernels: Kernels, spec: str, metadata: dict) -> Callable[..., Any]:
    """Returns the operator of a function of kernels, with its parameters and
    docstring."""
    name, outputs = metadata["name"], len(metadata["outputs"])
    method = kernels[name]
    parameters = [parameter for parameter in inspect.signature(method).parameters.values()
                  if parameter.name != "out"]
    names = [parameter.name for parameter in parameters]
    has_numbers = any(a["kind"] != "tensor" for a in metadata["inputs"])
    is_rotation = has_gradient(spec, name)

    def call(*inputs, **named):
        if named:
            inputs = (*inputs, *(named.pop(key) for key in names[len(inputs):]
                                 if key in named))
        if named or len(inputs) != len(names):
            raise TypeError(f"{name}: expected the arguments ({', '.join(names)})")
        if has_numbers:
            raise Error(f"{name} has a number among its inputs, which posenc.torch does "
                        "not pass: call it on the kernels")
        _check_inputs(name, names, inputs)
        if is_rotation:
            return torch.ops.posenc.rope(*inputs, spec, name)
        results = torch.ops.posenc.call(list(inputs), spec, name)
        return results[0] if outputs == 1 else tuple(results)

    call.__name__ = name
    call.__doc__ = method.__doc__
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return call


class Operators:
    """The functions of kernels as operators of PyTorch, one method for each. `rope`
    of a config has gradients, and the others refuse them."""

    def __init__(self, kernels: Kernels):
        spec = register(kernels)
        for function in kernels.metadata["functions"]:
            if function["name"] in kernels:
                vars(self)[function["name"]] = _make_operator(kernels, spec, function)
        self._kernels = kernels

    def __reduce__(self):
        return operators, (self._kernels,)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        names = ", ".join(key for key in vars(self) if not key.startswith("_"))
        raise AttributeError(f"no function '{name}': there are {names}")


def operators(kernels: Kernels) -> Operators:
    """Returns the functions of `posenc.compile`'s kernels as operators of PyTorch."""
    return Operators(kernels)


def rope(q: torch.Tensor, k: torch.Tensor, positions: torch.Tensor, *,
         theta: float = 10000.0, scaling: Mapping[str, Any] | None = None,
         pairing: str = "half", rotary_dim: int | None = None,
         precision: str = "exact",
         max_position_embeddings: int = 2048) -> tuple[torch.Tensor, torch.Tensor]:
    """As `posenc.functional.rope`, with gradients."""
    _check_inputs("rope", ("q", "k", "positions"), (q, k, positions))
    options = _write_options(theta, scaling, pairing, rotary_dim, precision,
                             max_position_embeddings)
    return torch.ops.posenc.rope(q, k, positions, options, "rope")


@torch.compiler.assume_constant_result
def _write_options(theta: float, scaling: Mapping[str, Any] | None, *others) -> str:
    text = write_scaling(scaling)
    return _OPTIONS + write_json([theta, text and json.loads(text), *others])

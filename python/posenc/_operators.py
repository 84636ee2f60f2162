# ===- _operators.py - the operators of PyTorch -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The operators `posenc::rope` and `posenc::call`, and their rules for shapes,
derivatives, vmap and autocast.

The kernels are a string argument: the config or module and the options that they are
compiled from.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from ._dtypes import FRAMEWORK_NAMES, name_of
from ._errors import Error
from ._kernels import Kernels, compile_spec, known_kernels
from ._methods import name_parameters
from ._once import once
from ._rope import get_rope_kernels, measure_heads
from ._sharding import HEADS, find_rule
from ._sizes import evaluate, find_elements
from ._spec import (
    LENGTH_WITHOUT_GRADIENT, find_batch, has_gradient, is_computed_by_element,
    is_length_dependent, is_length_dependent_scaling)
from ._torch_sharding import call_divided, has_dtensor, register_rope
from ._torch_state import is_in_forward_mode

# Begins the string that means the kernels of `rope` without a config. Numbers of heads
# are not in it, so that they may differ between calls of a compiled function.
OPTIONS = "rope"
_kernels: dict[str, Kernels] = {}  # those that the process has
_compile_spec = once(compile_spec)


def register(kernels: Kernels) -> str:
    """Makes kernels known to the operators and returns the string that means them."""
    if kernels._spec is None:
        raise Error("posenc.torch needs kernels of posenc.compile; a loaded library "
                    "cannot be compiled again where an exported program runs")
    _kernels.setdefault(kernels._spec, kernels)
    return kernels._spec


def find(spec: str) -> Kernels:
    """Returns the kernels that a string means."""
    kernels = _kernels.get(spec) or known_kernels.get(spec)
    if kernels is None:
        kernels = _kernels[spec] = _compile_spec(spec)
    return kernels


@functools.cache
def _read_signature(spec: str, name: str) -> tuple[tuple[str, ...], bool, bool]:
    # The method is not made, as torch.compile is looking at what is in its place.
    metadata = find(spec)._describe(name)
    has_numbers = any(a["kind"] != "tensor" for a in metadata["inputs"])
    return tuple(name_parameters(metadata)), has_numbers, has_gradient(spec, name)


@torch.compiler.assume_constant_result
def _describe(spec: str, name: str) -> tuple[tuple[str, ...], bool, bool]:
    """Returns the parameters of a function, whether a number is among them, and whether
    it is a rotation."""
    return _read_signature(spec, name)


def check_inputs(name: str, names: Sequence[str], inputs: Sequence) -> None:
    """Raises an error for inputs that operators would not take."""
    for argument, value in zip(names, inputs):
        if not isinstance(value, torch.Tensor):
            raise Error(f"{name}: {argument} is a {type(value).__name__}, expected a "
                        "tensor of PyTorch")


def call(spec: str | None, name: str, inputs: Sequence, named: dict, out=None):
    """Calls the operator of a function, with the arguments of its method. Results are
    copied to `out`."""
    if spec is None:
        raise Error(f"{name}: kernels of a loaded library are not known where PyTorch "
                    "runs what it records: compile them by posenc.compile")
    names, has_numbers, is_rotation = _describe(spec, name)
    if named:
        inputs = (*inputs, *(named.pop(key) for key in names[len(inputs):]
                             if key in named))
    if named or len(inputs) != len(names):
        raise TypeError(f"{name}: expected the arguments ({', '.join(names)})")
    if has_numbers:
        raise Error(f"{name} has a number among its inputs, which operators of PyTorch do "
                    "not pass: call it on the kernels, outside of what PyTorch records")
    check_inputs(name, names, inputs)
    results: Any
    if has_dtensor(inputs):
        results = _call_divided(spec, name, names, inputs)
    elif is_rotation:
        results = torch.ops.posenc.rope(*inputs, spec, name)
    else:
        results = torch.ops.posenc.call(list(inputs), spec, name)
    if out is None:
        return results[0] if len(results) == 1 else tuple(results)
    for output, result in zip((out,) if len(results) == 1 else out, results):
        output.copy_(result)
    return out


def _call_divided(spec: str, name: str, names: Sequence[str],
                  inputs: Sequence[torch.Tensor]):
    """Calls the operator with the parts of DTensors that this process has."""
    metadata = find(spec)._describe(name)
    rule = find_rule(spec, metadata)
    is_rotation = has_gradient(spec, name)
    if is_rotation and rule is not None and rule.key_heads == 1:
        # The gradient of a key that all processes rotate is no sum of parts.
        rule = rule.drop({HEADS})

    def compute(tensors, parts: int):
        kernels = spec if rule is None or rule.find_local is None or parts == 1 else (
            register(rule.find_local(parts)))
        if is_rotation:
            return torch.ops.posenc.rope(*tensors, kernels, name)
        return torch.ops.posenc.call(tensors, kernels, name)

    return call_divided(name, names, rule, inputs, len(metadata["outputs"]), compute)


def _find_rope(spec: str, q: torch.Tensor, k: torch.Tensor) -> Kernels:
    """Returns the kernels of a call of `rope`. Without a config, inputs select them."""
    if spec.startswith(OPTIONS):
        return get_rope_kernels(*measure_heads(q, k), name_of(q.dtype),
                                *_read_options(spec))
    return find(spec)


@functools.lru_cache
def _read_options(spec: str) -> list:
    return json.loads(spec.removeprefix(OPTIONS))


# The inputs of `rope` without a config, as metadata describes those with one.
_ROPE_INPUTS = [{"name": "q", "shape": ["batch", "tokens", "heads", "channels"]},
                {"name": "k", "shape": ["batch", "tokens", "key_heads", "channels"]},
                {"name": "positions", "shape": ["batch", "tokens"]}]


def _find_inputs(spec: str, name: str) -> list[dict]:
    """Returns the metadata of the inputs of a function."""
    return _ROPE_INPUTS if spec.startswith(OPTIONS) else (
        find(spec)._describe(name)["inputs"])


def _is_length_dependent(spec: str, name: str) -> bool:
    if spec.startswith(OPTIONS):
        _, scaling, *_ = _read_options(spec)
        return is_length_dependent_scaling(scaling)
    return is_length_dependent(spec, name)


def innermost(tensor: torch.Tensor) -> torch.Tensor:
    """Kernels take any strides but those of the last dimension, which must be 1."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


# ===----------------------------------------------------------------------===#
# Calls
# ===----------------------------------------------------------------------===#

_library = torch.library.Library("posenc", "FRAGMENT")
for _schema in (
        "rope(Tensor q, Tensor k, Tensor positions, str kernels, str function) "
        "-> (Tensor, Tensor)",
        "call(Tensor[] inputs, str kernels, str function) -> Tensor[]"):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))


def _implement(name: str, *keys: str) -> Callable:
    """Registers a kernel of an operator for dispatch keys."""
    def decorate(function):
        for key in keys:
            _library.impl(name, function, key)
        return function

    return decorate


def _compute(method: Callable, inputs: Sequence[torch.Tensor]):
    """Calls a method with tensors whose derivatives are the affair of other rules."""
    if is_in_forward_mode():
        inputs = [tensor.detach() for tensor in inputs]
    with torch.no_grad():
        return method(*[innermost(tensor) if tensor.dim() else tensor
                        for tensor in inputs])


@_implement("rope", "CompositeExplicitAutograd")
def _(q, k, positions, kernels, function):
    return _compute(_find_rope(kernels, q, k)[function], (q, k, positions))


@_implement("call", "CompositeExplicitAutograd")
def _(inputs, kernels, function):
    results = _compute(find(kernels)[function], inputs)
    return list(results) if isinstance(results, tuple) else [results]


def _check_devices(function: str, arguments: Sequence[dict],
                   inputs: Sequence[torch.Tensor]) -> None:
    """Raises an error for tensors on several devices. Otherwise PyTorch would take the
    shape of results for the results if one tensor is on the device 'meta'."""
    device = inputs[0].device
    for argument, tensor in zip(arguments, inputs):
        if tensor.device != device:
            raise Error(f"{function}: {argument['name']} is on the device "
                        f"'{tensor.device}', but {arguments[0]['name']} is on "
                        f"'{device}': move them to one device")


@torch.library.register_fake("posenc::rope", lib=_library)
def _(q, k, positions, kernels, function):
    _check_devices(function, _ROPE_INPUTS, (q, k, positions))
    return (torch.empty(q.shape, dtype=q.dtype, device=q.device),
            torch.empty(k.shape, dtype=k.dtype, device=k.device))


@torch.library.register_fake("posenc::call", lib=_library)
def _(inputs, kernels, function):
    metadata = find(kernels)._describe(function)
    _check_devices(function, metadata["inputs"], inputs)
    sizes: dict[str, Any] = {}
    for tensor, argument in zip(inputs, metadata["inputs"]):
        if tensor.dim() != len(argument["shape"]):
            raise Error(f"{function}: {argument['name']} has {tensor.dim()} dimensions, "
                        f"expected {len(argument['shape'])}")
        for dim, size in enumerate(argument["shape"]):
            if isinstance(size, str) and size.isidentifier():
                sizes.setdefault(size, tensor.shape[dim])

    def find_size(size: int | str):
        # Elements are unknown while PyTorch traces, so equal sizes are one new symbol.
        if size not in sizes and find_elements([size]):
            sizes[str(size)] = torch.library.get_ctx().new_dynamic_size()
        return sizes[size] if size in sizes else evaluate(size, sizes, torch.sym_min,
                                                          torch.sym_max)

    return [
        torch.empty([find_size(size) for size in output["shape"]],
                    dtype=getattr(torch, FRAMEWORK_NAMES[output["dtype"]]),
                    device=inputs[0].device)
        for output in metadata["outputs"]]


# ===----------------------------------------------------------------------===#
# Derivatives
# ===----------------------------------------------------------------------===#

# The kernel of an operator for the dispatch key Autograd is a function of autograd, of
# which torch.func applies one for each of its transformations.


@contextlib.contextmanager
def _below_autograd():
    """For the call of an operator from its own kernel for Autograd. The gradients of
    further transformations are recorded."""
    with (torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True),
          torch._C._AutoDispatchBelowAutograd()):
        yield


def _fill_zeros(tensors: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """Returns zeros in place of None. Not all of the tensors are None."""
    given = next(tensor for tensor in tensors if tensor is not None)
    return [given.new_zeros(shape) if tensor is None else tensor
            for tensor, shape in zip(tensors, shapes)]


class _RopeForward:
    """`rope`, which is linear in q and k."""

    @staticmethod
    def forward(q, k, positions, kernels, function):
        with _below_autograd():
            return torch.ops.posenc.rope(q, k, positions, kernels, function)

    @staticmethod
    def setup_context(ctx, inputs, output):
        *both, positions, ctx.kernels, ctx.function = inputs
        ctx.shapes = [tensor.shape for tensor in both]
        # Zeros that autograd makes are no DTensors.
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(positions)
        ctx.save_for_forward(positions)

    @staticmethod
    def backward(ctx, q_gradient, k_gradient):
        # A rotation by the angles of position p, times the factor of the scaling, is
        # transposed by the angles of -p and the same factor.
        (positions,) = ctx.saved_tensors
        if _is_length_dependent(ctx.kernels, ctx.function):
            raise Error(f"{ctx.function}: {LENGTH_WITHOUT_GRADIENT}")
        if q_gradient is None and k_gradient is None:
            return None, None, None, None, None
        q_gradient, k_gradient = torch.ops.posenc.rope(
            *_fill_zeros((q_gradient, k_gradient), ctx.shapes), -positions, ctx.kernels,
            ctx.function)
        return q_gradient, k_gradient, None, None, None

    @staticmethod
    def jvp(ctx, q_tangent, k_tangent, *others):
        (positions,) = ctx.saved_tensors
        return torch.ops.posenc.rope(
            *_fill_zeros((q_tangent, k_tangent), ctx.shapes), positions, ctx.kernels,
            ctx.function)


class CallForward:
    """`call`, which has no derivatives."""

    @staticmethod
    def forward(kernels, function, *inputs):
        with _below_autograd():
            return tuple(torch.ops.posenc.call(list(inputs), kernels, function))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.function = inputs[1]

    @staticmethod
    def backward(ctx, *gradients):
        raise Error(f"{ctx.function}: has no gradient: call it under torch.no_grad(), "
                    "or detach its inputs")

    @staticmethod
    def jvp(ctx, *tangents):
        raise Error(f"{ctx.function}: an input has a tangent, and the function has no "
                    "derivative in forward mode")


def make_function(forward: type) -> Callable:
    """Returns a function of autograd, for calls within transformations of torch.func
    and for others."""
    members = {name: staticmethod(getattr(forward, name))
               for name in ("forward", "setup_context", "backward", "jvp")}
    plain: Any = type(forward.__name__, (torch.autograd.Function,), members)
    single: Any = type(
        forward.__name__, (torch.autograd.function._SingleLevelFunction,), members)

    def apply(*arguments):
        if not torch._C._are_functorch_transforms_active():
            return plain.apply(*arguments)
        with enable_single_level_autograd_function():
            return single.apply(*arguments)

    return apply


_apply_rope = make_function(_RopeForward)
_apply_call = make_function(CallForward)


def _needs_derivative(tensors: Iterable[torch.Tensor]) -> bool:
    return is_in_forward_mode() or (
        torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))


@_implement("rope", "Autograd")
def _(q, k, positions, kernels, function):
    if _needs_derivative((q, k)):
        return _apply_rope(q, k, positions, kernels, function)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.posenc.rope(q, k, positions, kernels, function)


@_implement("call", "Autograd")
def _(inputs, kernels, function):
    if _needs_derivative(inputs):
        return list(_apply_call(kernels, function, *inputs))
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.posenc.call(inputs, kernels, function)


# ===----------------------------------------------------------------------===#
# DTensors
# ===----------------------------------------------------------------------===#


@torch.compiler.assume_constant_result
def prepare_sharding() -> None:
    """Tells PyTorch how operators divide DTensors, if it has any."""
    if "torch.distributed.tensor" in sys.modules:
        register_rope(_is_length_dependent, OPTIONS)


# ===----------------------------------------------------------------------===#
# vmap
# ===----------------------------------------------------------------------===#


def _map(count: int, axes: Sequence[int | None], batch_axes: Sequence[int | None],
         result_axes: Sequence[int | None], tensors: Sequence[torch.Tensor],
         call: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]) -> list:
    """Returns the results of `count` calls, mapped along their first dimension. `axes`
    are the mapped dimensions of the tensors, and `batch_axes` and `result_axes` those
    of the batch in a call, if all results are computed for each element on its own."""
    if None in result_axes or any(
            axis is not None and batch_axis is None
            for axis, batch_axis in zip(axes, batch_axes)):
        calls = [call([tensor if axis is None else tensor.select(axis, number)
                       for tensor, axis in zip(tensors, axes)])
                 for number in range(count)]
        return [torch.stack(results) for results in zip(*calls)]
    merged = []
    for tensor, axis, batch_axis in zip(tensors, axes, batch_axes):
        if batch_axis is not None:
            tensor = (tensor.expand(count, *tensor.shape) if axis is None
                      else tensor.movedim(axis, 0))
            tensor = tensor.movedim(0, batch_axis).flatten(batch_axis, batch_axis + 1)
        merged.append(tensor)
    return [result.unflatten(axis, (count, result.shape[axis] // count)).movedim(axis, 0)
            for result, axis in zip(call(merged), result_axes) if axis is not None]


def _find_batches(kernels: str, function: str, arguments: Sequence[dict]) -> list:
    """Returns the dimension of each argument that is the batch; None for all if results
    depend on more than one element."""
    if kernels.startswith(OPTIONS):
        is_batched = not _is_length_dependent(kernels, function)
    else:
        is_batched = is_computed_by_element(kernels, function)
    return [find_batch(argument) if is_batched else None for argument in arguments]


@torch.library.register_vmap("posenc::rope", lib=_library)
def _(info, axes, q, k, positions, kernels, function):
    batch_axes = _find_batches(kernels, function, _find_inputs(kernels, function))
    results = _map(
        info.batch_size, axes[:3], batch_axes[:3], batch_axes[:2], (q, k, positions),
        lambda tensors: torch.ops.posenc.rope(*tensors, kernels, function))
    return tuple(results), (0, 0)


@torch.library.register_vmap("posenc::call", lib=_library)
def _(info, axes, inputs, kernels, function):
    metadata = find(kernels)._describe(function)
    results = _map(
        info.batch_size, axes[0], _find_batches(kernels, function, metadata["inputs"]),
        _find_batches(kernels, function, metadata["outputs"]), inputs,
        lambda tensors: torch.ops.posenc.call(list(tensors), kernels, function))
    return results, [0] * len(results)


# ===----------------------------------------------------------------------===#
# Autocast
# ===----------------------------------------------------------------------===#


_autocast = (torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
             | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA))


def _convert(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() and dtype.is_floating_point \
        else tensor


def _convert_all(kernels: str, function: str,
                 tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Converts numbers to the types of a function's inputs."""
    return [_convert(tensor, getattr(torch, FRAMEWORK_NAMES[argument["dtype"]]))
            for tensor, argument in zip(tensors, _find_inputs(kernels, function))]


# Kernels have types. Autocast converts what they are given to these, and without a
# config to the wider one.
@_implement("rope", "AutocastCPU", "AutocastCUDA")
def _(q, k, positions, kernels, function):
    with torch._C._ExcludeDispatchKeyGuard(_autocast):
        if kernels.startswith(OPTIONS):
            dtype = torch.promote_types(q.dtype, k.dtype)
            q, k = _convert(q, dtype), _convert(k, dtype)
        else:
            q, k, positions = _convert_all(kernels, function, (q, k, positions))
        return torch.ops.posenc.rope(q, k, positions, kernels, function)


@_implement("call", "AutocastCPU", "AutocastCUDA")
def _(inputs, kernels, function):
    with torch._C._ExcludeDispatchKeyGuard(_autocast):
        return torch.ops.posenc.call(
            _convert_all(kernels, function, inputs), kernels, function)

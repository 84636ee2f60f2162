# ===- _jax.py - calls under the transformations of JAX --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls with inputs that JAX traces: under jit, vmap and grad.

The package jax_tvm_ffi makes a function of TVM FFI a target of XLA's custom calls; see
_jax_targets.py. Here, such a call gets a rule for vmap, which merges the mapped axis with
the batch, and one for grad, which rotations have. JAX without 64-bit types has positions
of 32 bits; they are widened where the target is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._cuda import check_devices
from ._dtypes import FRAMEWORK_NAMES
from ._errors import Error
from ._frameworks import find_backend
from ._functions import read_number
from ._jax_partition import partition
from ._jax_targets import bind, register
from ._sharding import Rule, find_rule
from ._sizes import evaluate, find_elements
from ._spec import (
    LENGTH_WITHOUT_GRADIENT, find_batch, has_gradient, is_computed_by_element,
    is_length_dependent)


def call(function, inputs: Sequence, out):
    """Calls a function of `Kernels` with inputs of JAX that are traced, or that have
    32 bits where 64 are expected."""
    if not any(isinstance(value, jax.core.Tracer) for value in inputs):
        return function.method(None, *_widen_all(function, inputs), out=out)
    if out is not None:
        raise Error(f"{function.name}: an input is traced by JAX, so results cannot be "
                    "written to arrays: leave out `out`")
    return _call_target(function, inputs)


def call_on_cuda(function, inputs: Sequence, out):
    """Calls a function of `Kernels` with arrays of JAX on a CUDA device, of which the
    first is one. XLA allocates results and enqueues the kernels, and nothing waits."""
    if out is not None:
        raise Error(f"{function.name}: results are arrays of JAX, which are immutable: "
                    "leave out `out`")
    # Arrays of NumPy are copied to the device.
    check_devices(function, [value if isinstance(value, jax.Array) else None
                             for value in inputs], function.inputs)
    return _call_target(function, inputs)


def _call_target(function, inputs: Sequence):
    numbers, given = [], []
    for value, argument in zip(inputs, function.inputs):
        what = f"{function.name}: {argument['name']}"
        if isinstance(value, jax.core.Tracer) and argument["kind"] != "tensor":
            raise Error(f"{what} is traced by JAX, but numbers are a part of the compiled "
                        "call: pass a number of Python, or use static_argnums of jax.jit")
        if argument["kind"] != "tensor":
            numbers.append((argument["name"], read_number(value, what, argument)))
        elif value is not None or not argument.get("shape_only"):
            given.append(_to_jax(what, argument, value))
    is_given = tuple(argument["kind"] == "tensor" and value is not None
                     for value, argument in zip(inputs, function.inputs))
    with jax.enable_x64(True):
        results = _build(function, is_given, tuple(numbers))(*vary(given, given))
    return results[0] if len(results) == 1 else results


# ===----------------------------------------------------------------------===#
# Inputs
# ===----------------------------------------------------------------------===#


def _find_axes(array) -> set:
    """Returns the axes of the mesh of shard_map along which an array differs."""
    kind = jax.typeof(array)
    # Versions of JAX name it differently.
    return set(kind.mat.varying if hasattr(kind, "mat") else getattr(kind, "vma", ()))


def vary(arrays: Sequence, like: Sequence) -> list:
    """Returns arrays that shard_map takes for different along the axes of the mesh along
    which one of `like` is, which JAX does not know of results of a custom call. In the
    other direction, gradients are summed along these axes."""
    axes = set().union(*map(_find_axes, like))
    if not axes:
        return list(arrays)
    cast = (functools.partial(jax.lax.pcast, to="varying") if hasattr(jax.lax, "pcast")
            else getattr(jax.lax, "pvary"))
    missing = [tuple(axes - _find_axes(array)) for array in arrays]
    return [cast(array, more) if more else array for array, more in zip(arrays, missing)]


def _is_narrow(argument: dict, value: jax.Array) -> bool:
    """Whether an array has integers of 32 bits where the kernel takes 64."""
    return (FRAMEWORK_NAMES[argument["dtype"]] == "int64" and value.dtype == np.int32)


def _widen(argument: dict, value: jax.Array) -> jax.Array:
    if not _is_narrow(argument, value):
        return value
    with jax.enable_x64(True):
        return jax.lax.convert_element_type(value, np.int64)


def _widen_all(function, inputs: Sequence) -> list:
    """Widens inputs that are not traced."""
    wide = list(inputs)
    for index in function.wide_inputs:
        argument, value = function.inputs[index], inputs[index]
        if not isinstance(value, jax.Array) or not _is_narrow(argument, value):
            continue
        # NumPy takes 2 µs and JAX 100, but results are arrays like the first input.
        wide[index] = (np.asarray(value).astype(np.int64) if index
                       else _widen(argument, value))
    return wide


def _to_jax(what: str, argument: dict, value) -> jax.Array:
    """Returns an array of JAX of the type that an argument has."""
    backend = find_backend(value, what)
    if not isinstance(value, (jax.Array, np.ndarray)):
        raise Error(f"{what} is an array of {backend.name}, but another input is traced "
                    "by JAX: pass arrays of JAX or NumPy")
    expected, actual = FRAMEWORK_NAMES[argument["dtype"]], str(value.dtype)
    # Kernels take bytes for types that not all frameworks have.
    is_byte = actual == "uint8" and (expected == "bool" or "float8" in expected)
    is_narrow = isinstance(value, jax.Array) and _is_narrow(argument, value)
    if actual != expected and not is_byte and not is_narrow:
        raise Error(f"{what} has elements of type {actual}, expected {expected}")
    if isinstance(value, jax.Array):
        return value
    # An array of JAX of its own: JAX mixes up the types of one array of NumPy that is
    # both a constant with 64-bit types and an input without them.
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return jnp.array(value)


class _Shapes:
    """Checks the shapes of inputs, with the kernel's texts, and infers the others."""

    def __init__(self, function, given: Sequence[dict], arrays: Sequence,
                 numbers: Sequence[tuple[str, Any]]):
        self.name, self.sizes = function.name, dict(numbers)
        found = dict.fromkeys(self.sizes, "")  # where each size is from
        for array, argument in zip(arrays, given):
            what = f"{function.name}: {argument['name']}"
            if array.ndim != len(argument["shape"]):
                raise Error(f"{what} has {array.ndim} dimensions, expected "
                            f"{len(argument['shape'])}")
            for dim, size in enumerate(argument["shape"]):
                if isinstance(size, str) and size.isidentifier() and size not in found:
                    found[size] = f"dimension {dim} of {argument['name']}"
                    self.sizes[size] = array.shape[dim]
        for array, argument in zip(arrays, given):
            for dim, size in enumerate(argument["shape"]):
                expected = self.evaluate(size)
                if array.shape[dim] != expected:
                    other = f"but {found[size]} is" if found.get(size) else "expected"
                    raise Error(f"{function.name}: dimension {dim} of {argument['name']} "
                                f"is {array.shape[dim]}, {other} {expected}")

    def evaluate(self, size: int | str):
        """Returns the value of a size of the metadata."""
        for name in find_elements([size]):
            raise Error(f"{self.name}: a result has the size {size}, but JAX traces "
                        f"{name}, whose element is unknown then: call the function "
                        "outside of jax.jit")
        return evaluate(size, self.sizes)

    def struct(self, argument: dict) -> jax.ShapeDtypeStruct:
        """Returns the shape and the type of an argument."""
        return jax.ShapeDtypeStruct(tuple(map(self.evaluate, argument["shape"])),
                                    jnp.dtype(FRAMEWORK_NAMES[argument["dtype"]]))


# ===----------------------------------------------------------------------===#
# Calls of targets
# ===----------------------------------------------------------------------===#


def _stand_in(function, argument: dict, shapes: _Shapes) -> jax.Array:
    """Returns an array for None, where only the shape is read."""
    try:
        struct = shapes.struct(argument)
    except ValueError:  # No other input has such a size.
        find_backend(None, f"{function.name}: {argument['name']}")
        raise
    return jnp.zeros(struct.shape, struct.dtype)


def _make_call(function, is_given: tuple[bool, ...],
               numbers: tuple[tuple[str, Any], ...]) -> Callable:
    """Returns the call of a function's target, of the arrays that are given."""
    register(function)  # A program that was exported for CPUs may have its name.
    tensors = [a for a in function.inputs if a["kind"] == "tensor"]
    given = [a for a, is_there in zip(function.inputs, is_given) if is_there]
    dtypes = {a["name"]: np.float64 if a["dtype"].startswith("f") else np.int64
              for a in function.inputs if a["kind"] != "tensor"}
    attributes = {name: dtypes[name](value) for name, value in numbers}

    def call_target(*arrays):
        with jax.enable_x64(True):
            shapes = _Shapes(function, given, arrays, numbers)
            operands = {a["name"]: _widen(a, x) for a, x in zip(given, arrays)}
            for argument in tensors:
                if argument["name"] not in operands:
                    operands[argument["name"]] = _stand_in(function, argument, shapes)
            outputs = bind(
                function, [operands[a["name"]] for a in tensors],
                tuple(map(shapes.struct, function.outputs)),
                map(shapes.evaluate, function.sizes), attributes)
        return tuple(vary(outputs, arrays))

    rule = find_rule(function.spec, function.metadata)
    if rule is None:
        return call_target
    rule = rule._replace(inputs=tuple(
        dims for dims, is_there in zip(rule.inputs, is_given) if is_there))
    return partition(call_target, rule,
                     lambda count: _make_local(function, rule, count, is_given, numbers))


def _make_local(function, rule: Rule, count: int, is_given: tuple[bool, ...],
                numbers: tuple[tuple[str, Any], ...]) -> Callable:
    """Returns the call of the kernel for one of `count` equal parts of the heads."""
    assert rule.find_local is not None
    method = rule.find_local(count)[function.name]
    known = dict(numbers)

    def call_local(*arrays):
        rest = iter(arrays)
        results = method(*(next(rest) if is_there else known.get(argument["name"])
                           for argument, is_there in zip(function.inputs, is_given)))
        return results if isinstance(results, tuple) else (results,)

    return call_local


# ===----------------------------------------------------------------------===#
# vmap and grad
# ===----------------------------------------------------------------------===#


def _is_batched(function) -> bool:
    """Whether results are computed for each element of the batch on its own."""
    return (function.spec is not None
            and is_computed_by_element(function.spec, function.name)
            and all(find_batch(output) is not None for output in function.outputs))


def _map_batch(call_target: Callable, axes: Sequence[int | None], result_axes: Sequence,
               count: int, is_mapped: Sequence[bool], arrays: Sequence) -> tuple:
    """Calls once for `count` calls, whose batches are concatenated."""
    merged = []
    for array, is_one_mapped, axis in zip(arrays, is_mapped, axes):
        if axis is not None:
            if not is_one_mapped:
                array = jnp.broadcast_to(array, (count, *array.shape))
            array = jnp.moveaxis(array, 0, axis)
            shape = array.shape
            batch = shape[axis + 1]
            array = array.reshape(*shape[:axis], count * batch, *shape[axis + 2:])
        merged.append(array)
    results = []
    for array, axis in zip(call_target(*merged), result_axes):
        shape = array.shape
        array = array.reshape(*shape[:axis], count, batch, *shape[axis + 1:])
        results.append(jnp.moveaxis(array, axis, 0))
    return tuple(results)


def _map_one_by_one(call_target: Callable, is_mapped: Sequence[bool],
                    arrays: Sequence) -> tuple:
    def call_one(mapped):
        rest = iter(mapped)
        return call_target(*(next(rest) if is_one_mapped else array
                             for array, is_one_mapped in zip(arrays, is_mapped)))

    return jax.lax.map(call_one, [array for array, is_one_mapped in zip(arrays, is_mapped)
                                  if is_one_mapped])


@functools.cache
def _build(function, is_given: tuple[bool, ...],
           numbers: tuple[tuple[str, Any], ...]) -> Callable:
    """Returns a function of the arrays that are given, with rules for vmap and grad."""
    call_target = jax.custom_batching.custom_vmap(
        _make_call(function, is_given, numbers))
    given = [a for a, is_there in zip(function.inputs, is_given) if is_there]
    axes = [find_batch(argument) for argument in given]
    result_axes = [find_batch(output) for output in function.outputs]
    is_batched = _is_batched(function)

    @call_target.def_vmap
    def map_calls(count: int, is_mapped: Sequence[bool], *arrays):
        with jax.enable_x64(True):
            if is_batched and all(axis is not None for axis, is_one_mapped
                                  in zip(axes, is_mapped) if is_one_mapped):
                results = _map_batch(call_target, axes, result_axes, count, is_mapped,
                                     arrays)
            else:
                results = _map_one_by_one(call_target, is_mapped, arrays)
        return results, (True,) * len(results)

    @jax.custom_vjp
    def differentiable(*arrays):
        return call_target(*arrays)

    def forward(*arrays):
        if not has_gradient(function.spec, function.name):
            raise Error(f"{function.name}: has no gradient: apply jax.lax.stop_gradient "
                        "to its inputs")
        if is_length_dependent(function.spec, function.name):
            raise Error(f"{function.name}: {LENGTH_WITHOUT_GRADIENT}")
        with jax.enable_x64(True):
            return differentiable(*arrays), arrays[2]

    def backward(positions, gradients):
        # A rotation by the angles of position p, times the factor of the scaling, is
        # transposed by the angles of -p and the same factor.
        with jax.enable_x64(True):
            return *differentiable(*gradients, jax.lax.neg(positions)), None

    differentiable.defvjp(forward, backward)
    return differentiable

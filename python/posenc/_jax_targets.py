# ===- _jax_targets.py - custom calls of XLA on CPUs and CUDA devices ------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A primitive of JAX that is the call of a compiled function.

It becomes a custom call of XLA when JAX lowers it for a platform: on CPUs, one of the
function itself, and on CUDA, one of the function compiled for the architecture of the
devices. XLA allocates the workspace, as a further result. On CUDA, kernels are put into
XLA's stream, and nothing waits for it, so XLA may capture calls in command buffers.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import NamedSharding, PartitionSpec

from ._errors import Error
from ._fork import Lock
from ._functions import Function

Results = tuple[jax.ShapeDtypeStruct, ...]

# ===----------------------------------------------------------------------===#
# Targets
# ===----------------------------------------------------------------------===#

_lock = Lock()
_targets: dict[Any, str] = {}
_loaded = itertools.count()
_library_names: dict[Function, str] = {}  # of functions of loaded libraries


def can_call(function: Function) -> bool:
    """Whether there is the package that makes targets, and one can be made."""
    try:
        import jax_tvm_ffi  # type: ignore[import-untyped] # noqa: F401
    except ImportError:
        return False
    return _order_arguments(function) is not None


def _name_target(function: Function, arch: str) -> str:
    text = function.spec
    if text is None:
        if function not in _library_names:
            _library_names[function] = f"library {next(_loaded)}"
        text = _library_names[function]
    digest = hashlib.sha256(f"{text} {function.name}".encode()).hexdigest()
    return f"posenc_{function.name}_{arch and arch + '_'}{digest[:16]}"


def register(function: Function, code: Function | None = None, arch: str = "",
             platform: str = "cpu") -> str:
    """Returns the name of the target that is a function, compiled as `code` for an
    architecture of CUDA. It is the same in another process, unless the function is of a
    loaded library. The code of a target is kept."""
    try:
        import jax_tvm_ffi
    except ImportError:
        raise Error(f"{function.name}: an input is traced by JAX, and a call under "
                    "jax.jit needs the package jax-tvm-ffi: install it") from None
    order = _order_arguments(function)
    if order is None:
        raise Error(f"{function.name}: JAX cannot pass a number between arrays: call it "
                    "outside of jax.jit")
    key = (function.spec or function, function.name, arch, platform)
    with _lock:
        if key not in _targets:
            name = _name_target(function, arch)
            try:
                jax_tvm_ffi.register_ffi_target(
                    name, (code or function).call, order, platform=platform,
                    allow_cuda_graph=platform == "gpu")
            except RuntimeError as error:
                raise Error(f"{function.name}: cannot make a target of XLA: "
                            f"{error}") from None
            _targets[key] = name
        return _targets[key]


def _order_arguments(function: Function) -> list[str] | None:
    """Describes the arguments of a target: arrays, and numbers as attributes. None if a
    number is between arrays, which a target cannot have."""
    order: list[str] = []
    for argument in function.inputs:
        if argument["kind"] != "tensor":
            order.append(f"attrs.{argument['name']}")
        elif order[-1:] == ["args"]:
            continue
        elif "args" in order:
            return None
        else:
            order.append("args")
    return [*order, "rets"]


# ===----------------------------------------------------------------------===#
# The primitive
# ===----------------------------------------------------------------------===#

_primitive = Primitive("posenc_call")
_primitive.multiple_results = True


def bind(function: Function, operands: Sequence, results: Results, sizes: Sequence,
         attributes: dict[str, Any]) -> list:
    """Calls a function of arrays and of numbers, its attributes. `sizes` are those that
    the size of its workspace is computed from."""
    return _primitive.bind(*operands, function=function, results=results,
                           sizes=tuple(sizes), attributes=tuple(attributes.items()))


@_primitive.def_abstract_eval
def _infer(*_, results: Results, **__):
    mesh = jax.sharding.get_abstract_mesh()
    return [jax.core.ShapedArray(one.shape, one.dtype) if mesh.empty else
            jax.core.ShapedArray(one.shape, one.dtype, sharding=NamedSharding(
                mesh, PartitionSpec(*[None] * len(one.shape)))) for one in results]


@functools.lru_cache(1024)
def _jit(**parameters):
    return jax.jit(functools.partial(_primitive.bind, **parameters))


@_primitive.def_impl
def _run(*operands, **parameters):
    return _jit(**parameters)(*operands)


def _lower(context, operands: Sequence, target: str, code: Function, sizes: tuple,
           attributes: tuple) -> list:
    """Emits the custom call. The workspace is its last result."""
    results = list(context.avals_out)
    if code.workspace_size is not None:
        if not all(isinstance(size, int) for size in sizes):
            raise Error(f"{code.name}: the size of its workspace depends on symbolic "
                        "sizes: export it for sizes that are numbers")
        results.append(jax.core.ShapedArray((code.workspace_size(*sizes),), np.uint8))
    rule = jax.ffi.ffi_lowering(target)
    values = rule(context.replace(avals_out=results), *operands, **dict(attributes))
    return list(values)[:len(context.avals_out)]


def _lower_for_cpu(context, *operands, function: Function, sizes, attributes, **_):
    return _lower(context, operands, register(function), function, sizes, attributes)


def _list_devices(context) -> list[jax.Device]:
    """Returns the CUDA devices of this process that a module is lowered for; all of them
    if it does not say."""
    assigned = getattr(context.module_context.axis_context, "device_assignment", None)
    process = jax.process_index()
    devices = [one for one in assigned or ()
               if one.platform in ("gpu", "cuda") and one.process_index == process]
    try:
        return devices or jax.local_devices(backend="cuda")
    except RuntimeError:  # JAX has no such devices.
        return []


def _lower_for_cuda(context, *operands, function: Function, sizes, attributes, **_):
    if function.has_cuda_code:
        code, arch = function.compile_for_cuda(None), ""
    else:
        targets = {function.find_cuda_target(one.local_hardware_id or 0): one
                   for one in _list_devices(context)}
        if not targets:
            raise Error(
                f"{function.name}: cannot be lowered for CUDA, as JAX has no CUDA device "
                "here whose architecture it would be compiled for: name it, such as "
                'posenc.compile(..., target=["host", "cuda:sm_90a"])')
        if len(targets) > 1:
            raise Error(
                f"{function.name}: the CUDA devices have different architectures, "
                f"{' and '.join(sorted(targets))}: compile for all of them, as `target` "
                "of posenc.compile")
        [target] = targets
        code, arch = function.compile_for_cuda(target), target.removeprefix("cuda:")
    target = register(function, code, arch, "gpu")
    return _lower(context, operands, target, code, sizes, attributes)


def _refuse_platform(context, *_, function: Function, **__):
    platforms = context.platforms or context.module_context.platforms
    raise Error(f"{function.name}: there is no code for the platform "
                f"'{', '.join(platforms)}' of JAX, but for CPUs and CUDA devices")


mlir.register_lowering(_primitive, _refuse_platform)
mlir.register_lowering(_primitive, _lower_for_cpu, platform="cpu")
mlir.register_lowering(_primitive, _lower_for_cuda, platform="cuda")

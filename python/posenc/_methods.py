# ===- _methods.py - functions as methods ----------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Methods of the functions of a kernel library.

A method is generated from the metadata: its signature, its docstring, the
allocation of results and the call. Generated code has no loops over arguments. The
same checks in a plain function, with loops, cost more processor time per call of `rope` of
one token: in place 1.1 us for NumPy, beside 2.1, and 1.6 us for PyTorch, beside 3.9; with
new results 3.1 and 1.3 us (medians of 201 pairs of 500 calls).
"""

from __future__ import annotations

import ctypes
import keyword
import textwrap
from collections.abc import Callable
from typing import Any

import tvm_ffi

from . import _later  # noqa: F401 (generated code calls it)
from ._array import Array
from ._dtypes import DLPACK_CODES, FRAMEWORK_NAMES
from ._errors import Error
from ._frameworks import NUMPY, backends, find_backend, widen
from ._functions import FAILURES, Function, describe_shape
from ._once import once
from ._source import compile_for_cuda
from ._sizes import name_element, read_element, translate
from ._workspaces import Workspaces


def _write_doc(function: dict) -> str:
    text = function.get("doc") or f"The function `{function['name']}`."
    lines = [*textwrap.wrap(text, 80), ""]
    for argument in function["inputs"]:
        note = ", only its shape is read" if argument.get("shape_only") else ""
        layout = argument.get("layout")
        note += f", packed ({layout})" if layout else ""
        lines.append(f"{argument['name']}: {describe_shape(argument)}{note}")
    lines += ["", "Returns:" if function["outputs"] else "Returns nothing."]
    for argument in function["outputs"]:
        partner = argument.get("in_place")
        note = f"; `out` may be {partner} (in place)" if partner else ""
        lines.append(f"    {argument['name']}: {describe_shape(argument)}{note}")
    return "\n".join(lines)


# The names that generated code uses besides those of arguments.
_LOCALS = {"self", "out", "backend", "error", "results", "others", "workspace_"}
_GLOBALS = {"Array", "_backends", "_find", "_numpy", "_function", "_call", "_failures",
            "_workspace", "_take", "_give", "_widen", "_element"}
_BUILTINS = {"type", "min", "max", "int", "float", "tuple", "Exception", "TypeError",
             "ValueError", "AttributeError", "IndexError"}


class Names:
    """Unique Python names."""

    def __init__(self, taken: set[str]):
        self.taken = set(taken)

    def add(self, name: str) -> str:
        # Python would read some other letters as ASCII ones.
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in name) or "_"
        if name[0].isdigit() or name.startswith("__"):
            name = "a" + name
        while name in self.taken or keyword.iskeyword(name):
            name += "_"
        self.taken.add(name)
        return name


def name_parameters(function: dict, names: Names | None = None) -> list[str]:
    """Returns the parameters of a function's method."""
    names = names or Names(_LOCALS | _GLOBALS | _BUILTINS)
    return [names.add(argument["name"]) for argument in function["inputs"]]


def _generate(function: dict, identifier: str, on_cuda: bool) -> str:
    """Returns the source of a method for arrays on the CPU or on a CUDA device."""
    names = Names(_LOCALS | _GLOBALS | _BUILTINS)
    inputs = list(zip(name_parameters(function, names), function["inputs"]))
    tensors = [(name, a) for name, a in inputs if a["kind"] == "tensor"]
    parameters = [name + (": Array" if a["kind"] == "tensor" else
                          ": float" if a["dtype"].startswith("f") else ": int")
                  for name, a in inputs]
    count = len(function["outputs"])
    result = "Array" if count == 1 else f"tuple[{', '.join(['Array'] * count) or '()'}]"
    results = [names.add(output["name"]) for output in function["outputs"]]
    everything = ", ".join([name for name, _ in inputs] + results)
    listed = "".join(name + ", " for name, _ in inputs)
    listed_results = "".join(name + ", " for name in results)

    # The expression of each size: where it is a dimension, or a scalar.
    sizes = {argument["name"]: name for name, argument in inputs
             if argument["kind"] != "tensor"}
    sizes.update((name_element(argument["name"]), f"_element({name})")
                 for name, argument in tensors)
    shapes = []
    for name, argument in tensors:
        local = names.add(f"{name}_shape")
        used = False
        for dim, size in enumerate(argument["shape"]):
            if isinstance(size, str) and size.isidentifier() and size not in sizes:
                sizes[size] = f"{local}[{dim}]"
                used = True
        if used:
            shapes.append(f"{local} = {name}.shape")

    lines = [f"def {identifier}(self, {', '.join(parameters)}{',' if parameters else ''} "
             f"*, out: {result} | None = None) -> {result}:"]
    first = tensors[0][0] if tensors else ""
    if first:
        what = f"{function['name']}: {tensors[0][1]['name']}"
        known = "" if on_cuda else f"_backends.get(type({first})) or "
        lines.append(f"    backend = {known}_find({first}, {what!r})")
        lines += ["    if backend.check is not None and "
                  f"backend.check(_function, ({listed})):",
                  f"        return _function.call_other(({listed}), out)"]
        mixed = [f"type({name}) is not type({first})" for name, _ in tensors[1:]]
        if mixed:
            lines += [f"    if backend is _numpy and ({' or '.join(mixed)}):",
                      f"        _function.check_others(({listed}))"]
    else:
        lines.append("    backend = _numpy")
    lines += ["    if out is None:", "        try:"]
    # Results like inputs are allocated faster by some frameworks.
    like = [next((name for name, a in tensors if a["shape"] == output["shape"] and
                  a["dtype"] == output["dtype"]), None) for output in function["outputs"]]
    if None not in like and like:
        alike = [f"type({name}) is type({first})" for name in like if name != first]
        lines.append("            if "
                     + " and ".join(["backend.like is not None", *alike]) + ":")
        lines += [f"                {result} = backend.like({name})"
                  for result, name in zip(results, like)]
        lines.append("            else:")
        indent = "                "
    else:
        indent = "            "
    lines += [f"{indent}{line}" for line in shapes]
    for name, output in zip(results, function["outputs"]):
        dims = "".join(translate(size, sizes) + ", " for size in output["shape"])
        lines.append(f"{indent}{name} = backend.empty(({dims}), {output['dtype']!r})")
    if not results:
        lines.append("            pass")
    lines += ["        except Exception as error:",
              f"            _function.explain(({listed}), error)",
              "    else:"]
    if count == 1:
        lines.append(f"        {results[0]} = out")
    else:
        lines += ["        try:", f"            {listed_results or 'results'}= out",
                  "        except (TypeError, ValueError):",
                  "            _function.refuse_outputs()"]
    # Outputs of the type of the first input need no check before the call.
    kinds = [f"type({name}) is not type({first})" for name in results] if first else []
    lines += [f"        if {' or '.join(['not backend.mutable'] + kinds)}:",
              f"            _function.check_outputs(({listed_results}))",
              "        elif backend.mark is not None:"]
    partners = {argument["name"]: name for name, argument in tensors}
    moved = [f"{name} is not {partners.get(output.get('in_place'))}"
             for name, output in zip(results, function["outputs"])]
    if moved:
        lines += [f"            if {' or '.join(moved)}:",
                  f"                backend.check_out(_function, ({listed_results}))"]
    lines.append(f"            backend.mark(({listed_results}))")
    call = everything
    allocate = "backend.scratch(%s)" if on_cuda else "_take(%s)"
    has_workspace = _find_workspace(function, on_cuda) is not None
    if has_workspace:
        # The sizes are those of the plain entry point.
        lines += ["    try:"] + [f"        {line}" for line in shapes]
        dims = ", ".join(translate(size, sizes) for size in function["sizes"])
        size = f"_workspace({dims})"
        lines += [f"        workspace_ = {allocate % size}",
                  "    except (AttributeError, IndexError) as error:",
                  f"        _function.explain(({listed}), error)"]
        call += ", workspace_"
    # Integers of 64 bits may be given as those of 32 bits.
    wide = [name for name, a in tensors
            if FRAMEWORK_NAMES[a["dtype"]] == "int64" and not a.get("shape_only")]
    if wide:
        lines.append("    try:")
        for name in wide:
            lines += [f"        if {name}.dtype is not backend.wide:",
                      f"            {name} = _widen({name})"]
        lines += ["    except AttributeError:  # The call says what it is.",
                  "        pass"]
    indent = "    "
    if not on_cuda and any(FRAMEWORK_NAMES[a["dtype"]] in DLPACK_CODES
                           for a in function["inputs"] + function["outputs"]):
        # NumPy exports no such types.
        lines += ["    if backend is _numpy:",
                  f"        others = _function.call_views(({call},), out)",
                  "        if others is not None:",
                  "            return others",
                  "    else:"]
        indent = "        "
    made = f"backend.run(_call, ({call},))" if on_cuda and first else f"_call({call})"
    lines += [f"{indent}try:", f"{indent}    {made}",
              f"{indent}except _failures as error:",
              f"{indent}    others = _function.retry(({call},), out, error)",
              f"{indent}    if others is not None:",
              f"{indent}        return others"]
    if has_workspace and not on_cuda:
        lines.append("    _give(workspace_)")
    if results:
        lines += ["    if out is None and backend.finish is not None:"]
        finished = ", ".join(f"backend.finish({name}, {output['dtype']!r})"
                             for name, output in zip(results, function["outputs"]))
        lines += [f"        return {finished}", f"    return {', '.join(results)}"]
    return "\n".join(lines) + "\n"


def _find_workspace(function: dict, on_cuda: bool) -> str | None:
    """Returns the symbol of the function that returns the size of the workspace."""
    return function.get("cuda_workspace" if on_cuda else "workspace")


def _make_workspace_size(address: int, count: int) -> Callable[..., int]:
    """Returns a function of the sizes of a call: the bytes of its workspace."""
    get_bytes = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(address)

    def measure(*sizes: int) -> int:
        size = get_bytes(*sizes)
        if size < 0:
            raise Error("the size of the workspace exceeds the address space")
        return size

    return measure


def make_method(function: dict, identifier: str, code, spec: str | None):
    """Returns the method of a function. Arrays on a CUDA device have another one, which
    is made when it is needed, of the same code or of code for the device."""
    @once
    def compile_for_device(target: str | None) -> Function:
        if target is None:
            return _make(function, identifier, code, spec)
        own, metadata = compile_for_cuda(spec, function["name"], target)
        return _make(metadata, identifier, own, spec)

    method = _make(function, identifier, code, spec, compile_for_device).method
    vars(method)[TRACED_INSTEAD] = make_traceable(spec, function["name"])
    return method


def _make(function: dict, identifier: str, code, spec: str | None,
          compile_for_device: Callable[[str | None], Function] | None = None) -> Function:
    """Makes a function and its method. Without `compile_for_device`, arrays are on CUDA
    devices."""
    on_cuda = compile_for_device is None
    call = tvm_ffi.Function.__from_extern_c__(code.symbol(function["tvm_ffi"]),
                                              keep_alive_object=code)
    support = Function(function, call, spec, compile_for_device)
    scope: dict[str, Any] = {
        "Array": Array, "_backends": backends, "_find": find_backend, "_numpy": NUMPY,
        "_widen": widen, "_element": read_element, "_function": support, "_call": call,
        "_failures": FAILURES}
    if on_cuda:
        from ._cuda import find_cuda_backend

        scope["_find"] = find_cuda_backend
    workspace = _find_workspace(function, on_cuda)
    if workspace:
        support.workspace_size = _make_workspace_size(
            code.symbol(workspace), len(function["sizes"]))
        workspaces = Workspaces()
        scope.update(_workspace=support.workspace_size, _take=workspaces.take,
                     _give=workspaces.give)
    source = _generate(function, identifier, on_cuda)
    # Annotations are to be objects, which help() prints without quotes.
    made: dict[str, Any] = {}
    exec(compile(source, f"<posenc {identifier}>", "exec", dont_inherit=True), scope,
         made)
    method = made[identifier]
    method.__module__ = "posenc"
    method.__qualname__ = f"Kernels.{identifier}"
    method.__doc__ = _write_doc(function)
    support.method = method
    return support


# torch.compile traces the function in this attribute of another one in its place.
TRACED_INSTEAD = "_torchdynamo_inline"


def make_traceable(spec: str | None, name: str) -> Callable:
    """Returns a method that torch.compile can trace: the call of an operator."""
    # PyTorch 2.11 reads the cells and defaults of this function from the method that it
    # stands for. So it has no cells, and the same defaults.
    source = f"""def call(self, *inputs, out=None, **named):
    return _later.load_operators().call({spec!r}, {name!r}, inputs, named, out)
"""
    made: dict[str, Any] = {}
    exec(compile(source, f"<posenc {name}>", "exec", dont_inherit=True), globals(), made)
    return made["call"]

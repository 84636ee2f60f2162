# ===- _kernels.py - compiled functions as methods -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Classes whose methods are the functions of a kernel library.

A method is generated from the metadata: its signature, its docstring, the
allocation of results and the call. Generated code has no loops over arguments,
so a call costs a few microseconds.
"""

from __future__ import annotations

import base64
import ctypes
import json
import keyword
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import tvm_ffi

from ._dtypes import DLPACK_CODES, FRAMEWORK_NAMES
from ._errors import Error
from ._frameworks import (
    NUMPY, backends, check_memory, find_backend, is_for_jax, view_arrays)
from ._sizes import translate


@runtime_checkable
class Array(Protocol):
    """An array of NumPy, PyTorch (on the CPU), JAX (on the CPU), or any other that
    implements DLPack. Its memory is not copied."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Array.__module__ = "posenc"  # It is printed by help().


class Kernels:
    """Compiled kernels: a method for each function.

    Arrays are of NumPy, PyTorch or JAX, on the CPU, and are not copied. Results are
    arrays of the framework of the first input, unless `out` has arrays for them.
    Methods may be called by several threads at the same time.
    """

    __module__ = "posenc"
    metadata: dict
    """The library's metadata: functions, signatures, targets, versions."""
    _functions: dict[str, Any] = {}
    _spec: str | None = None

    if TYPE_CHECKING:
        # Type checkers do not see the methods, which are made when compiling.
        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Returns a function by its name."""
        if name not in self._functions:
            raise Error(f"no function '{name}': there are "
                        f"{', '.join(self._functions) or 'none'}")
        return getattr(self, self._functions[name])

    def __iter__(self) -> Iterator[str]:
        """The names of the functions."""
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __reduce__(self):
        """Pickles what the kernels were compiled from."""
        if self._spec is None:
            raise Error("kernels of a loaded library cannot be pickled: pickle its path")
        from ._compile import compile_spec

        return compile_spec, (self._spec,)

    def __copy__(self) -> Kernels:
        return self  # Kernels have no state.

    def __deepcopy__(self, memo: dict) -> Kernels:
        return self

    def __repr__(self) -> str:
        return (f"<posenc.Kernels of {', '.join(self._functions)} for "
                f"{', '.join(self.metadata['targets'])}>")


# ===----------------------------------------------------------------------===#
# What kernels were compiled from
# ===----------------------------------------------------------------------===#


def is_of_config(spec: str | None) -> bool:
    """Whether kernels are those of a config, so that their names say what they do. A
    module's own function may do anything, whatever it is called."""
    return spec is not None and json.loads(spec)["name"].endswith(".json")


def has_gradient(spec: str | None, name: str) -> bool:
    """Whether a function is a rotation, whose gradient is a rotation, too."""
    return is_of_config(spec) and (name == "rope" or name.startswith("rope_"))


def is_length_dependent(spec: str) -> bool:
    """Whether the frequencies of a config follow from the largest position of a call,
    so that positions with the other sign do not rotate back."""
    fields = json.loads(spec)
    if any(flag.startswith("--rope-length=") for flag in fields["flags"]):
        return False
    return has_length_scaling(base64.b64decode(fields["source"]).decode(errors="replace"))


def has_length_scaling(config: str) -> bool:
    """Whether the text of a config names a scaling that depends on the length."""
    return any(f'"{name}"' in config for name in ("dynamic", "longrope", "su"))


# ===----------------------------------------------------------------------===#
# Failed calls
# ===----------------------------------------------------------------------===#


# What TVM FFI raises for an argument, and for an error of the kernel.
FAILURES = (ValueError, TypeError, RuntimeError, BufferError)


class _Function:
    """What generated code needs besides its arguments when something fails, and what
    calls of inputs that JAX traces are made of."""

    method: Callable[..., Any]  # of Kernels
    workspace_size: Callable[..., int] | None = None  # bytes, of the sizes

    def __init__(self, metadata: dict, call, spec: str | None):
        self.name = metadata["name"]
        self.inputs, self.outputs = metadata["inputs"], metadata["outputs"]
        self.sizes = metadata["sizes"]
        self.call, self.spec = call, spec
        self.float_inputs = [i for i, argument in enumerate(self.inputs)
                             if argument["kind"] == "tensor"
                             and "float" in FRAMEWORK_NAMES[argument["dtype"]]]
        # PyTorch's tensors with the negative bit are imaginary parts. Their last stride
        # is 2, which kernels refuse unless that dimension has the size 1.
        self.narrow_inputs = [i for i in self.float_inputs
                              if self.inputs[i]["shape"][-1:] in ([], [1])
                              or isinstance(self.inputs[i]["shape"][-1], str)]
        self.wide_inputs = [i for i, argument in enumerate(self.inputs)
                            if argument["kind"] == "tensor"
                            and FRAMEWORK_NAMES[argument["dtype"]] == "int64"]

    def call_jax(self, inputs, out):
        """Calls with inputs of JAX that are traced, or have 32 instead of 64 bits."""
        from . import _jax

        return _jax.call(self, inputs, out)

    def get_outputs(self, arguments):
        """Returns the outputs among the arguments of a call."""
        count = len(self.inputs)
        return arguments[count:count + len(self.outputs)]

    def check_outputs(self, outputs) -> None:
        """Raises an error for an output that must not be written."""
        for output, argument in zip(outputs, self.outputs):
            what = f"{self.name}: output {argument['name']}"
            backend = find_backend(output, what)
            if not backend.mutable:
                raise Error(f"{what} is immutable: leave out `out`")
            backend.check_out(self, (output,))
            if backend.mark is not None:
                backend.mark((output,))
            if isinstance(output, np.ndarray) and not output.flags.writeable:
                raise Error(f"{what} is read-only")

    def refuse_outputs(self):
        """Raises an error for an `out` of another kind."""
        names = ", ".join(output["name"] for output in self.outputs)
        raise Error(f"{self.name}: expected a tuple of {len(self.outputs)} arrays as "
                    f"`out`: ({names})") from None

    def explain(self, inputs, error: Exception):
        """Raises an error about inputs that do not determine the results' shapes."""
        for value, argument in zip(inputs, self.inputs):
            what = f"{self.name}: {argument['name']}"
            if argument["kind"] != "tensor":
                continue
            check_memory(value, what, FRAMEWORK_NAMES[argument["dtype"]])
            rank = len(argument["shape"])
            if len(value.shape) != rank:
                raise Error(f"{what} has {len(value.shape)} dimensions, expected "
                            f"{rank}: {_describe_shape(argument)}") from None
        if isinstance(error, Error):
            raise error
        raise Error(f"{self.name}: cannot allocate the results: {error}") from None

    def call_views(self, arguments, out):
        """Calls with views of arrays of NumPy that TVM FFI would not pass. Returns
        what `retry` does."""
        try:
            if out is not None:
                # A view of a read-only array could be written.
                self.check_outputs(self.get_outputs(arguments))
            self.call(*view_arrays(arguments))
        except FAILURES as error:
            if isinstance(error, Error):
                raise
            return self.retry(arguments, out, error)

    def retry(self, arguments, out, error: Exception):
        """Explains why a call failed, or calls again if views of arrays help. If it is
        a call for JAX, returns other results than those among the arguments."""
        inputs = arguments[:len(self.inputs)]
        if is_for_jax(self, inputs):
            return self.call_jax(inputs, out)
        self.check_outputs(self.get_outputs(arguments))
        for value, argument in zip(arguments, self.inputs + self.outputs):
            if argument["kind"] == "tensor" and value is not None:
                what = f"{self.name}: {argument['name']}"
                check_memory(value, what, FRAMEWORK_NAMES[argument["dtype"]])
        try:
            views = view_arrays(arguments)
            if any(view is not value for view, value in zip(views, arguments)):
                self.call(*views)
                return None
        except FAILURES as second:
            error = second
        # PyTorch appends a trace of its C++ code.
        raise Error(str(error).split("\nException raised from")[0]) from None


# ===----------------------------------------------------------------------===#
# Generated methods
# ===----------------------------------------------------------------------===#


def _describe_shape(argument: dict) -> str:
    if argument["kind"] != "tensor":
        return argument["dtype"]
    return f"{argument['dtype']}[{', '.join(map(str, argument['shape']))}]"


def _write_doc(function: dict) -> str:
    lines = [" ".join(function.get("doc", "").split()) or
             f"The function `{function['name']}`.", ""]
    for argument in function["inputs"]:
        note = ", only its shape is read" if argument.get("shape_only") else ""
        layout = argument.get("layout")
        note += f", packed ({layout})" if layout else ""
        lines.append(f"{argument['name']}: {_describe_shape(argument)}{note}")
    lines += ["", "Returns:" if function["outputs"] else "Returns nothing."]
    for argument in function["outputs"]:
        partner = argument.get("in_place")
        note = f"; `out` may be {partner} (in place)" if partner else ""
        lines.append(f"    {argument['name']}: {_describe_shape(argument)}{note}")
    return "\n".join(lines)


# The names that generated code uses besides those of arguments.
_LOCALS = {"self", "out", "backend", "error", "results", "others", "workspace_"}
_GLOBALS = {"Array", "_backends", "_find", "_numpy", "_function", "_call", "_failures",
            "_workspace", "_empty", "_uint8"}
_BUILTINS = {"type", "min", "max", "int", "float", "tuple", "Exception", "TypeError",
             "ValueError", "AttributeError", "IndexError"}


class _Names:
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


def _generate(function: dict, identifier: str) -> str:
    """Returns the source of a method."""
    names = _Names(_LOCALS | _GLOBALS | _BUILTINS)
    inputs = [(names.add(argument["name"]), argument) for argument in function["inputs"]]
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
        lines.append(f"    backend = _backends.get(type({first})) or "
                     f"_find({first}, {what!r})")
        lines += ["    if backend.check is not None and "
                  f"backend.check(_function, ({listed})):",
                  f"        return _function.call_jax(({listed}), out)"]
    else:
        lines.append("    backend = _numpy")
    lines += ["    if out is None:", "        try:"]
    # Results like inputs are allocated faster by some frameworks.
    like = [next((name for name, a in tensors if a["shape"] == output["shape"] and
                  a["dtype"] == output["dtype"]), None) for output in function["outputs"]]
    if None not in like and like:
        others = [f"type({name}) is type({first})" for name in like if name != first]
        lines.append("            if "
                     + " and ".join(["backend.like is not None", *others]) + ":")
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
    others = [f"{name} is not {partners.get(output.get('in_place'))}"
              for name, output in zip(results, function["outputs"])]
    if others:
        lines += [f"            if {' or '.join(others)}:",
                  f"                backend.check_out(_function, ({listed_results}))"]
    lines.append(f"            backend.mark(({listed_results}))")
    call = everything
    if "workspace" in function:
        # The sizes are those of the plain entry point.
        lines += ["    try:"] + [f"        {line}" for line in shapes]
        dims = ", ".join(translate(size, sizes) for size in function["sizes"])
        lines += [f"        workspace_ = _empty(_workspace({dims}), _uint8)",
                  "    except (AttributeError, IndexError) as error:",
                  f"        _function.explain(({listed}), error)"]
        call += ", workspace_"
    indent = "    "
    if any(FRAMEWORK_NAMES[a["dtype"]] in DLPACK_CODES
           for a in function["inputs"] + function["outputs"]):
        # NumPy exports no such types.
        lines += ["    if backend is _numpy:",
                  f"        others = _function.call_views(({call},), out)",
                  "        if others is not None:",
                  "            return others",
                  "    else:"]
        indent = "        "
    lines += [f"{indent}try:", f"{indent}    _call({call})",
              f"{indent}except _failures as error:",
              f"{indent}    others = _function.retry(({call},), out, error)",
              f"{indent}    if others is not None:",
              f"{indent}        return others"]
    if results:
        lines += ["    if out is None and backend.finish is not None:"]
        finished = ", ".join(f"backend.finish({name}, {output['dtype']!r})"
                             for name, output in zip(results, function["outputs"]))
        lines += [f"        return {finished}", f"    return {', '.join(results)}"]
    return "\n".join(lines) + "\n"


def _make_workspace_size(address: int, count: int) -> Callable[..., int]:
    """Returns a function of the sizes of a call: the bytes of its workspace."""
    get_bytes = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(address)

    def measure(*sizes: int) -> int:
        size = get_bytes(*sizes)
        if size < 0:
            raise Error("the size of the workspace exceeds the address space")
        return size

    return measure


def _make_method(function: dict, identifier: str, code, spec: str | None):
    call = tvm_ffi.Function.__from_extern_c__(code.symbol(function["tvm_ffi"]),
                                              keep_alive_object=code)
    support = _Function(function, call, spec)
    scope: dict[str, Any] = {
        "Array": Array, "_backends": backends, "_find": find_backend,
        "_numpy": NUMPY, "_function": support, "_call": call, "_failures": FAILURES}
    if "workspace" in function:
        support.workspace_size = _make_workspace_size(
            code.symbol(function["workspace"]), len(function["sizes"]))
        scope.update(_workspace=support.workspace_size, _empty=np.empty,
                     _uint8=np.uint8)
    source = _generate(function, identifier)
    # Annotations are to be objects, which help() prints without quotes.
    made: dict[str, Any] = {}
    exec(compile(source, f"<posenc {identifier}>", "exec", dont_inherit=True), scope,
         made)
    method = made[identifier]
    method.__module__ = "posenc"
    method.__qualname__ = f"Kernels.{identifier}"
    method.__doc__ = _write_doc(function)
    support.method = method
    return method


def make_kernels(code, spec: str | None = None) -> Kernels:
    """Returns the kernels of compiled code: an object of a class of its own."""
    metadata = json.loads(code.metadata)
    methods: dict[str, Any] = {}
    functions = {}
    names = _Names({*dir(Kernels), "metadata"})
    for function in metadata["functions"]:
        if "tvm_ffi" not in function:
            continue  # There is code for GPUs only.
        identifier = names.add(function["name"])
        methods[identifier] = _make_method(function, identifier, code, spec)
        functions[function["name"]] = identifier
    listed = ", ".join(functions)
    members = {"__module__": "posenc", "_functions": functions, "_spec": spec,
               "__doc__": f"Kernels for {', '.join(metadata['targets'])}: {listed}.\n\n"
                          + (Kernels.__doc__ or "").split("\n\n", 1)[1], **methods}
    kernels = type("Kernels", (Kernels,), members)()
    kernels.metadata = metadata
    return kernels

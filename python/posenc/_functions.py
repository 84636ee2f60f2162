# ===- _functions.py - compiled functions ----------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A compiled function with what is known of it: checks, and explanations of failures."""

from __future__ import annotations

import numbers
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _later
from ._devices import find_device
from ._dtypes import FRAMEWORK_NAMES
from ._errors import Error
from ._frameworks import (
    check_memory, find_backend, is_divided, is_dtensor, is_for_jax, is_of_jax, view_arrays)
from ._sizes import evaluate, find_elements, name_element, read_element


# What TVM FFI raises for an argument, and for an error of the kernel.
FAILURES = (ValueError, TypeError, RuntimeError, BufferError)


class Function:
    """What generated code needs besides its arguments when something fails, and what
    calls of inputs that JAX traces are made of."""

    method: Callable[..., Any]  # of Kernels
    workspace_size: Callable[..., int] | None = None  # bytes, of the sizes

    def __init__(self, metadata: dict, call, spec: str | None,
                 compile_for_cuda: Callable[[str | None], Function] | None):
        self.name = metadata["name"]
        self.has_cuda_code = "cuda" in metadata
        # It is None for a function whose arrays are on a CUDA device.
        self._compile_for_cuda = compile_for_cuda
        self.on_cuda = compile_for_cuda is None
        self._on_cuda: dict[int, Function] = {}  # by the device
        self.metadata = metadata
        self.inputs, self.outputs = metadata["inputs"], metadata["outputs"]
        self.sizes = metadata["sizes"]
        self.call, self.spec = call, spec
        self.first_tensor = next((i for i, argument in enumerate(self.inputs)
                                  if argument["kind"] == "tensor"), 0)
        self.float_inputs = [i for i, argument in enumerate(self.inputs)
                             if argument["kind"] == "tensor"
                             and "float" in FRAMEWORK_NAMES[argument["dtype"]]]
        self.wide_inputs = [i for i, argument in enumerate(self.inputs)
                            if argument["kind"] == "tensor"
                            and FRAMEWORK_NAMES[argument["dtype"]] == "int64"]

    def call_other(self, inputs, out):
        """Makes a call that is not for the kernel itself: with inputs of JAX that are
        traced, or have 32 instead of 64 bits, in traces of PyTorch, and with arrays on
        CUDA devices."""
        torch = sys.modules.get("torch")
        if any(map(is_dtensor, inputs)):
            return _later.load_operators().call(self.spec, self.name, inputs, {}, out)
        index = None if self.on_cuda else self._find_cuda_device(inputs)
        if index is not None:
            if is_of_jax(inputs[self.first_tensor]):
                if _later.load_jax_targets().can_call(self):
                    return _later.load_jax().call_on_cuda(self, inputs, out)
            return self.call_on_cuda(index, inputs, out)
        if torch is not None and any(isinstance(one, torch.Tensor) for one in inputs):
            return _later.load_operators().call(self.spec, self.name, inputs, {}, out)
        return _later.load_jax().call(self, inputs, out)

    def _find_cuda_device(self, inputs) -> int | None:
        """Returns the number of the CUDA device of the first array; None if it is on
        another one, or if the call is only recorded."""
        torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
        first = inputs[self.first_tensor]
        if torch is not None and isinstance(first, torch.Tensor):
            from ._torch_state import is_traced

            return first.device.index if first.is_cuda and not is_traced() else None
        if jax is not None and any(isinstance(one, jax.core.Tracer) for one in inputs):
            return None
        return find_device(first)

    def call_on_cuda(self, index: int, inputs, out):
        """Makes a call whose first array is on the CUDA device `index`."""
        function = self._on_cuda.get(index)
        if function is None:
            target = None if self.has_cuda_code else self.find_cuda_target(index)
            function = self._on_cuda[index] = self.compile_for_cuda(target)
        return function.method(None, *inputs, out=out)

    def find_cuda_target(self, index: int) -> str:
        """Returns the target for the CUDA device `index`, which the first array is on."""
        from . import _cuda

        return _cuda.find_target(
            index, f"{self.name}: {self.inputs[self.first_tensor]['name']}")

    def compile_for_cuda(self, target: str | None) -> Function:
        """Returns the function for arrays on CUDA devices: compiled for a target, or, for
        None, of the code for CUDA that this one has."""
        assert self._compile_for_cuda is not None
        return self._compile_for_cuda(target)

    def __repr__(self) -> str:
        return f"<function {self.name} of posenc.Kernels>"

    def suggest_operator(self) -> str:
        """Returns the call of an operator of PyTorch that does the same."""
        names = ", ".join(argument["name"] for argument in self.inputs)
        return f"use posenc.torch.operators(kernels).{self.name}({names})"

    def check_others(self, inputs) -> None:
        """Checks the inputs of a call whose first one is an array of NumPy, by the
        frameworks of the others. JAX's are checked when the call fails."""
        for value, argument in zip(inputs, self.inputs):
            if argument["kind"] != "tensor" or value is None:
                continue
            backend = find_backend(value, f"{self.name}: {argument['name']}")
            if backend.check is not None and backend.mutable:
                backend.check(self, inputs)

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
            check_input(value, what, argument, self.suggest_operator(), self.on_cuda)
            if argument["kind"] != "tensor":
                continue
            rank = len(argument["shape"])
            if len(value.shape) != rank:
                raise Error(f"{what} has {len(value.shape)} dimensions, expected "
                            f"{rank}: {describe_shape(argument)}") from None
            for dim, size in enumerate(argument["shape"]):
                if isinstance(size, int) and value.shape[dim] != size:
                    raise Error(f"{self.name}: dimension {dim} of {argument['name']} is "
                                f"{value.shape[dim]}, expected {size}") from None
        if isinstance(error, Error):
            raise error
        self.refuse_negative_sizes(inputs)
        raise Error(f"{self.name}: cannot allocate the results: {error}") from None

    def refuse_negative_sizes(self, inputs):
        """Raises an error for a dimension of a result that the inputs make negative, or
        that is an element of another type than an integer."""
        elements = find_elements(size for output in self.outputs
                                 for size in output["shape"])
        sizes = {}
        for value, argument in zip(inputs, self.inputs):
            name = argument["name"]
            if argument["kind"] != "tensor":
                sizes[name] = value
                continue
            for dim, size in enumerate(argument["shape"]):
                sizes.setdefault(size, value.shape[dim])
            if name in elements:
                try:
                    sizes[name_element(name)] = read_element(value)
                except TypeError:
                    raise Error(f"{self.name}: {name} has elements of {value.dtype}, "
                                f"expected {FRAMEWORK_NAMES[argument['dtype']]}") from None
        for output in self.outputs:
            for dim, size in enumerate(output["shape"]):
                try:
                    number = evaluate(size, sizes)
                except ArithmeticError:
                    continue
                if number < 0:
                    raise Error(f"{self.name}: dimension {dim} of {output['name']}, {size}, "
                                f"is {number}, expected at least 0") from None

    def call_views(self, arguments, out):
        """Calls with views of arrays of NumPy that TVM FFI would not pass. Returns
        what `retry` does."""
        try:
            if out is not None:
                outputs = self.get_outputs(arguments)
                # A view of a read-only array could be written.
                if any(isinstance(output, np.ndarray) and not output.flags.writeable
                       for output in outputs):
                    self.check_outputs(outputs)
            self.call(*view_arrays(arguments))
        except FAILURES as error:
            if isinstance(error, Error):
                raise
            return self.retry(arguments, out, error)

    def retry(self, arguments, out, error: Exception):
        """Explains why a call failed, or calls again if views of arrays help. If it is
        a call for JAX, returns other results than those among the arguments."""
        from . import _cuda

        inputs = arguments[:len(self.inputs)]
        if self.on_cuda:
            _cuda.check_devices(self, arguments, self.inputs + self.outputs)
        elif is_for_jax(self, inputs) or (
                inputs and self._find_cuda_device(inputs) is not None):
            return self.call_other(inputs, out)
        self.check_outputs(self.get_outputs(arguments))
        for value, argument in zip(inputs, self.inputs):
            if is_divided(value):
                raise Error(f"{self.name}: {argument['name']} is divided among devices: "
                            "call the function under jax.jit") from None
        for value, argument in zip(arguments, self.inputs + self.outputs):
            check_input(value, f"{self.name}: {argument['name']}", argument,
                        self.suggest_operator(), self.on_cuda)
        try:
            views = view_arrays(arguments)
            if any(view is not value for view, value in zip(views, arguments)):
                self.call(*views)
                return None
        except FAILURES as second:
            error = second
        # PyTorch appends a trace of its C++ code.
        raise Error(str(error).split("\nException raised from")[0]) from None


def check_input(value, what: str, argument: dict, operator_call: str,
                on_cuda: bool) -> None:
    """Raises an error for an argument of another kind, or for an array that DLPack does
    not pass. `operator_call` says what to do under torch.func."""
    if argument["kind"] != "tensor":
        read_number(value, what, argument)
    elif value is not None or not argument.get("shape_only"):
        check_memory(value, what, FRAMEWORK_NAMES[argument["dtype"]], operator_call,
                     on_cuda)


def read_number(value, what: str, argument: dict) -> int | float:
    """Returns an argument that is a number. Others are not converted: an integer is not
    taken from 20.9 or True."""
    is_float = argument["dtype"].startswith("f")
    kind: Any = numbers.Real if is_float else numbers.Integral
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Error(f"{what} is a {type(value).__name__}, expected "
                    f"{'a number' if is_float else 'an integer'}") from None
    try:
        number = float(value) if is_float else operator.index(value)
    except OverflowError:
        raise Error(f"{what} exceeds the largest f64") from None
    if not is_float and not -2**63 <= number < 2**63:
        raise Error(f"{what} exceeds the integers of 64 bits") from None
    return number


def describe_shape(argument: dict) -> str:
    if argument["kind"] != "tensor":
        return argument["dtype"]
    return f"{argument['dtype']}[{', '.join(map(str, argument['shape']))}]"

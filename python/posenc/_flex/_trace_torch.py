# ===- _trace_torch.py - functions of PyTorch as expressions ---------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Traces a `score_mod` or `mask_mod` of PyTorch: it is called once, with tensors that
have an expression in place of memory. PyTorch's own operators arrive there after it has
decomposed its functions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .._errors import Error
from .._torch_state import is_recorded
from . import _torch_rules, _torch_shapes  # noqa: F401
from ._score_graph import Node, name_type
from ._torch_rows import Row, read_rows
from ._torch_scalars import Scalar, load, make_nodes
from ._trace import Trace

# Functions of a tensor whose results follow from what the key of a function has of it,
# and those whose results follow from its shape.
_TENSOR: Any = torch.Tensor
_OF_TYPES = frozenset((
    torch.Tensor.dim, _TENSOR.ndim.__get__, _TENSOR.dtype.__get__,
    torch.Tensor.is_floating_point, torch.is_floating_point))
_OF_SIZES = frozenset((
    _TENSOR.shape.__get__, torch.Tensor.size, torch.Tensor.__len__,
    torch.Tensor.numel, torch.numel, torch.Tensor.nelement))


class _Reads(TorchDispatchMode):
    """Notes elements of captured tensors that become numbers of Python, makes numbers of
    `where` constants, and refuses random numbers."""

    def __init__(self, trace: Trace):
        super().__init__()
        self._trace = trace

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if torch.Tag.nondeterministic_seeded in function.tags:
            raise Error(f"{function._schema.name} gives random numbers, but the function "
                        "is traced once, so that all pairs would get the same ones; make "
                        "them outside and read them by index")
        if function is torch.ops.aten._local_scalar_dense.default:
            self._trace.reads_values = True
        keywords = keywords or {}
        if function is torch.ops.aten.scalar_tensor.default:
            dtype = name_type(keywords.get("dtype") or torch.get_default_dtype())
            return Scalar(self._trace.graph.constant(arguments[0], dtype), self._trace,
                          self._trace.device)
        return function(*arguments, **keywords)


class _Mode(TorchFunctionMode):
    """Makes an indexing of a captured tensor an expression, and constants of single
    numbers. Operations of captured tensors alone have gradients."""

    def __init__(self, trace: Trace):
        super().__init__()
        self._trace, self._has_gradients = trace, torch.is_grad_enabled()
        # Tensors that functions make of captured tensors alone.
        self.made: list[torch.Tensor] = []

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        trace = self._trace
        if function in _INDEXED and not isinstance(arguments[0], (Scalar, Row)):
            array, *indices = arguments
            if any(isinstance(one, Scalar) for one in torch.utils._pytree.tree_leaves(
                    indices)):
                return _INDEXED[function](Row(trace, array), *indices)
        arguments, keywords = read_rows((arguments, keywords))
        if function is torch.Tensor.item and isinstance(arguments[0], Scalar):
            return self._read_number(arguments[0])
        if function is torch.Tensor.__getitem__ and isinstance(arguments[0], Scalar):
            return _torch_shapes.choose(*arguments)
        made = (_make_constant(trace, function, arguments, keywords)
                if function in _FACTORIES else None)
        if made is not None:
            return made
        tensors = [one for one in torch.utils._pytree.tree_leaves((arguments, keywords))
                   if isinstance(one, torch.Tensor)]
        if not tensors or any(isinstance(one, Scalar) for one in tensors):
            return function(*arguments, **keywords)
        with torch.set_grad_enabled(self._has_gradients):
            result = function(*arguments, **keywords)
        self._note(function, tensors, result)
        return result

    def _read_number(self, scalar: Scalar) -> Any:
        """Returns what a tensor of one number gives as a number of Python. PyTorch 2.11
        records it for floats that change between calls of a compiled function."""
        node, graph = scalar.node, self._trace.graph
        if node.op == "constant":
            return node.payload
        if not node.is_float:
            return scalar
        return Scalar(graph.convert(node, graph.score_dtype), self._trace, scalar.device)

    def _note(self, function, tensors: list[torch.Tensor], result) -> None:
        """Notes what a function of captured tensors alone tells of them."""
        results = torch.utils._pytree.tree_leaves(result)
        if function in _OF_SIZES:
            self._trace.reads_sizes = True
        elif function not in _OF_TYPES and not all(
                isinstance(one, torch.Tensor) for one in results):
            self._trace.reads_values = True
        self.made += [one for one in results if isinstance(one, torch.Tensor)
                      and all(one is not other for other in tensors)]

    def check(self) -> None:
        """Raises an error for tensors whose operations are missing in what PyTorch
        records."""
        made = set(map(id, self.made))
        if any(id(array) in made for array in self._trace.arrays):
            raise Error("an operation of captured tensors alone is within a function that "
                        "PyTorch records; compute it outside")


# Functions that give a part of a captured tensor.
_INDEXED: dict[Any, Callable] = {
    torch.Tensor.__getitem__: lambda row, index: row[index],
    torch.Tensor.select: lambda row, dim, index: row.select(dim, index),
    torch.select: lambda row, dim, index: row.select(dim, index)}
_FACTORIES: tuple = (torch.tensor, torch.scalar_tensor, torch.as_tensor, torch.full,
                     torch.zeros, torch.ones)


def _make_constant(trace: Trace, function, arguments: tuple,
                   keywords: dict) -> Scalar | None:
    """Returns a number that a function of PyTorch makes a tensor of; None if it is
    another call."""
    value: Any
    sizes: Any = ()
    if function in (torch.zeros, torch.ones):
        value, sizes = float(function is torch.ones), arguments
    elif function is torch.full:
        value = keywords.get("fill_value", arguments[-1] if arguments else None)
        sizes = arguments[:1]
    else:
        value = arguments[0] if arguments else None
    sizes = torch.utils._pytree.tree_leaves((sizes, keywords.get("size", ())))
    values = torch.utils._pytree.tree_leaves(value)
    if sizes or not 0 < len(values) <= _MAX_CONSTANTS or not all(
            isinstance(one, (bool, int, float)) for one in values):
        return None
    meta = function(*arguments, **{**keywords, "device": "meta"})
    dtype = name_type(meta.dtype)
    return Scalar(make_nodes([trace.graph.constant(one, dtype) for one in values],
                             tuple(meta.shape)), trace, trace.device)


# Lists of more numbers are arrays, which are read by index.
_MAX_CONSTANTS = 16


@contextlib.contextmanager
def _isolated(trace: Trace) -> Iterator[_Mode]:
    """A trace sees no modes of its caller, such as those of torch.export."""
    mode = _Mode(trace)
    with (temporarily_clear_interpreter_stack(), _disable_current_modes(),
          torch.no_grad(), torch.autocast("cpu", enabled=False), _Reads(trace), mode):
        yield mode


def read_settings() -> torch.dtype:
    """Returns the type of numbers of Python and of quotients of integers."""
    return torch.get_default_dtype()


def trace_torch(function: Callable, trace: Trace, names: tuple[str, ...]) -> Node:
    """Calls a function with the arguments of a pair and returns its result."""
    is_checked = is_recorded() and not torch._C._is_tracing()
    with _isolated(trace) as mode:
        node = _call(function, trace, names)
    if is_checked:
        mode.check()
    return node


def _call(function: Callable, trace: Trace, names: tuple[str, ...]) -> Node:
    graph = trace.graph
    arguments = [Scalar(
        graph.argument(name, graph.score_dtype if name == "score" else "i32"), trace,
        trace.device) for name in names]
    result = function(*arguments)
    if isinstance(result, Row):
        result = result.read()
    if isinstance(result, Scalar) and not result.dim():
        return result.node
    if isinstance(result, bool) or isinstance(result, (int, float)):
        dtype = "i1" if isinstance(result, bool) else graph.score_dtype
        return graph.constant(result, dtype)
    if isinstance(result, torch.Tensor) and not result.dim():
        return load(trace, result, ())
    raise Error(f"expected a single number as the result, got {_describe(result)}")


def _describe(result) -> str:
    if isinstance(result, torch.Tensor):
        return f"a tensor of the shape {tuple(result.shape)}"
    return f"a {type(result).__name__}"

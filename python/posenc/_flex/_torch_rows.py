# ===- _torch_rows.py - parts of captured tensors ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Captured tensors some of whose dimensions have an index of a pair, such as `bias[h]` and
`bias[:, k]`. They are read when they have all indices, or when an operation uses them."""

from __future__ import annotations

import itertools
import operator
from typing import Any, NamedTuple

import torch

from .._errors import Error
from ._torch_scalars import MAX_ELEMENTS, Scalar, load, make_nodes, to_index
from ._trace import Trace


class _Range(NamedTuple):
    """The elements of a dimension that a part has: `size` from `first` on, each `step`
    after the one before. None: those of the whole dimension."""

    dim: int
    first: int = 0
    step: int = 1
    size: int | None = None


class Row:
    """A part of a captured tensor."""

    def __init__(self, trace: Trace, array: torch.Tensor, indices: tuple = (),
                 ranges: tuple[_Range | None, ...] | None = None):
        self._trace, self._array = trace, array
        # By dimension of the tensor; None without an index.
        self._indices = indices or (None,) * array.dim()
        # By dimension of the part; None for one that `None` has added.
        self._ranges = (tuple(_Range(dim) for dim in range(array.dim()))
                        if ranges is None else ranges)

    def _count(self, one: _Range | None) -> int:
        if one is None:
            return 1
        if one.size is not None:
            return one.size
        self._trace.reads_sizes = True
        return int(self._array.shape[one.dim])

    # ===------------------------------------------------------------------===#
    # Indices
    # ===------------------------------------------------------------------===#

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        used = sum(one is not None and one is not Ellipsis for one in index)
        left = len(self._ranges) - used
        if left < 0:
            dims = self._array.dim()
            known = dims - len([one for one in self._ranges if one is not None])
            raise Error(f"a captured tensor of {dims} dimensions is used with "
                        f"{known + used} indices")
        whole = [slice(None)] * left
        at = next((number for number, one in enumerate(index) if one is Ellipsis), None)
        full = [*index[:at], *whole, *index[at + 1:]] if at is not None else [
            *index, *whole]
        if Ellipsis in [one for one in full if one is Ellipsis]:
            raise Error("a captured tensor is indexed by several '...'")
        indices, ranges, rest = list(self._indices), [], iter(self._ranges)
        for one in full:
            if one is None:
                ranges.append(None)
                continue
            of = next(rest)
            if isinstance(one, slice):
                ranges.append(self._slice(of, one))
            elif isinstance(one, bool) or not isinstance(one, (int, torch.Tensor)):
                raise Error("captured tensors are indexed by integers, ranges and None "
                            f"only, not by a {type(one).__name__}")
            elif isinstance(one, torch.Tensor) and one.dim():
                raise Error("captured tensors are indexed by single numbers only in "
                            "functions of scores, not by a tensor of the shape "
                            f"{tuple(one.shape)}")
            elif of is not None:
                indices[of.dim] = self._locate(of, one)
        return self._finish(tuple(indices), tuple(ranges))

    def _finish(self, indices: tuple, ranges: tuple):
        if not ranges:
            return Scalar(load(self._trace, self._array, indices), self._trace,
                          self._trace.device)
        return Row(self._trace, self._array, indices, ranges)

    def _slice(self, of: _Range | None, index: slice) -> _Range | None:
        if index == slice(None):
            return of
        bounds = index.start, index.stop, index.step
        if any(isinstance(one, torch.Tensor) for one in bounds):
            raise Error("a range of a captured tensor has a bound that is a tensor, "
                        "expected numbers of Python")
        size = self._count(of)
        first, last, step = index.indices(size)
        count = len(range(first, last, step))
        if of is None:
            if count != 1:
                raise Error("a dimension that None has added is left empty")
            return None
        return _Range(of.dim, of.first + first * of.step, of.step * step, count)

    def _locate(self, of: _Range, index):
        """Returns the index of the tensor's dimension."""
        if of.size is None:
            return index
        graph, node = self._trace.graph, to_index(self._trace, index)
        size = graph.constant(of.size, node.dtype)
        if node.op == "constant":
            node = graph.constant(node.payload % of.size, "i64")
        else:
            is_negative = graph.compare("lt", node.dtype, node,
                                        graph.constant(0, node.dtype))
            node = graph.select(is_negative, graph.apply("add", node.dtype, node, size),
                                node)
        node = graph.apply("mul", node.dtype, node, graph.constant(of.step, node.dtype))
        node = graph.apply("add", node.dtype, node, graph.constant(of.first, node.dtype))
        return Scalar(node, self._trace, self._trace.device)

    # ===------------------------------------------------------------------===#
    # Views
    # ===------------------------------------------------------------------===#

    def permute(self, *dims):
        if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
            dims = tuple(dims[0])
        return Row(self._trace, self._array, self._indices,
                   tuple(self._ranges[dim] for dim in dims))

    def transpose(self, first: int, second: int):
        dims = list(range(len(self._ranges)))
        dims[first], dims[second] = dims[second], dims[first]
        return self.permute(dims)

    swapaxes = transpose

    def t(self):
        return self.permute(*reversed(range(len(self._ranges))))

    @property
    def T(self):
        return self.t()

    @property
    def mT(self):
        return self.transpose(-1, -2)

    def select(self, dim: int, index):
        return self[(slice(None),) * (dim % len(self._ranges)) + (index,)]

    def unsqueeze(self, dim: int):
        ranges = list(self._ranges)
        ranges.insert(dim if dim >= 0 else len(ranges) + dim + 1, None)
        return Row(self._trace, self._array, self._indices, tuple(ranges))

    def dim(self) -> int:
        return len(self._ranges)

    ndim = property(dim)
    dtype = property(lambda self: self._array.dtype)
    device = property(lambda self: self._trace.device)

    @property
    def shape(self) -> torch.Size:
        return torch.Size([self._count(one) for one in self._ranges])

    def size(self, dim: int | None = None):
        return self.shape if dim is None else self.shape[dim]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self):
        return (self[number] for number in range(len(self)))

    # ===------------------------------------------------------------------===#
    # Elements
    # ===------------------------------------------------------------------===#

    def read(self) -> Scalar:
        """Returns all elements."""
        shape = self.shape
        if shape.numel() > MAX_ELEMENTS:
            raise Error(f"a part of a captured tensor, of the shape {tuple(shape)}, is used "
                        f"where a single number is needed, or at most {MAX_ELEMENTS}")
        nodes = [self[at].node for at in itertools.product(*map(range, shape))]
        return Scalar(make_nodes(nodes, tuple(shape)), self._trace, self._trace.device)

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.read(), name)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        arguments, keywords = read_rows((arguments, keywords or {}))
        return function(*arguments, **keywords)


def read_rows(values: Any) -> Any:
    """Returns arguments of a function with the elements of rows."""
    return torch.utils._pytree.tree_map(
        lambda one: one.read() if isinstance(one, Row) else one, values)


def _define_operators() -> None:
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and",
                 "or", "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge"):
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(Row, f"__{name}__", lambda x, y, f=function: f(*read_rows((x, y))))
        if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(Row, f"__r{name}__", lambda x, y, f=function: f(*read_rows((y, x))))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(Row, f"__{name}__",
                lambda x, f=getattr(operator, name): f(x.read()))
    setattr(Row, "__bool__", lambda x: bool(x.read()))
    setattr(Row, "__hash__", object.__hash__)


_define_operators()

# ===- _attentions.py - attentions of a compiled graph ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Finds attention in a graph of ATen's operators: PyTorch's operator for the CPU, and
products with a softmax between them."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from .._dtypes import name_of
from .._rope import FLOATS
from ._graph import (
    NoMatch, aten, get_argument, get_shape, get_value, have_same_shape, insert, is_call,
    is_last, is_number, is_same, name_sizes, peel)
from ._kernels import Attention, find_kernels

_FUSED = aten._scaled_dot_product_flash_attention_for_cpu.default
_SOFTMAX = (aten._softmax.default, aten._safe_softmax.default)
_COPIES = (aten._to_copy.default, torch.ops.prims.convert_element_type.default)
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


@dataclass
class Match:
    result: Any  # [batch, heads, queries, channels]
    q: Any
    k: Any  # [batch, key heads, keys, channels]
    v: Any
    scale: float = 1.0
    factor: Any | None = None  # a factor of scores that the graph computes
    soft_cap: float | None = None
    is_causal: bool = False
    mask: Any | None = None  # bool
    biases: list[Node] = field(default_factory=list)
    lse: Any | None = None  # the node of the log-sum-exp [batch, heads, queries]


def _find_product(node: Any) -> tuple[Node, Node] | None:
    """Returns the operands [batch, heads, m, n] of a matrix product."""
    node = peel(node)
    shape = get_shape(node)
    if not is_call(node, *_VIEWS) or len(shape) != 4:
        return None
    product = peel(node.args[0])
    if not is_call(product, aten.bmm.default) or not have_same_shape(
            get_shape(product)[1:], shape[2:]):
        return None
    operands = [_find_batches(one, shape[:2]) for one in product.args]
    return None if None in operands else tuple(operands)  # type: ignore[return-value]


def _find_batches(node: Any, batches) -> Any:
    """Returns the tensor [batch, heads, m, n] of one [batch * heads, m, n]."""
    node = peel(node)
    if not is_call(node, *_VIEWS):
        return None
    source = node.args[0]
    if not have_same_shape(get_shape(source), (*batches, *get_shape(node)[1:])):
        return None
    return peel(source)


def _peel_copies(node: Any) -> Any:
    """Returns the value before conversions of floats to wider types and back."""
    while True:
        node = peel(node)
        if is_call(node, *_COPIES) and _is_float(node) and _is_float(node.args[0]) and (
                get_value(node).device == get_value(node.args[0]).device):
            node = node.args[0]
        elif is_call(node, aten.dropout.default) and (
                node.args[1] == 0 or not node.args[2]):
            node = node.args[0]
        else:
            return node


def _is_float(node: Any) -> bool:
    value = get_value(node)
    return value is not None and value.is_floating_point()


# ===----------------------------------------------------------------------===#
# Scores
# ===----------------------------------------------------------------------===#


def _get_number(node: Any) -> float | None:
    """Returns a number, or the value of a tensor of one."""
    if is_number(node):
        return float(node)
    node = peel(node)
    while is_call(node, *_COPIES):
        node = peel(node.args[0])
    if is_call(node, aten.scalar_tensor.default) and is_number(node.args[0]):
        return float(node.args[0])
    if is_call(node, aten.full.default) and is_number(node.args[1]):
        return float(node.args[1])
    if is_call(node, aten.zeros.default, aten.zeros_like.default,
               aten.new_zeros.default):
        return 0.0
    return None


def _find_scores(node: Any, match: Match) -> bool:
    """Reads what is done to the product of queries and keys, the last operation
    first."""
    node = _peel_copies(node)
    if is_call(node, aten.add.Tensor) and get_argument(node, 2, "alpha", 1) == 1:
        for scores, bias in (node.args[:2], node.args[1::-1]):
            if isinstance(bias, Node) and _find_scores(scores, match):
                match.biases.append(bias)
                return True
        return False
    fill = None
    if is_call(node, aten.where.self):
        condition, scores, fill = node.args
    elif is_call(node, aten.masked_fill.Scalar, aten.masked_fill.Tensor):
        scores, condition, fill = node.args
    if fill is not None:
        if not _find_scores(scores, match):
            return False
        if not is_call(node, aten.where.self) or _get_number(fill) != -math.inf or (
                match.mask is not None):
            raise NoMatch("scores are set to a value by a mask; only torch.where(visible, "
                          "scores, -inf) hides keys")
        if match.biases:
            raise NoMatch("a mask is after the addition of others")
        match.mask = condition
        return True
    return _find_capped(node, match)


def _find_capped(node: Any, match: Match) -> bool:
    if is_call(node, aten.mul.Tensor) and _get_number(node.args[1]) is not None:
        bounded = _peel_copies(node.args[0])
        if is_call(bounded, aten.tanh.default):
            cap = _get_number(node.args[1])
            inner = _peel_copies(bounded.args[0])
            if not is_call(inner, aten.div.Tensor, aten.mul.Tensor):
                return False
            number = _get_number(inner.args[1])
            if not number or not cap or cap < 0:
                return False
            divisor = number if is_call(inner, aten.div.Tensor) else 1 / number
            if not math.isclose(divisor, cap, rel_tol=1e-6):
                return False
            match.soft_cap = cap
            return _find_scaled(inner.args[0], match)
    return _find_scaled(node, match)


def _find_scaled(node: Any, match: Match) -> bool:
    node = _peel_copies(node)
    product = _find_product(node)
    if product is not None:
        match.q, match.k = product
        return True
    if not is_call(node, aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor):
        return False
    factor = node.args[1]
    number = _get_number(factor)
    if not _find_scaled(node.args[0], match):
        return False
    if number is not None and number > 0:
        match.scale *= number if not is_call(node, aten.div.Tensor) else 1 / number
        return True
    if is_call(node, aten.mul.Tensor) and isinstance(factor, Node) and (
            get_value(factor) is not None and get_shape(factor) == ()) and (
            match.factor is None and get_value(match.q).dtype in (
                torch.float32, torch.float64)):
        match.factor = factor
        return True
    raise NoMatch("scores are multiplied by something that is no positive number")


def _find_spelled(node: Any) -> Match | None:
    product = _find_product(node)
    if product is None:
        return None
    weights, v = product
    softmax = _peel_copies(weights)
    if not is_call(softmax, *_SOFTMAX):
        return None
    if not is_last(softmax, softmax.args[1]):
        raise NoMatch("the softmax is not over the keys")
    match = Match(node, weights, weights, v)
    if not _find_scores(softmax.args[0], match):
        raise NoMatch("what is done to the scores before the softmax is not known")
    one: Any = softmax
    while one is not node:
        users = [user for user in one.users if user.users or user.op == "output"]
        if len(users) != 1:
            raise NoMatch("the weights of keys have another user")
        one = users[0]
        if one.op == "output":
            raise NoMatch("the weights of keys are a result of the graph")
    return match


def _find_fused(node: Any) -> Match | None:
    """PyTorch's operator, whose result is an element of a pair."""
    if not is_call(node, operator.getitem) or not is_call(node.args[0], _FUSED):
        return None
    call = node.args[0]
    if node.args[1] != 0:
        return None
    others = [user for user in call.users if user is not node and user.users]
    if len(others) > 1 or any(not is_call(one, operator.getitem) for one in others):
        raise NoMatch("the log-sum-exp has several users")
    if get_argument(call, 3, "dropout_p", 0.0) != 0.0:
        raise NoMatch("it has dropout")
    q, k, v = call.args[:3]
    match = Match(node, q, k, v)
    if others:  # It is kept for the gradient.
        match.lse, = others
        sums = torch.float64 if get_value(q).dtype == torch.float64 else torch.float32
        if get_value(match.lse).dtype != sums:
            raise NoMatch(f"its log-sum-exp is of {get_value(match.lse).dtype}")
    match.is_causal = bool(get_argument(call, 4, "is_causal", False))
    scale = call.kwargs.get("scale")
    if scale is None:
        channels = get_shape(q)[-1]
        if not isinstance(channels, int):
            raise NoMatch("the number of channels is not constant")
        match.scale = channels ** -0.5
    elif is_number(scale):
        match.scale = float(scale)
    elif isinstance(scale, Node):
        if get_value(q).dtype not in (torch.float32, torch.float64):
            raise NoMatch("the scale is not constant")
        match.factor = scale
    mask = call.kwargs.get("attn_mask")
    if mask is not None:
        match.biases.append(mask)
    return match


# ===----------------------------------------------------------------------===#
# Masks, and heads of keys
# ===----------------------------------------------------------------------===#


def _find_visible(bias: Any) -> Any:
    """Returns the condition of a mask that is 0 where it holds and minus infinity
    elsewhere."""
    bias = peel(bias)
    if is_call(bias, aten.where.self) and _get_number(bias.args[1]) == 0.0 and (
            _get_number(bias.args[2]) == -math.inf):
        return bias.args[0]
    return None


def _find_key_heads(node: Any) -> tuple[Node, int]:
    """Returns the tensor [batch, key heads, keys, channels] whose heads a tensor repeats,
    and how often."""
    node = peel(node)
    shape = get_shape(node)
    if is_call(node, *_VIEWS):
        wide = peel(node.args[0])
        if is_call(wide, aten.expand.default):
            narrow = peel(wide.args[0])
            whole, one = get_shape(wide), get_shape(narrow)
            if len(whole) == 5 and len(one) == 5 and one[2] == 1 and (
                    isinstance(whole[2], int) and have_same_shape(
                        (whole[0], whole[1], whole[3], whole[4]),
                        (one[0], one[1], one[3], one[4]))) and (
                    is_call(narrow, aten.unsqueeze.default)) and (
                    narrow.args[1] % 5 == 2) and have_same_shape(
                    shape, (whole[0], whole[1] * whole[2], whole[3], whole[4])):
                return peel(narrow.args[0]), whole[2]
    return node, 1


def _transpose_keys(graph: torch.fx.Graph, node: Any) -> Any:
    """Returns keys [batch, heads, keys, channels] of the transposed ones."""
    node = peel(node)
    if is_call(node, aten.transpose.int) and {one % 4 for one in node.args[1:3]} == {2, 3}:
        return node.args[0]
    if is_call(node, aten.permute.default) and [one % 4 for one in node.args[1]] == [
            0, 1, 3, 2]:
        return node.args[0]
    return insert(graph, aten.transpose.int, node, 2, 3)


def _check(match: Match) -> None:
    values = [get_value(one) for one in (match.result, match.q, match.k, match.v)]
    result, q, k, v = values
    if result is None or q is None or k is None or v is None:
        raise NoMatch("the types of its tensors are not known")
    if any(value.dim() != 4 for value in (result, q, k, v)):
        raise NoMatch("its tensors do not have 4 dimensions")
    if any(value.device.type != "cpu" for value in (result, q, k, v)):
        raise NoMatch(f"it is on the device '{q.device}', and only graphs on the CPU are "
                      "replaced")
    if len({value.dtype for value in (result, q, k, v)}) != 1 or (
            name_of(q.dtype) not in FLOATS):
        raise NoMatch(f"it has tensors of {q.dtype}, {k.dtype} and {v.dtype}, and a result "
                      f"of {result.dtype}")
    if not all(isinstance(value.shape[dim], int) for value in (q, k, v) for dim in (1, 3)):
        raise NoMatch("the numbers of heads and channels are not constant")
    if not (math.isfinite(match.scale) and match.scale > 0):
        raise NoMatch(f"the scale is {match.scale}, expected a positive number")


def find_attention(graph: torch.fx.Graph, node: Any) -> Match | None:
    """Returns the attention whose result a node is."""
    if is_call(node, *_VIEWS):
        match = _find_spelled(node)
        if match is not None:
            match.k = _transpose_keys(graph, match.k)
    else:
        match = _find_fused(node)
    if match is None:
        return None
    k: Any
    v: Any
    (k, repeats), (v, others) = _find_key_heads(match.k), _find_key_heads(match.v)
    if repeats == others:
        match.k, match.v = k, v
    _check(match)
    shapes: Any = map(get_shape, (match.q, match.k, match.v))
    q, k, v = shapes
    if not have_same_shape(get_shape(match.result), (*q[:3], v[3])):
        raise NoMatch("a mask has a larger batch, or more queries or heads")
    if q[1] % k[1] or not have_same_shape(k[:3], v[:3]) or not is_same(q[0], k[0]) or (
            not is_same(q[3], k[3])):
        raise NoMatch(f"the shapes {q}, {k} and {v} are not those of an attention")
    if match.is_causal and not is_same(q[2], k[2]):
        raise NoMatch("it is causal with other numbers of queries and keys")
    if len(match.biases) == 1 and match.mask is None:
        visible = _find_visible(match.biases[0])
        if visible is not None and _has_one_head(visible):
            match.biases, match.mask = [], visible
    if match.mask is not None and not _has_one_head(match.mask):
        raise NoMatch("its mask differs by head")
    for bias in (*match.biases, *([match.mask] if match.mask else [])):
        value = get_value(bias)
        if value is None or value.dim() > 4 or value.device.type != "cpu":
            raise NoMatch("the shape of a mask is not known")
        if bias is match.mask:
            if value.dtype != torch.bool:
                raise NoMatch(f"its mask is of {value.dtype}")
        elif name_of(value.dtype) not in FLOATS or (
                value.dtype == torch.float64) != (get_value(match.q).dtype
                                                  == torch.float64):
            raise NoMatch(f"a mask of {value.dtype} is added to its scores")
    return match


def _has_one_head(mask: Any) -> bool:
    shape = get_shape(mask)
    return len(shape) < 3 or isinstance(shape[-3], int) and shape[-3] == 1


def _expand(graph: torch.fx.Graph, mask: Any, q: list, k: list) -> Any:
    """Returns a mask [batch, heads or 1, queries, keys]."""
    for _ in range(4 - len(get_shape(mask))):
        mask = insert(graph, aten.unsqueeze.default, mask, 0)
    heads = get_shape(mask)[1]
    return insert(graph, aten.expand.default, mask, [q[0], heads, q[2], k[2]])


def replace_attention(graph: torch.fx.Graph, match: Match) -> str:
    """Replaces an attention and returns what it is."""
    q, k, v = map(get_shape, (match.q, match.k, match.v))
    of = Attention(
        q[1], k[1], q[3], v[3], name_of(get_value(match.q).dtype), match.scale,
        match.is_causal, match.soft_cap, match.mask is not None,
        tuple((name_of(get_value(one).dtype), not _has_one_head(one))
              for one in match.biases), match.lse is not None)
    kernels = find_kernels(of)
    value = get_value(match.result)
    with graph.inserting_before(match.result):
        query = match.q
        if match.factor is not None:
            query = insert(graph, aten.mul.Tensor, query, match.factor)
        sizes = name_sizes(graph, match.q), name_sizes(graph, match.k)
        masks = [_expand(graph, one, *sizes)
                 for one in ([match.mask] if match.mask else []) + match.biases]
        query = insert(graph, aten.transpose.int, query, 1, 2)
        results = graph.call_function(
            torch.ops.posenc.call.default,
            ([query, match.k, match.v, *masks], kernels, "attention"))
        result = graph.call_function(operator.getitem, (results, 0))
        result.meta["val"] = torch.empty_like(value.transpose(1, 2),
                                              memory_format=torch.contiguous_format)
        results.meta["val"] = [result.meta["val"]]
        result = insert(graph, aten.transpose.int, result, 1, 2)
        if match.lse is not None:
            lse = graph.call_function(operator.getitem, (results, 1))
            lse.meta["val"] = torch.empty_like(get_value(match.lse).transpose(1, 2),
                                               memory_format=torch.contiguous_format)
            results.meta["val"].append(lse.meta["val"])
            if masks:  # PyTorch's gradient takes 0 for a query without keys.
                hidden = insert(graph, aten.eq.Scalar, lse, -math.inf)
                lse = insert(graph, aten.masked_fill.Scalar, lse, hidden, 0)
            lse = insert(graph, aten.transpose.int, lse, 1, 2)
            match.lse.replace_all_uses_with(lse)
    match.result.replace_all_uses_with(result)
    kinds = [name for name, has in (
        ("causal", of.is_causal), ("mask", of.has_mask), ("bias", bool(of.biases)),
        ("soft cap", of.soft_cap is not None)) if has]
    return (f"{of.heads} heads, {of.key_heads} key heads, {of.dim} channels, {of.dtype}"
            + "".join(f", {kind}" for kind in kinds))

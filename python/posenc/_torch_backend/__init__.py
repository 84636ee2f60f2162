# ===- __init__.py - a backend of torch.compile -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The backend "posenc" of torch.compile: rotations and attentions of a graph become calls
of kernels, and Inductor compiles the rest."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import (
    has_recomputable_rng_ops, min_cut_rematerialization_partition)
from torch._guards import detect_fake_mode, tracing, TracingContext
from torch.fx import GraphModule

from .._errors import Error
from ._attentions import find_attention, replace_attention
from ._graph import NoMatch, aten, get_value, have_same_shape
from ._report import Report, add_report, explain_backend
from ._rotations import find_rotation, replace_rotation

__all__ = ["Report", "backend", "explain_backend", "rewrite"]

_log = logging.getLogger("posenc")
# What Inductor is told of the nodes of a graph.
_KEPT_META = {"val", "tensor_meta", "stack_trace", "nn_module_stack", "original_aten"}


def rewrite(module: GraphModule) -> Report:
    """Replaces the rotations and attentions of a graph of ATen's operators."""
    graph, report = module.graph, Report()
    if graph.find_nodes(op="call_function", target=aten.as_strided.default):
        report.add_left("graph", "all of it", "it has views by strides (as_strided)")
        return report
    # The results come first, so that operations which they alone use are gone when it
    # is their turn.
    for kind, replace in (("attention", _replace_attention), ("rope", _replace_rotation)):
        for node in list(graph.nodes):
            if not node.users:
                continue
            try:
                with graph.inserting_before(node):
                    text = replace(graph, node)
            except (NoMatch, Error) as error:
                report.add_left(kind, _name(node), str(error).split("\n")[0])
                continue
            if text is not None:
                report.add_replaced(kind, _name(node), text)
        graph.eliminate_dead_code()
    if report.replaced:
        # Results may have other strides, of which some views would be copies.
        for target in (aten.view.default, aten._unsafe_view.default):
            for node in graph.find_nodes(op="call_function", target=target):
                node.target = aten.reshape.default
    graph.lint()
    module.recompile()
    return report


def _name(node: torch.fx.Node) -> str:
    """Returns the name of a node and the line of the model that it is from."""
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    place = next((one.strip().removeprefix("File ") for one in reversed(lines)
                  if one.strip().startswith("File ")), "")
    return f"{node.name} ({place})" if place else node.name


def _replace_rotation(graph: torch.fx.Graph, node: torch.fx.Node) -> str | None:
    match = find_rotation(graph, node)
    return None if match is None else replace_rotation(graph, node, match)


def _replace_attention(graph: torch.fx.Graph, node: torch.fx.Node) -> str | None:
    match = find_attention(graph, node)
    return None if match is None else replace_attention(graph, match)


def _get_outputs(module: GraphModule) -> list[Any]:
    """Returns the nodes that are results of a graph."""
    output, = module.graph.find_nodes(op="output")
    return list(output.args[0])


def _find_order(value: Any) -> list[int] | None:
    """Returns the dimensions of a tensor from the outermost to the innermost one in
    memory; None if it has gaps or repeated elements."""
    if value is None or value.dim() == 0:
        return None
    strides = [one if isinstance(one, int) else one.node.hint or 0
               for one in value.stride()]
    order = sorted(range(value.dim()), key=lambda dim: -strides[dim])
    dense = torch.empty_like(value.permute(order), memory_format=torch.contiguous_format)
    return order if have_same_shape(
        dense.stride(), [value.stride(dim) for dim in order]) else None


def _keep_strides(compiled: Callable, values: Sequence[Any]) -> Callable:
    """Returns a function whose results have the strides of fake tensors. The backward
    part of a graph is compiled for the strides that its forward part has in PyTorch,
    and kernels and Inductor may give others."""
    orders = [(order, sorted(range(len(order)), key=order.__getitem__))
              if order is not None else None for order in map(_find_order, values)]

    def call(*arguments):
        results = list(compiled(*arguments))
        for number, (result, both) in enumerate(zip(results, orders)):
            if both is None or not isinstance(result, torch.Tensor):
                continue
            order, inverse = both
            inner = result.permute(order)
            if not inner.is_contiguous():
                results[number] = inner.contiguous().permute(inverse)
        return results

    return call


def _compile_rest(module: GraphModule, inputs: Sequence[Any],
                  patches: Mapping[str, Any]) -> Callable[..., Any]:
    from torch._inductor.compile_fx import compile_fx

    mode = detect_fake_mode(inputs)
    # The graph is another one than that which is being compiled.
    with (torch.no_grad(), torch._C._DisableAutocast(),
          tracing(TracingContext(mode) if mode else None)):
        return _compile_by_inductor(compile_fx, module, inputs, patches)


def _compile_by_inductor(compile_fx: Callable, module: GraphModule, inputs: Sequence[Any],
                         patches: Mapping[str, Any]) -> Any:
    options = {"config_patches": dict(patches)} if patches else {}
    return compile_fx(module, list(inputs), **options)


class _RandomAgain(Exception):
    """A checkpoint computes random numbers again."""


def _divide(joint: GraphModule, inputs: Sequence[Any], **options):
    """Divides a graph with its gradient into a forward and a backward part."""
    # PyTorch would keep the state of the generator by operators that Inductor, which has
    # its own way when it divides graphs, does not take.
    if has_recomputable_rng_ops(joint):
        raise _RandomAgain
    return min_cut_rematerialization_partition(joint, inputs, **options)


def _compile_graph(module: GraphModule, inputs: Sequence[Any], part: str,
                   patches: Mapping[str, Any]) -> Callable:
    """Compiles a graph, or a part of one that records gradients. The parts are
    differentiated already, so that a kernel needs no gradient."""
    values = list(map(get_value, _get_outputs(module)))
    report = rewrite(module)
    report.part = part
    for node in module.graph.nodes:  # Checkpoints have been dealt with.
        for name in set(node.meta) - _KEPT_META:
            del node.meta[name]
    if part != "backward" or report.replaced:
        add_report(report)
        _log.info("%s", report)
    compiled = _compile_rest(module, inputs, patches)
    if part == "forward":
        compiled = _keep_strides(compiled, values)
    return make_boxed_func(lambda *arguments: compiled(*arguments))


def _find_patches(mode: str | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the settings of Inductor that arguments of torch.compile mean."""
    if mode is None and not options:
        return {}
    if mode is not None and options:
        raise RuntimeError("Either mode or options can be specified, but both can't be "
                           "specified at the same time.")
    return dict(torch._TorchCompileInductorWrapper(
        mode, dict(options) if options else None, None).config)


def backend(module: GraphModule, inputs: Sequence[Any], *, mode: str | None = None,
            options: Mapping[str, Any] | None = None, **others) -> Callable:
    """The function that torch.compile calls for a graph. `mode` and `options` are those
    of Inductor."""
    patches = _find_patches(mode, options)
    tensors = [one for one in inputs if isinstance(one, torch.Tensor)]
    if tensors and torch.is_grad_enabled() and all(
            one.device.type not in ("cpu", "meta") for one in tensors):
        # Nothing would be replaced.
        return _leave_all(module, inputs, patches,
                          f"it is on the device '{tensors[0].device}'")

    def compile_part(part: str) -> Callable:
        return functools.partial(_compile_graph, part=part, patches=patches)

    compile_all: Any = aot_autograd(
        fw_compiler=compile_part("forward"), bw_compiler=compile_part("backward"),
        inference_compiler=compile_part("inference"), partition_fn=_divide,
        decompositions={}, keep_inference_input_mutations=True)
    try:
        return compile_all(module, inputs)
    except _RandomAgain:
        return _leave_all(module, inputs, patches, "a checkpoint has dropout, or other "
                          "random numbers, which only Inductor computes again")


def _leave_all(module: GraphModule, inputs: Sequence[Any], patches: Mapping[str, Any],
               reason: str) -> Callable:
    """Compiles a graph with gradients by Inductor alone."""
    from torch._inductor.compile_fx import compile_fx

    report = Report("forward")
    report.add_left("graph", "all of it", reason)
    add_report(report)
    _log.info("%s", report)
    return _compile_by_inductor(compile_fx, module, inputs, patches)
